//! Times memory with many entries, or with long archives: `cargo run --release
//! -p crabtalk-memory --example scale -- [entries [megabytes]]`. Prints what a
//! recall and a `remember` cost, or a turn with that much behind it.

use crabtalk_domain::storage::{
    self, ArchiveInfo, LogEntry, LogPart, NewConversation, Opened, Page, Storage, Summary,
};
use crabtalk_domain::{
    AgentConfig, AskQuestion, BoxFuture, ConversationKey, Hook, Message, Origin, People,
    RunContext, SystemClock,
};
use crabtalk_memory::{ArchiveIndex, Memory, NewEntry, Parts, Settings};
use std::fs::File;
use std::future::ready;
use std::io::{Error, Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WORDS_PER_ENTRY: usize = 40;
const VOCABULARY: usize = 30_000;
/// The most frequent words of a language are stop words, which are not counted.
const STOP_WORDS: usize = 130;
const QUERIES: usize = 300;
const WRITES: usize = 50;

/// One archive of so many turns, made up as they are read.
struct Archive(u64);

const WORDS_PER_TURN: usize = 40;

impl Archive {
    fn entry(index: u64) -> LogEntry {
        let mut words = Words(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut text = words.text(WORDS_PER_TURN);
        if index == 1 {
            text.push_str(" the walrus lives in the bathtub");
        }
        let mut message = Message::user(text);
        message.at = "2026-01-01T00:00:00Z".into();
        LogEntry {
            index,
            message,
            compact: false,
        }
    }
}

fn missing<T: Send + 'static>() -> BoxFuture<'static, Result<T, storage::Error>> {
    Box::pin(ready(Err(storage::Error::NotFound("everything".into()))))
}

impl Storage for Archive {
    fn open<'a>(
        &'a self,
        _: &'a ConversationKey,
        _: Option<NewConversation>,
    ) -> BoxFuture<'a, Result<Option<Opened>, storage::Error>> {
        missing()
    }
    fn list<'a>(
        &'a self,
        _: Option<&'a str>,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Vec<Summary>, storage::Error>> {
        missing()
    }
    fn page<'a>(
        &'a self,
        _: &'a LogPart,
        before: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, storage::Error>> {
        let end = before.unwrap_or(self.0 + 1);
        let begin = end.saturating_sub(limit as u64).max(1);
        let page = Page {
            entries: (begin..end).map(Self::entry).collect(),
            more: begin > 1,
            ..Page::default()
        };
        Box::pin(ready(Ok(page)))
    }
    fn entries<'a>(
        &'a self,
        _: &'a ConversationKey,
        indexes: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<LogEntry>, storage::Error>> {
        let entries = indexes.iter().map(|index| Self::entry(*index));
        Box::pin(ready(Ok(entries.collect())))
    }
    fn archives<'a>(
        &'a self,
        _: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, storage::Error>> {
        let info = (self.0 > 0).then(|| ArchiveInfo {
            index: 1,
            title: "All of it".into(),
            archived_at: "2026-01-02T00:00:00Z".into(),
            message_count: self.0,
            summary: String::new(),
        });
        Box::pin(ready(Ok(info.into_iter().collect())))
    }
    fn remove<'a>(&'a self, _: &'a ConversationKey) -> BoxFuture<'a, Result<(), storage::Error>> {
        missing()
    }
    fn file<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Summary, storage::Error>> {
        missing()
    }
    fn remove_file<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), storage::Error>> {
        missing()
    }
}

struct Nobody;

impl People for Nobody {
    fn ask<'a>(&'a self, _: AskQuestion) -> BoxFuture<'a, Option<String>> {
        Box::pin(ready(None))
    }
}

