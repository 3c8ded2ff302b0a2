//! Times memory with many entries: `cargo run --release -p crabtalk-memory
//! --example scale -- [entries]`. Prints what a recall and a `remember` cost.

use crabtalk_domain::storage::{
    self, ArchiveInfo, Entry, NewConversation, Opened, Page, Source, Storage, Summary,
};
use crabtalk_domain::{BoxFuture, ConversationKey, Origin, SystemClock};
use crabtalk_memory::index::{Document, Features, Index, Level, Query, Shard, search};
use crabtalk_memory::{Memory, NewEntry, Parts, Settings};
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

/// No conversations, hence no archives.
struct Empty;

fn missing<T: Send + 'static>() -> BoxFuture<'static, Result<T, storage::Error>> {
    Box::pin(ready(Err(storage::Error::NotFound("everything".into()))))
}

impl Storage for Empty {
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
        _: &'a Source,
        _: Option<u64>,
        _: usize,
    ) -> BoxFuture<'a, Result<Page, storage::Error>> {
        missing()
    }
    fn entries<'a>(
        &'a self,
        _: &'a ConversationKey,
        _: &'a [u64],
    ) -> BoxFuture<'a, Result<Vec<Entry>, storage::Error>> {
        missing()
    }
    fn archives<'a>(
        &'a self,
        _: &'a ConversationKey,
    ) -> BoxFuture<'a, Result<Vec<ArchiveInfo>, storage::Error>> {
        missing()
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
            "---\nname: Entry {n}\ndescription: {}\n---\n{}\n",
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

/// Turns of one long conversation, where neighbours count.
fn turns(out: &mut impl Write, turns: usize, words: &mut Words) -> Result<(), Error> {
    let mut index = Index::new();
    let begin = Instant::now();
    for n in 0..turns {
        let text = words.text(20);
        let document = Document {
            session: (n / 200) as u32,
            text: &text,
            ..Document::default()
        };
        index
            .append(&document)
            .ok_or_else(|| Error::other("full"))?;
    }
    let built = begin.elapsed();
    let features = Features {
        speakers: true,
        dates: true,
    };
    let times = (0..QUERIES).map(|_| {
        let query = words.text(6);
        let begin = Instant::now();
        let shard = Shard {
            index: &index,
            level: Level::Document,
            features,
            keep: &|_| true,
        };
        let found = search(&[shard], &Query::parse(&query, None), 5);
        assert!(!found.is_empty());
        begin.elapsed()
    });
    let times = spread(times.collect());
    writeln!(
        out,
        "{turns} turns: built in {built:.1?}, {} MB; query {times}",
        index.bytes() >> 20
    )
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let entries: usize = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(100_000);
    let mut out = stdout().lock();
    let home = tempfile::tempdir()?;
    let folder = home.path().join("memory/entries");
    let mut words = Words(1);
    write_entries(&folder, entries, &mut words)?;
    let memory = Memory::new(Parts {
        config: home.path().to_owned(),
        settings: Settings::default(),
        storage: Arc::new(Empty),
        owners: Arc::new(|_: &str| true),
        clock: Arc::new(SystemClock),
    });
    let key = ConversationKey::new("crab", "user").map_err(Error::other)?;
    let viewer = memory.viewer(&key, &Origin::local());
    let begin = Instant::now();
    memory.recall(&viewer, "first", 5).await;
    writeln!(
        out,
        "{entries} entries: first recall {:.1?}",
        begin.elapsed()
    )?;

    let mut times = Vec::new();
    for _ in 0..QUERIES {
        let query = words.text(6);
        let begin = Instant::now();
        let hits = memory.recall(&viewer, &query, 5).await;
        times.push(begin.elapsed());
        assert!(!hits.is_empty());
    }
    writeln!(out, "recall of 6 words: {}", spread(times))?;

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
        let hits = memory.recall(&viewer, &unique, 5).await;
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
    )?;
    turns(&mut out, entries, &mut words)
}
