//! Keeps what a list of the latest needs from one life of the daemon to the next.
//!
//! Invariants: an orderly end writes it; what a life changes after that is noted beside it
//! first, so that it counts after a crash too, for all logs but those. It does not count where
//! the folder is in a state that neither it nor the notes tell of. It holds names and times
//! alone; what a list shows is read from the logs.

mod since;

use super::{NameList, Names, name};
use since::Since;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Fewer logs are looked at in a few milliseconds.
pub(super) const WORTH_KEEPING: usize = 4096;

/// More than that many logs take, with the longest names.
const MAX_BYTES: u64 = 1 << 30;

/// A folder that changed this shortly before may have changed again under the same
/// time: kernels count in ticks of up to ten milliseconds.
const SETTLED: Duration = Duration::from_millis(100);

/// Logs that are looked at again with each list, until none is left that was taken
/// from the file: somebody may have written into one while no daemon was there.
pub(super) const CHECKED_AT_ONCE: usize = 1024;

/// What the file begins with.
const FORMAT: &str = "crabtalk latest 1";

/// The file, and what is noted beside it.
pub(super) struct Kept {
    path: PathBuf,
    since: Mutex<Since>,
}

impl Kept {
    /// In a folder of its own, so that writing it changes not the one it tells of.
    pub(super) fn of(sessions: &Path) -> Self {
        let path = sessions.join(".index/latest");
        let since = Mutex::new(Since::of(&path));
        Self { path, since }
    }

    /// Makes its folder, once: that changes the one it tells of.
    pub(super) fn make_room(&self) {
        if let Some(folder) = self.path.parent().filter(|folder| !folder.exists()) {
            // Where that fails nothing is kept.
            let _ = crabtalk_files::create_folder(folder);
        }
    }

    /// A panic leaves at worst a note too many.
    fn since(&self) -> MutexGuard<'_, Since> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes it away: it may not tell what is.
    pub(super) fn expire(&self) {
        self.since().expire();
    }

    /// Notes that a log is about to be written to.
    pub(super) fn note_log(&self, path: &Path) {
        self.since().note_log(path);
    }

    /// Notes in which state we left the folder.
    pub(super) fn note_folder(&self, state: SystemTime) {
        self.since().note_folder(state);
    }

    /// What it says of a folder in this state, where `names` lists that, with the names
    /// in their order. Logs that were written to since have no time.
    fn read(
        &self,
        folder: SystemTime,
        names: impl FnOnce() -> Option<Vec<String>>,
    ) -> Option<NameList> {
        let told = self.since().read()?;
        let bytes = crabtalk_files::read(&self.path, MAX_BYTES).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let (head, text) = text.split_once('\0')?;
        let of = parse_time(head.strip_prefix(&life()?)?)?;
        let text = text.strip_suffix("\0end")?;
        let times = text.split('\0').map(|line| line.split_once(' '));
        let times = times.collect::<Option<Vec<_>>>()?;
        let mut list = NameList::default();
        let mut insert = |name: &str, time: Option<&str>| {
            list.insert(list.len(), name, 0);
            let time = time.filter(|_| !told.logs.contains(name));
            *list.changed(list.len() - 1) = match time {
                Some(time) => Some(parse_time(time)?),
                None => None,
            };
            Some(())
        };
        if of == folder && self.is_settled(folder) {
            for (time, name) in times {
                insert(name, Some(time))?;
            }
        } else if told.folder == Some(folder) {
            let times: HashMap<&str, &str> =
                times.iter().map(|(time, name)| (*name, *time)).collect();
            for name in names()? {
                insert(&name, times.get(&*name).copied())?;
            }
        } else {
            return None;
        }
        Some(list)
    }

    /// Whether the folder was left alone for a while before this was written.
    fn is_settled(&self, folder: SystemTime) -> bool {
        let written = std::fs::metadata(&self.path).and_then(|file| file.modified());
        written.is_ok_and(|at| at.duration_since(folder).is_ok_and(|it| it >= SETTLED))
    }