/// A memory in a folder, over an archive of so many turns.
fn memory(home: &Path, turns: u64) -> Memory {
    let storage = Arc::new(Archive(turns));
    let indexes = crabtalk_store::Indexes::in_state(&home.join("state"));
    Memory::new(Parts {
        config: home.to_owned(),
        settings: Settings::default(),
        archives: ArchiveIndex::new(indexes.passages(), storage.clone()),
        storage,
        owners: Arc::new(|_: &str| true),
        clock: Arc::new(SystemClock),
    })
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Indexes an archive of so many megabytes, and times what a turn waits for.
async fn archive(out: &mut impl Write, megabytes: u64, words: &mut Words) -> Result<(), Error> {
    let home = tempfile::tempdir()?;
    let turns = megabytes * 1_000_000 / (WORDS_PER_TURN as u64 * 9);
    let key = ConversationKey::new("crab", "user").map_err(Error::other)?;
    let begin = Instant::now();
    let before = peak_mib();
    let index = memory(home.path(), turns);
    index.archives().note(&key);
    index.archives().fill().await;
    let bytes = std::fs::metadata(home.path().join("state/index.db"))?.len();
    writeln!(
        out,
        "{megabytes} MB in {turns} archived turns: indexed in {:.1?}, {} MB, \
         {} MiB above {before} at the peak",
        begin.elapsed(),
        bytes / 1_000_000,
        peak_mib() - before
    )?;
    let agent = AgentConfig::new(key.agent.clone(), "");
    let turn = async |memory: &Memory, said: &str| {
        let history = [Arc::new(Message::user(said))];
        let run = RunContext {
            key: &key,
            origin: &Origin::local(),
            agent: &agent,
            cwd: Path::new("/"),
            run: 1,
            for_owner: true,
            has_archives: true,
        };
        let begin = Instant::now();
        let messages = memory.on_before_run(run, &history, &Nobody).await;
        (begin.elapsed(), messages)
    };
    let memory = memory(home.path(), turns);
    let (first, found) = turn(&memory, "where does the walrus live?").await;
    assert!(found[0].content.contains("bathtub"), "{found:?}");
    let (again, _) = turn(&memory, "where does the walrus live?").await;
    let (nothing, _) = turn(&memory, "hello there").await;
    let mut times = Vec::new();
    for _ in 0..QUERIES {
        times.push(turn(&memory, &words.text(6)).await.0);
    }
    writeln!(
        out,
        "a turn looks there: first {first:.1?}, again {again:.1?}, for nothing {nothing:.1?}; 6 words: {}",
        spread(times)
    )?;
    let viewer = memory.viewer(&key, &Origin::local());
    let mut times = Vec::new();
    for _ in 0..QUERIES / 10 {
        let query = words.text(6);
        let begin = Instant::now();
        memory.recall(&viewer, &query, 5).await;
        times.push(begin.elapsed());
    }
    writeln!(out, "asked for: {}; peak {} MiB", spread(times), peak_mib())
}

/// Words as frequent as in a language: the n-th a n-th as often as the first.
struct Words(u64);

impl Words {
    fn next(&mut self) -> String {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let even = (self.0 >> 11) as f64 / (1u64 << 53) as f64;
        let spread = (VOCABULARY / STOP_WORDS) as f64;
        let mut rank = (STOP_WORDS as f64 * spread.powf(even)) as usize;
        let mut word = String::new();
        for _ in 0..4 {
            word.push(char::from(b"bdfgklmnprstvz"[rank % 14]));
            word.push(char::from(b"aeiou"[rank / 14 % 5]));
            rank /= 7;
        }
        word
    }

    fn text(&mut self, words: usize) -> String {
        (0..words)
            .map(|_| self.next())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn spread(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    format!(
        "median {:.2} ms, 99% {:.2} ms, worst {:.2} ms",
        at(50),
        at(99),
        at(100)
    )
}

fn write_entries(folder: &Path, entries: usize, words: &mut Words) -> Result<(), Error> {
    std::fs::create_dir_all(folder)?;
    for n in 0..entries {
        let text = format!(
            "---\nname: LogEntry {n}\ndescription: {}\n---\n{}\n",
            words.text(6),
            words.text(WORDS_PER_ENTRY)
        );
        std::fs::write(folder.join(format!("entry-{n}.md")), text)?;
    }
    Ok(())
}

/// What the disk takes for what one `remember` syncs: a file and its folder.
fn disk_sync(folder: &Path) -> Result<Duration, Error> {
    let begin = Instant::now();
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&[b'x'; 400])?;
    file.as_file().sync_all()?;
    file.persist(folder.join("probe"))?;
    File::open(folder)?.sync_all()?;
    Ok(begin.elapsed())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let entries: usize = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000);
    let mut out = stdout().lock();
    if let Some(megabytes) = std::env::args().nth(2).and_then(|n| n.parse().ok()) {
        return archive(&mut out, megabytes, &mut Words(2)).await;
    }
    let home = tempfile::tempdir()?;
    let folder = home.path().join("memory/entries");
    let mut words = Words(1);
    write_entries(&folder, entries, &mut words)?;
    let memory = memory(home.path(), 0);
    let key = ConversationKey::new("crab", "user").map_err(Error::other)?;
    let viewer = memory.viewer(&key, &Origin::local());
    let begin = Instant::now();
    memory.recall(&viewer, "first", 5).await;
    writeln!(
        out,
        "{entries} entries: first recall {:.1?}",
        begin.elapsed()
    )?;

    for length in [6, 600] {
        let mut times = Vec::new();
        for _ in 0..QUERIES {
            let query = words.text(length);
            let begin = Instant::now();
            let hits = memory.recall(&viewer, &query, 5).await.hits;
            times.push(begin.elapsed());
            assert!(!hits.is_empty());
        }
        writeln!(out, "recall of {length} words: {}", spread(times))?;
    }

    let (mut beyond, mut syncs) = (Vec::new(), Vec::new());
    for n in 0..WRITES {
        let sync = disk_sync(home.path())?;
        let unique = format!("uniqueword{n}");
        let entry = NewEntry {
            name: format!("New {n}"),
            content: unique.clone(),
            ..NewEntry::default()
        };
        let begin = Instant::now();
        memory
            .remember(&viewer, entry)
            .await
            .map_err(Error::other)?;
        let hits = memory.recall(&viewer, &unique, 5).await.hits;
        let took = begin.elapsed();
        assert_eq!(hits[0].title, format!("New {n}"));
        beyond.push(took.saturating_sub(sync));
        syncs.push(sync);
    }
    writeln!(out, "disk alone: {}", spread(syncs))?;
    writeln!(
        out,
        "remember and recall, beyond the disk: {}",
        spread(beyond)
    )
}
