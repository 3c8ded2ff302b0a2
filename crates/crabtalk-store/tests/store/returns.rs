//! Rewinds and reopened archives: what the working history is after them.

use crate::support::*;
use crabtalk_domain::Message;
use crabtalk_domain::storage::*;
use crabtalk_testkit::MemoryStore;
use proptest::prelude::*;
use std::sync::Arc;

/// Something that happens to a conversation.
#[derive(Debug, Clone)]
enum Act {
    /// A message of the user and its answer, `<text>!`.
    Say(&'static str),
    Compact(&'static str, usize),
    Fresh,
    /// Back to before the message of this number, from 0, of all in the log.
    Rewind(usize),
    /// Reopens the archive of this number, from 1.
    Reopen(u32),
}

use Act::{Compact, Fresh, Reopen, Rewind, Say};

fn state(runs: u64) -> Record {
    Record::Meta(MetaRecord {
        title: Some("kept".into()),
        last_run: Some(runs),
        requests: Some(vec![("req-1".into(), 1)]),
        ..MetaRecord::default()
    })
}

async fn page(store: &dyn Storage) -> Page {
    let source = LogPart::Conversation(key("crab", "user"));
    store.page(&source, None, 1000).await.expect("a page")
}

/// The records of an act; none where it points to nothing.
async fn records(store: &dyn Storage, act: &Act) -> Vec<Record> {
    let marker = match act {
        Say(text) => return vec![user(text), said(&format!("{text}!"))],
        Compact(summary, keep) => compact(summary, *keep),
        Fresh => compact("", 0),
        Rewind(number) => {
            let entries = page(store).await.entries.into_iter();
            let mut messages = entries.filter(|entry| !entry.compact);
            match messages.nth(*number) {
                Some(entry) => Record::Rewind {
                    to: entry.index,
                    at: "2026-11-02T00:00:00Z".into(),
                },
                None => return Vec::new(),
            }
        }
        Reopen(number) => {
            let archives = store.archives(&key("crab", "user")).await;
            let archives = archives.expect("archives").into_iter();
            match archives.into_iter().find(|info| info.index == *number) {
                Some(info) => Record::Reopen {
                    marker: info.marker,
                    title: format!("before {number}"),
                    archived_at: "2026-11-02T00:00:00Z".into(),
                },
                None => return Vec::new(),
            }
        }
    };
    vec![state(1), marker, state(1)]
}

async fn play(store: &dyn Storage, acts: &[Act]) -> Opened {
    let key = key("crab", "user");
    for act in acts {
        let opened = store.open(&key, Some(new())).await.expect("opens");
        let mut opened = opened.expect("is created");
        let records = records(store, act).await;
        append(&mut opened.log, &records).await;
    }
    let opened = store.open(&key, Some(new())).await.expect("opens");
    opened.expect("is there")
}

fn summary_of(opened: &Opened) -> (Vec<String>, bool, usize, u64) {
    let history = told(&opened.history);
    (
        history,
        opened.has_summary,
        opened.kept,
        opened.archived_messages,
    )
}

/// What both stores make of it.
async fn both(acts: &[Act]) -> Opened {
    let home = Home::new();
    let on_disk = play(&home.store, acts).await;
    let memory = MemoryStore::default();
    let in_memory = play(&memory, acts).await;
    assert_eq!(summary_of(&on_disk), summary_of(&in_memory), "{acts:?}");
    let (pages, others) = (page(&home.store).await, page(&memory).await);
    let messages = |page: &Page| {
        let entries = page.entries.iter().filter(|entry| !entry.compact);
        entries
            .map(|e| e.message.content.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(messages(&pages), messages(&others));
    assert_eq!(pages.rewinds.len(), others.rewinds.len());
    on_disk
}

/// Contents of a history in one line.
fn line(opened: &Opened) -> String {
    let contents: Vec<&str> = opened.history.iter().map(|m| &*m.content).collect();
    contents.join(" ")
}

#[tokio::test]
async fn working_history_follows_the_markers() {
    let two = [Say("a"), Say("b")];
    let cases: &[(&[Act], &str)] = &[
        (&[Rewind(2)], "a a!"),
        (&[Rewind(0)], ""),
        (&[Rewind(2), Say("c")], "a a! c c!"),
        // Again, behind an earlier rewind, and into what that one hid.
        (&[Rewind(2), Say("c"), Rewind(4)], "a a!"),
        (&[Rewind(0), Say("c"), Rewind(2)], "a a!"),
        (&[Rewind(0), Say("c"), Rewind(4), Say("d")], "d d!"),
        // Over a compaction, and to behind it.
        (&[Compact("sum", 0), Say("c"), Rewind(2)], "a a!"),
        (&[Compact("sum", 0), Say("c"), Rewind(4)], "sum"),
        (
            &[Compact("sum", 2), Say("c"), Rewind(4), Say("d")],
            "sum b b! d d!",
        ),
        (&[Fresh, Say("c"), Rewind(4)], ""),
        // A compaction keeps messages from both sides of a rewind.
        (&[Rewind(2), Say("c"), Compact("sum", 3)], "sum a! c c!"),
        (&[Rewind(2), Compact("sum", 1), Say("c")], "sum a! c c!"),
        (
            &[Compact("one", 2), Rewind(4), Say("c"), Compact("two", 4)],
            "two b b! c c!",
        ),
        // Archives.
        (&[Fresh, Say("c"), Reopen(1)], "a a! b b!"),
        (
            &[Compact("sum", 1), Say("c"), Reopen(1), Say("d")],
            "a a! b b! d d!",
        ),
        (&[Fresh, Say("c"), Reopen(1), Reopen(2)], "c c!"),
        (
            &[Fresh, Say("c"), Reopen(1), Say("d"), Reopen(2), Reopen(3)],
            "a a! b b! d d!",
        ),
        (
            &[Compact("one", 1), Say("c"), Compact("two", 0), Reopen(2)],
            "one b! c c!",
        ),
        // A reopened archive is rewound and compacted.
        (&[Fresh, Say("c"), Reopen(1), Rewind(2)], "a a!"),
        (&[Fresh, Say("c"), Reopen(1), Rewind(4)], ""),
        (
            &[Fresh, Say("c"), Reopen(1), Say("d"), Compact("sum", 3)],
            "sum b! d d!",
        ),
        (&[Rewind(2), Fresh, Say("c"), Reopen(1)], "a a!"),
        (
            &[Fresh, Reopen(1), Compact("sum", 1), Reopen(3)],
            "a a! b b!",
        ),
    ];
    for (acts, want) in cases {
        let acts: Vec<Act> = two.iter().chain(*acts).cloned().collect();
        let opened = both(&acts).await;
        assert_eq!(line(&opened), *want, "{acts:?}");
        assert_eq!(opened.meta.title, if acts.len() > 2 { "kept" } else { "" });
    }
}

#[tokio::test]
async fn pages_archives_and_search_show_hidden_messages() {
    let home = Home::new();
    let acts = [
        Say("roof"),
        Say("door"),
        Rewind(2),
        Fresh,
        Say("c"),
        Reopen(1),
    ];
    play(&home.store, &acts).await;
    let shown = page(&home.store).await;
    let texts: Vec<&str> = shown.entries.iter().map(|e| &*e.message.content).collect();
    assert_eq!(texts, ["roof", "roof!", "door", "door!", "", "c", "c!", ""]);
    assert_eq!(shown.rewinds.len(), 2);
    assert_eq!(shown.rewinds[1].1, shown.entries[4].index);
    assert_eq!(shown.rewinds[0].1, shown.entries[2].index);
    let archives = home.store.archives(&key("crab", "user")).await;
    let archives = archives.expect("archives");
    let counts: Vec<u64> = archives.iter().map(|info| info.message_count).collect();
    assert_eq!(counts, [4, 2]);
    assert_eq!(archives[1].title, "before 1");
    let part = LogPart::Archive(key("crab", "user"), 1);
    let first = home.store.page(&part, None, 10).await.expect("a page");
    assert_eq!(first.entries.len(), 4);
    let list = home.store.list(None, None).await.expect("a list");
    assert_eq!(list[0].message_count, 6);
    while home.store.maintain().await.expect("indexes") {}
    let search = Search {
        words: vec!["door".into()],
        agent: None,
        sender: None,
        reach: Arc::new(|_| true),
        limit: 10,
    };
    let hits = home.store.search(search).await.expect("hits");
    assert_eq!(hits.hits.len(), 2);
}

/// Each cut leaves the history as it was before the marker or after it.
#[tokio::test]
async fn marker_cut_anywhere_leaves_a_whole_history() {
    let start = [Say("a"), Say("b"), Fresh, Say("c")];
    let cases = [(Rewind(2), "a a!"), (Reopen(1), "a a! b b!")];
    for (act, after) in cases {
        let mut home = Home::new();
        play(&home.store, &start).await;
        let name = home.names().remove(0);
        let before = home.read(&name).len();
        play(&home.store, &[act]).await;
        let named = home.names().remove(0);
        let whole = home.read(&named);
        let lines: Vec<usize> = line_ends(&whole[before..]).map(|at| before + at).collect();
        for cut in (before..=whole.len()).step_by(5) {
            home.write(&named, &whole[..cut]);
            home.restart();
            let opened = home.loaded("crab", "user").await;
            // A line is whole without its newline, too.
            let want = if cut >= lines[1] { after } else { "c c!" };
            assert_eq!(line(&opened), want, "at {cut}");
            assert_eq!(opened.meta.title, "kept");
            assert_eq!(opened.requests, [("req-1".to_owned(), 1)]);
        }
    }
}

/// Offsets of the ends of lines.
fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(at, _)| at)
}

/// A marker without readable state beside it.
#[tokio::test]
async fn state_is_found_before_a_damaged_marker_batch() {
    let mut home = Home::new();
    play(&home.store, &[Say("a"), Fresh, Say("b"), Rewind(0)]).await;
    let name = home.names().remove(0);
    let text = String::from_utf8(home.read(&name)).expect("text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let count = lines.len();
    assert!(lines[count - 2].contains("\"rewind\""));
    for broken in [count - 3, count - 1] {
        lines[broken] = format!("#{}", &lines[broken][1..]);
    }
    lines.push(r#"{"role":"user","content":"c"}"#.to_owned());
    home.write(&name, lines.join("\n") + "\n");
    home.restart();
    let opened = home.loaded("crab", "user").await;
    assert_eq!(line(&opened), "c");
    assert_eq!(opened.requests, [("req-1".to_owned(), 1)]);
}

/// An edit by hand moves the lines to which markers point.
#[tokio::test]
async fn moved_targets_hide_nothing() {
    for (act, want) in [(Rewind(2), "a a! b b! c"), (Reopen(1), "c")] {
        let mut home = Home::new();
        let acts = [Say("a"), Say("b"), act.clone()];
        match act {
            Rewind(_) => play(&home.store, &acts).await,
            act @ (Say(_) | Compact(..) | Fresh | Reopen(_)) => {
                play(&home.store, &[Say("a"), Fresh, Say("b"), act]).await
            }
        };
        let name = home.names().remove(0);
        let text = String::from_utf8(home.read(&name)).expect("text");
        let text = text.replacen("\n", "\n{\"note\":1}\n", 1);
        home.write(&name, text + "{\"role\":\"user\",\"content\":\"c\"}\n");
        home.restart();
        let opened = home.loaded("crab", "user").await;
        assert_eq!(line(&opened), want);
    }
}

/// Loading reads the last lines and the place to which the marker points, not what
/// lies between.
#[tokio::test]
async fn hidden_messages_are_not_read() {
    let mut home = Home::new();
    play(&home.store, &[Say("a"), Say("b")]).await;
    let rewind = records(&home.store, &Rewind(2)).await;
    let mut opened = home.loaded("crab", "user").await;
    let many: Vec<Record> = (0..3_000).map(|_| said(&"word ".repeat(60))).collect();
    append(&mut opened.log, &many).await;
    append(&mut opened.log, &rewind).await;
    drop(opened);
    home.restart();
    home.disk.bytes_read();
    let opened = home.loaded("crab", "user").await;
    assert_eq!(line(&opened), "a a!");
    assert_eq!(opened.archived_messages, 3_002);
    let read = home.disk.bytes_read();
    assert!(read < 64 * 1024, "{read} bytes");
}

/// A call that lost its result at the place of a rewind is as it was there.
#[tokio::test]
async fn rewind_keeps_calls_and_results_together() {
    let home = Home::new();
    let mut calls = Message::assistant("");
    calls.tool_calls = vec![crabtalk_domain::ToolCall {
        id: "1".into(),
        name: "t".into(),
        arguments: "{}".into(),
    }];
    let mut opened = home.open("crab", "user").await;
    let records = [
        user("a"),
        Record::Message(Arc::new(calls)),
        Record::Message(Arc::new(Message::tool("1", "done", false))),
        said("a!"),
    ];
    append(&mut opened.log, &records).await;
    drop(opened);
    let opened = play(&home.store, &[Say("b"), Rewind(4)]).await;
    assert_eq!(line(&opened), "a  done a!");
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        5 => proptest::sample::select(vec!["a", "b", "c", "d", "e"]).prop_map(Say),
        2 => (0..5_usize).prop_map(|keep| Compact("sum", keep)),
        1 => Just(Fresh),
        2 => (0..12_usize).prop_map(Rewind),
        2 => (1..4_u32).prop_map(Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// The file, read from its end, and the records, replayed from the beginning.
    #[test]
    fn any_order_of_markers_reads_as_replayed(acts in proptest::collection::vec(any_act(), 1..14)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut said = 0;
        // Compactions keep no more than there is.
        let acts: Vec<Act> = acts.into_iter().map(|act| match act {
            Say(text) => { said += 2; Say(text) }
            Rewind(n) => { said = 0; Rewind(n) }
            Reopen(n) => { said = 0; Reopen(n) }
            Fresh => { said = 0; Fresh }
            Compact(sum, keep) => { said = keep.min(said); Compact(sum, said) }
        }).collect();
        runtime.block_on(both(&acts));
    }
}