    fn write(&self, folder: SystemTime, names: &mut NameList) -> Option<()> {
        let mut text = head(folder)?;
        for at in 0..names.len() {
            let changed = (*names.changed(at))?;
            text.push_str(&time(changed)?);
            text.push(' ');
            text.push_str(names.name(at));
            text.push('\0');
        }
        text.push_str("end");
        // Not synced: the end waits for no disk, and a power cut ends what it tells of.
        let mut staged = crabtalk_files::unfinished(self.path.parent()?).ok()?;
        staged.write_all(text.as_bytes()).ok()?;
        staged.persist(&self.path).ok()?;
        // After a crash in between a few logs are looked at again.
        let mut since = self.since();
        since.begin();
        // Where the folder changed just before, the next life lists its names anew.
        since.note_folder(folder);
        Some(())
    }
}

/// Says of which folder in which state it tells, and in which life of the machine.
fn head(folder: SystemTime) -> Option<String> {
    Some(format!("{}{}\0", life()?, time(folder)?))
}

/// What it begins with in this life of the machine: a power cut may undo what was noted
/// beside it. `None` where the system does not tell its lives apart.
fn life() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(format!("{FORMAT} {} ", boot.trim()))
}

fn time(at: SystemTime) -> Option<String> {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(format!("{}.{}", since.as_secs(), since.subsec_nanos()))
}

fn parse_time(text: &str) -> Option<SystemTime> {
    let (secs, nanos) = text.split_once('.')?;
    let since = Duration::new(
        secs.parse().ok()?,
        nanos.parse().ok().filter(|n| *n < 1_000_000_000)?,
    );
    SystemTime::UNIX_EPOCH.checked_add(since)
}

impl Names {
    /// Takes the names and times over that were kept, if the folder is as we left it.
    pub(super) fn take_kept(&mut self, folder: Option<SystemTime>) -> bool {
        let names = || {
            let mut names = self.fs.names(&self.dir).ok()?;
            names.retain(|name| name::is_bare(name));
            // With others all are looked at.
            let all_ruled = names.iter().all(|name| name::follows_rule(name));
            names.sort_by_cached_key(|name| name::sort_key(name));
            all_ruled.then_some(names)
        };
        let Some(list) = folder.and_then(|folder| self.kept.read(folder, names)) else {
            return false;
        };
        let in_order = list.iter().is_sorted_by(|a, b| name::are_in_order(a, b));
        if !in_order || !list.iter().all(name::follows_rule) {
            return false;
        }
        self.unchecked = list.len();
        self.ruled = list;
        true
    }

