//! Which logs changed last.
//!
//! Invariants: each log is looked at once, and again when the store itself wrote
//! to it or when somebody else changed the folder; nobody who opens a
//! conversation waits for more than a few looks.

use super::kept::CHECKED_AT_ONCE;
use super::{Index, Names};
use crate::fs::FileLayer;
use crabtalk_domain::storage::Error;
use std::cmp::Reverse;
use std::path::Path;
use std::sync::PoisonError;
use std::time::SystemTime;
use string_interner::DefaultStringInterner;

/// Logs that are looked at before others get their turn at the names: a
/// millisecond on a disk that is in memory.
const LOOKS_AT_ONCE: usize = 512;

/// Logs that are remembered as written to since somebody asked; after more of
/// them all are looked at again.
const MAX_TOUCHED: usize = 4096;

/// What the store wrote to since the times were looked at.
pub(super) enum Touched {
    /// Too much has changed since.
    Anything,
    /// The names of these logs, in one piece: a thousand small ones would each keep a
    /// page alive that a crowd has left.
    These(DefaultStringInterner),
}

impl Default for Touched {
    fn default() -> Self {
        Self::These(DefaultStringInterner::new())
    }
}

impl Touched {
    fn add(&mut self, name: &str) {
        if let Self::These(names) = self {
            names.get_or_intern(name);
            if names.len() > MAX_TOUCHED {
                *self = Self::Anything;
            }
        }
    }
}

impl Index {
    /// Notes that a log is about to be written to. Called for every append: it takes no
    /// lock that is held over a look at files. Of many logs the first append of a life to each
    /// is noted beside what is kept, by one small write as the append itself is one.
    pub(crate) fn touch(&self, path: &Path) {
        self.kept.note_log(path);
        // No log of ours has a name that is no text.
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            let mut touched = self.touched.lock().unwrap_or_else(PoisonError::into_inner);
            touched.add(name);
        }
    }

    /// At most so many names of logs, of the one that changed last first.
    pub(crate) fn latest(&self, most: usize) -> Result<Vec<String>, Error> {
        // Taken before anything is looked at: what is written meanwhile is looked
        // at next time.
        let touched = self.take_touched();
        {
            let mut names = self.lock();
            names.refresh().inspect_err(|_| self.touch_anything())?;
            names.forget_times(&touched);
            names.check_some();
        }
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.lock().look_at_some(from);
        }
        Ok(self.lock().latest(most))
    }

    pub(super) fn take_touched(&self) -> Touched {
        std::mem::take(&mut self.touched.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn touch_anything(&self) {
        *self.touched.lock().unwrap_or_else(PoisonError::into_inner) = Touched::Anything;
    }
}

impl Names {
    /// Has some logs looked at whose times were kept.
    fn check_some(&mut self) {
        let from = self.ruled.len().saturating_sub(self.unchecked);
        let upto = self.ruled.len().min(from + CHECKED_AT_ONCE);
        for at in from..upto {
            *self.ruled.changed(at) = None;
        }
        self.unchecked = self.ruled.len() - upto;
    }

    /// Looks at what nobody looked at yet, unless that is much; whether it did.
    pub(super) fn look_at_the_rest(&mut self) -> bool {
        let unknown = |list: &mut super::NameList, at: &usize| list.changed(*at).is_none();
        let ruled = &mut self.ruled;
        let rest: Vec<usize> = (0..ruled.len()).filter(|at| unknown(ruled, at)).collect();
        if rest.len() > CHECKED_AT_ONCE {
            return false;
        }
        for at in rest {
            look(&*self.fs, &self.dir, ruled, at);
        }
        true
    }

    pub(super) fn forget_times(&mut self, touched: &Touched) {
        match touched {
            Touched::Anything => {
                self.ruled.forget_times();
                self.strays.forget_times();
            }
            Touched::These(names) => {
                for (_, name) in names {
                    self.forget_time(name);
                }
                // Few, and none is found by its name.
                self.strays.forget_times();
            }
        }
    }

    fn forget_time(&mut self, name: &str) {
        if let Some(at) = self.ruled_at(name) {
            *self.ruled.changed(at) = None;
        }
    }

    /// Looks at some logs that nobody looked at yet; where to go on, if there may
    /// be more.
    fn look_at_some(&mut self, from: usize) -> Option<usize> {
        let mut looked = 0;
        for at in from..self.ruled.len() {
            if looked == LOOKS_AT_ONCE {
                return Some(at);
            }
            looked += usize::from(self.ruled.changed(at).is_none());
            look(&*self.fs, &self.dir, &mut self.ruled, at);
        }
        None
    }

    fn latest(&mut self, most: usize) -> Vec<String> {
        let (fs, dir) = (&*self.fs, &*self.dir);
        let mut dated: Vec<(SystemTime, bool, usize)> = Vec::with_capacity(self.ruled.len());
        for (is_stray, list) in [(false, &mut self.ruled), (true, &mut self.strays)] {
            for at in 0..list.len() {
                dated.extend(look(fs, dir, list, at).map(|changed| (changed, is_stray, at)));
            }
        }
        if most < dated.len() {
            dated.select_nth_unstable_by_key(most, |dated| Reverse(*dated));
            dated.truncate(most);
        }
        dated.sort_unstable_by_key(|dated| Reverse(*dated));
        let name = |(_, is_stray, at): (SystemTime, bool, usize)| {
            let list = if is_stray { &self.strays } else { &self.ruled };
            list.name(at).to_owned()
        };
        dated.into_iter().map(name).collect()
    }
}

/// When a log last changed; looked at where that is not known. `None` if it is
/// gone.
fn look(
    fs: &dyn FileLayer,
    dir: &Path,
    list: &mut super::NameList,
    at: usize,
) -> Option<SystemTime> {
    if list.changed(at).is_none() {
        // One that cannot be looked at comes last.
        let changed = fs.changed(&dir.join(list.name(at)));
        *list.changed(at) = changed.unwrap_or(Some(SystemTime::UNIX_EPOCH));
    }
    *list.changed(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::OsFiles;
    use std::fs::File;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn what_was_written_to_is_remembered_once_and_in_one_piece() {
        let mut touched = Touched::default();
        let names: Vec<String> = (0..1_000).map(|n| format!("crab_{n}_1.jsonl")).collect();
        for name in names.iter().chain(&names) {
            touched.add(name);
        }
        let Touched::These(remembered) = &touched else {
            panic!("they are fewer than {MAX_TOUCHED}");
        };
        let told: Vec<&str> = remembered.iter().map(|(_, name)| name).collect();
        assert_eq!(told, names);
        let bytes: usize = names.iter().map(String::len).sum();
        let places = told.iter().map(|name| name.as_ptr() as usize);
        let spread = places.clone().max().unwrap() - places.min().unwrap();
        assert!(spread < bytes, "{bytes} bytes lie in {spread}");
    }

    #[test]
    fn more_changes_than_are_remembered_have_every_log_looked_at() {
        let home = tempfile::tempdir().expect("temp dir");
        let path = |name: &str| home.path().join(format!("crab_{name}_1.jsonl"));
        let changed_at = |name: &str, seconds: u64| {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let file = File::create(path(name)).expect("creates");
            file.set_modified(at).expect("is ours");
        };
        changed_at("a", 1);
        changed_at("b", 2);
        let index = Index::new(Arc::new(OsFiles), home.path().to_owned());
        let latest = || index.latest(1).expect("lists");
        assert_eq!(latest(), ["crab_b_1.jsonl"]);
        for n in 0..=MAX_TOUCHED {
            index.touch(&path(&n.to_string()));
        }
        changed_at("a", 3);
        index.touch(&path("a"));
        assert_eq!(latest(), ["crab_a_1.jsonl"]);
        changed_at("b", 4);
        index.touch(&path("b"));
        assert_eq!(latest(), ["crab_b_1.jsonl"]);
    }
}