    /// Keeps them for the next life. Other logs than ours are few, and make that the next
    /// life looks at all.
    pub(super) fn keep(&mut self) {
        let is_worth_it = self.ruled.len() >= WORTH_KEEPING && self.strays.len() == 0;
        if !is_worth_it || !self.changing() || !self.look_at_the_rest() {
            return;
        }
        if let Some(folder) = self.seen {
            let kept = Arc::clone(&self.kept);
            // Without it the next life looks at all.
            let _ = kept.write(folder, &mut self.ruled);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::Index;
    use super::*;
    use crate::fs::{Access, FileLayer, LogFile, OsFiles};
    use crabtalk_domain::ConversationKey;
    use crabtalk_domain::storage::NewConversation;
    use std::fs::File;
    use std::io;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const LOGS: u64 = WORTH_KEEPING as u64 + 100;

    /// The disk, and how many files were looked at.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl FileLayer for Counting {
        fn changed(&self, path: &Path) -> io::Result<Option<SystemTime>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            OsFiles.changed(path)
        }
        fn names(&self, dir: &Path) -> io::Result<Vec<String>> {
            OsFiles.names(dir)
        }
        fn make_dir(&self, dir: &Path) -> io::Result<()> {
            OsFiles.make_dir(dir)
        }
        fn create(&self, path: &Path) -> io::Result<Arc<dyn LogFile>> {
            OsFiles.create(path)
        }
        fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn LogFile>> {
            OsFiles.open(path, access)
        }
        fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            OsFiles.rename(from, to)
        }
        fn remove(&self, path: &Path) -> io::Result<()> {
            OsFiles.remove(path)
        }
        fn sync_dir(&self, dir: &Path) -> io::Result<()> {
            OsFiles.sync_dir(dir)
        }
    }

    struct Home(tempfile::TempDir);

    impl Home {
        /// With logs of which the first changed last.
        fn new() -> Self {
            let home = Self(tempfile::tempdir().expect("temp dir"));
            for n in 0..LOGS {
                home.change(n, LOGS - n);
            }
            home.settle();
            // The first list makes room for what is kept.
            home.life().1.latest(1).expect("lists");
            home.settle();
            home
        }

        fn path(&self, n: u64) -> PathBuf {
            self.0.path().join(format!("crab_{n}_1.jsonl"))
        }

        fn change(&self, n: u64, seconds: u64) {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let file = File::create(self.path(n)).expect("creates");
            file.set_modified(at).expect("is ours");
        }

        /// As if the folder had been left alone for a while.
        fn settle(&self) {
            let folder = File::open(self.0.path()).expect("a folder");
            let before = SystemTime::now() - 10 * SETTLED;
            folder.set_modified(before).expect("is ours");
        }

        fn life(&self) -> (Arc<Counting>, Index) {
            let files = Arc::<Counting>::default();
            let index = Index::new(files.clone(), self.0.path().to_owned());
            (files, index)
        }

        /// The latest in a new life, and how many logs were looked at for it.
        fn latest(&self) -> (String, usize) {
            let (files, index) = self.life();
            let latest = index.latest(1).expect("lists").remove(0);
            (latest, files.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn the_next_life_looks_at_few_logs_and_finds_the_same() {
        let home = Home::new();
        let (latest, looked) = home.latest();
        assert_eq!(latest, "crab_0_1.jsonl");
        assert!(looked as u64 > LOGS, "{looked}");
        let (latest, looked) = home.latest();
        assert_eq!(latest, "crab_0_1.jsonl");
        assert!(looked <= CHECKED_AT_ONCE + 10, "{looked}");
        // A log that is written to is looked at, and the time is kept.
        let (_, index) = home.life();
        index.latest(1).expect("lists");
        index.touch(&home.path(7));
        home.change(7, LOGS + 1);
        drop(index);
        let (latest, looked) = home.latest();
        assert_eq!(latest, "crab_7_1.jsonl");
        assert!(looked <= CHECKED_AT_ONCE + 10, "{looked}");
    }

    #[test]
    fn an_end_just_behind_a_change_of_the_folder_is_an_orderly_one() {
        let home = Home::new();
        home.latest();
        let (_, index) = home.life();
        let key = ConversationKey::new("crab", "new").expect("valid");
        let made = {
            let mut names = index.lock();
            let files = names.find(&key).expect("finds");
            let new = NewConversation::default();
            names.create(&key, &new, &files).expect("creates").path
        };
        drop(index);
        // A name that came in the same instant is found all the same.
        let folder = || std::fs::metadata(home.0.path()).and_then(|it| it.modified());
        let left = folder().expect("a folder");
        home.change(LOGS, u64::from(u32::MAX));
        for path in [".", ".index/latest"] {
            let file = File::open(home.0.path().join(path)).expect("is there");
            file.set_modified(left).expect("is ours");
        }
        let (files, index) = home.life();
        let latest = index.latest(2).expect("lists");
        let made = made.file_name().expect("a name").to_string_lossy();
        assert_eq!(latest, [format!("crab_{LOGS}_1.jsonl"), made.into_owned()]);
        let looked = files.0.load(Ordering::Relaxed);
        assert!(looked <= CHECKED_AT_ONCE + 10, "{looked}");
    }

    #[test]
    fn after_a_crash_those_are_looked_at_that_were_written_to() {
        let home = Home::new();
        home.latest();
        let (_, index) = home.life();
        index.touch(&home.path(7));
        home.change(7, LOGS + 1);
        std::mem::forget(index);
        // Twice, for a crash may follow another.
        for log in [7, 8] {
            let (files, index) = home.life();
            let latest = index.latest(1).expect("lists").remove(0);
            assert_eq!(latest, format!("crab_{log}_1.jsonl"));
            let looked = files.0.load(Ordering::Relaxed);
            assert!(looked <= CHECKED_AT_ONCE + 10, "{looked}");
            index.touch(&home.path(8));
            home.change(8, LOGS + 2);
            std::mem::forget(index);
        }
    }

    #[test]
    fn after_a_crash_conversations_that_came_and_went_are_known() {
        let home = Home::new();
        home.latest();
        let (_, index) = home.life();
        let new = NewConversation::default();
        let make = |index: &Index, agent: &str, sender: &str| {
            let key = ConversationKey::new(agent, sender).expect("valid");
            let mut names = index.lock();
            let files = names.find(&key).expect("finds");
            names.create(&key, &new, &files).expect("creates").path
        };
        // Before the others in order, and behind them.
        let (first, last) = (make(&index, "a", "x"), make(&index, "z", "x"));
        let trash = home.0.path().join("trash");
        let gone = home.path(0);
        let gone = gone
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        index.lock().discard(gone, &trash, 1).expect("is removed");
        std::mem::forget(index);
        let (files, index) = home.life();
        let mut latest: Vec<_> = index.latest(3).expect("lists");
        latest[..2].sort();
        let name = |path: &Path| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        };
        assert_eq!(latest, [name(&first), name(&last), "crab_1_1.jsonl".into()]);
        let looked = files.0.load(Ordering::Relaxed);
        assert!(looked <= CHECKED_AT_ONCE + 10, "{looked}");
        // Somebody else was here after us.
        drop(index);
        home.latest();
        let (_, index) = home.life();
        make(&index, "y", "x");
        std::mem::forget(index);
        home.change(LOGS, LOGS + 9);
        home.settle();
        let looked = home.latest().1;
        assert!(looked as u64 > LOGS, "{looked}");
    }

    #[test]
    fn notes_that_are_broken_or_too_many_have_every_log_looked_at() {
        let home = Home::new();
        let notes = home.0.path().join(".index/since");
        for broken in ["log crab_7", "nonsense\0", "folder x\0"] {
            home.latest();
            std::fs::write(&notes, broken).expect("is ours");
            let looked = home.latest().1;
            assert!(looked as u64 > LOGS, "{broken}: {looked}");
        }
        home.latest();
        let (_, index) = home.life();
        for n in 0..LOGS {
            let long = format!("crab_{n}_1_{}.jsonl", "t".repeat(60));
            index.touch(&home.0.path().join(long));
        }
        std::mem::forget(index);
        assert!(!notes.exists());
        let looked = home.latest().1;
        assert!(looked as u64 > LOGS, "{looked}");
    }

    #[test]
    fn what_somebody_did_meanwhile_is_seen() {
        let home = Home::new();
        home.latest();
        // A name more: the folder is another.
        home.change(LOGS, LOGS + 1);
        assert_eq!(home.latest().0, format!("crab_{LOGS}_1.jsonl"));
        home.settle();
        home.latest();
        // A log that was written to in place, while no daemon was there.
        home.change(LOGS - 1, LOGS + 2);
        let (_, index) = home.life();
        let lists = LOGS as usize / CHECKED_AT_ONCE + 1;
        let mut latest = String::new();
        for _ in 0..lists {
            latest = index.latest(1).expect("lists").remove(0);
        }
        assert_eq!(latest, format!("crab_{}_1.jsonl", LOGS - 1));
    }

    #[test]
    fn what_is_broken_or_of_another_life_of_the_machine_is_not_believed() {
        let home = Home::new();
        home.latest();
        let file = home.0.path().join(".index/latest");
        let whole = std::fs::read(&file).expect("was kept");
        let text = String::from_utf8(whole.clone()).expect("text");
        let foreign = text.replacen(FORMAT, "crabtalk latest 0", 1);
        let other_boot = text.replacen('-', "0", 1);
        for broken in [
            &whole[..whole.len() / 2],
            &[],
            foreign.as_bytes(),
            other_boot.as_bytes(),
        ] {
            std::fs::write(&file, broken).expect("is ours");
            let (latest, looked) = home.latest();
            assert_eq!(latest, "crab_0_1.jsonl");
            assert!(looked as u64 > LOGS, "{looked}");
        }
    }
}
