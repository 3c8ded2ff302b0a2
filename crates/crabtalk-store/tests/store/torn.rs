//! A log cut off anywhere opens again.

use crate::support::*;
use crabtalk_domain::storage::*;

const NAME: &str = "crab_user_1.jsonl";
const TORN: &str = "crab_user_1.jsonl.torn";

async fn sample(home: &Home) -> Vec<u8> {
    let mut log = home.open("crab", "user").await.log;
    append(
        &mut log,
        &[
            Record::Run(run(1, RunPhase::Start)),
            user("h\u{e9}llo \u{1f980}\n"),
        ],
    )
    .await;
    append(
        &mut log,
        &[said("\u{4f60}\u{597d}"), compact("\u{1f99e} sum", 1)],
    )
    .await;
    append(
        &mut log,
        &[Record::Meta(MetaRecord::default()), user("last \u{1f980}")],
    )
    .await;
    home.read(NAME)
}

#[tokio::test]
async fn log_cut_at_any_byte_opens_with_all_whole_lines() {
    let mut home = Home::new();
    let bytes = sample(&home).await;
    let head = bytes.iter().position(|b| *b == b'\n').expect("line 1");
    for cut in 0..=bytes.len() {
        std::fs::remove_dir_all(home.sessions()).expect("clean");
        home.write(NAME, &bytes[..cut]);
        home.restart();
        if cut < head {
            // Without an identity the log belongs to no pair, and the first pair to open it takes it.
            assert!(home.find("crab", "user").await.is_none(), "cut {cut}");
            assert!(home.store.list(None, None).await.expect("lists").is_empty());
            let mut opened = home.open("crab", "user").await;
            append(&mut opened.log, &[user("new")]).await;
            let kept = if cut == 0 {
                vec![NAME]
            } else {
                vec![NAME, TORN]
            };
            assert_eq!(home.names(), kept, "cut {cut}");
            home.restart();
            let opened = home.loaded("crab", "user").await;
            assert_eq!(told(&opened.history), ["user: new"]);
            continue;
        }
        // A line is whole with its last brace; the newline is made up for.
        let whole = match bytes.get(cut) {
            Some(b'\n') => cut,
            _ => {
                bytes[..cut]
                    .iter()
                    .rposition(|b| *b == b'\n')
                    .expect("line 1")
                    + 1
            }
        };
        // Without its message, the start of a run goes as well.
        let whole = match line_before(&bytes[..whole]) {
            (at, line) if line["run"]["event"] == "start" => at,
            _ => whole,
        };
        let mut opened = home.loaded("crab", "user").await;
        let expected: Vec<Line> = lines(&bytes[..whole]);
        let mut want = history(&expected);
        assert_eq!(told(&opened.history), want, "cut {cut}");
        append(&mut opened.log, &[user("next")]).await;
        want.push("user: next".into());
        home.restart();
        assert_eq!(told(&home.loaded("crab", "user").await.history), want);
        let log = home.read(NAME);
        assert_eq!(&log[..whole], &bytes[..whole], "cut {cut}");
        assert_eq!(
            log[whole..].iter().filter(|b| **b == b'\n').count(),
            if whole == cut && bytes.get(cut) == Some(&b'\n') {
                2
            } else {
                1
            }
        );
        if whole < cut {
            assert_eq!(home.read(TORN), &bytes[whole..cut], "cut {cut}");
        } else {
            assert_eq!(home.names(), [NAME], "cut {cut}");
        }
    }
}

type Line = serde_json::Value;

/// The last line and its offset.
fn line_before(bytes: &[u8]) -> (usize, Line) {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let at = body
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let line = serde_json::from_slice(&body[at..]).expect("a whole line");
    (at, line)
}

fn lines(bytes: &[u8]) -> Vec<Line> {
    let parse = |line: &[u8]| serde_json::from_slice(line).expect("a whole line");
    bytes
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(parse)
        .collect()
}

/// The working history by the letter of STORE-1, from the beginning.
fn history(lines: &[Line]) -> Vec<String> {
    let (mut all, mut working) = (Vec::new(), Vec::new());
    for line in lines {
        if let Some(role) = line["role"].as_str() {
            let text = format!("{role}: {}", line["content"].as_str().unwrap_or_default());
            all.push(text.clone());
            working.push(text);
        } else if let Some(summary) = line["compact"].as_str() {
            let keep = line["keep"].as_u64().unwrap_or(0) as usize;
            working = vec![format!("user: {summary}")];
            working.extend_from_slice(&all[all.len() - keep..]);
        }
    }
    working
}

#[tokio::test]
async fn run_start_without_its_message_never_began() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    append(
        &mut log,
        &[
            Record::Run(run(1, RunPhase::Start)),
            user("a"),
            Record::Run(run(1, RunPhase::End)),
        ],
    )
    .await;
    let before = home.read(NAME);
    append(&mut log, &[Record::Run(run(2, RunPhase::Start)), user("b")]).await;
    let whole = home.read(NAME);
    for cut in before.len()..whole.len() - 2 {
        home.write(NAME, &whole[..cut]);
        home.restart();
        let opened = home.loaded("crab", "user").await;
        assert_eq!((opened.last_run, opened.open_run), (1, None), "cut {cut}");
        assert_eq!(opened.requests, [("req-1".into(), 1)], "cut {cut}");
        assert_eq!(home.read(NAME), before, "cut {cut}");
    }
    // One that is carried on has its message further up.
    let again = RunRecord {
        tries: 1,
        ..run(2, RunPhase::Start)
    };
    let mut log = home.loaded("crab", "user").await.log;
    append(&mut log, &[Record::Run(again.clone())]).await;
    home.restart();
    let opened = home.loaded("crab", "user").await;
    assert_eq!(opened.open_run, Some(again));
}

#[tokio::test]
async fn torn_bytes_pile_up_and_are_never_replaced() {
    let home = Home::new();
    let bytes = sample(&home).await;
    home.write(TORN, "earlier");
    home.write(NAME, [&bytes[..], b"{\"role\":\"us"].concat());
    assert_eq!(home.loaded("crab", "user").await.history.len(), 3);
    assert_eq!(home.read(TORN), b"earlier\n{\"role\":\"us");
    assert_eq!(home.read(NAME), bytes);
}

#[tokio::test]
async fn garbage_at_the_end_is_torn_even_with_a_newline() {
    let home = Home::new();
    let bytes = sample(&home).await;
    home.write(NAME, [&bytes[..], b"{\"role\":\"us\n"].concat());
    assert_eq!(home.loaded("crab", "user").await.history.len(), 3);
    assert_eq!(home.read(NAME), bytes);
    // Only the last line can be torn: earlier lines were once complete.
    let broken = [&bytes[..], b"{\"role\":\"us\n{\"role\":\"as\n"].concat();
    home.write(NAME, &broken);
    let opened = home.loaded("crab", "user").await;
    assert_eq!(opened.history.len(), 3);
    assert_eq!(home.read(NAME), [&bytes[..], b"{\"role\":\"us\n"].concat());
}

#[tokio::test]
async fn lines_after_lost_bytes_are_recovered() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    for n in 0..30 {
        append(&mut log, &[user(&n.to_string())]).await;
    }
    drop(log);
    let whole = home.read(NAME);
    let all: Vec<String> = (0..30).map(|n| format!("user: {n}")).collect();
    let newlines: Vec<usize> = (0..whole.len()).filter(|at| whole[*at] == b'\n').collect();
    // A byte within a message, a line's end, a block over three lines.
    let (eleventh, ends) = (newlines[11], newlines[12]);
    let holes = [
        (eleventh + 5..eleventh + 6, vec![10]),
        (ends..ends + 1, vec![]),
        (eleventh + 5..newlines[13] + 5, vec![10, 11, 12]),
    ];
    for (hole, lost) in holes {
        let mut spoilt = whole.clone();
        spoilt[hole.clone()].fill(0);
        home.write(NAME, &spoilt);
        home.restart();
        let mut want = all.clone();
        lost.iter().rev().for_each(|at| drop(want.remove(*at)));
        let mut opened = home.loaded("crab", "user").await;
        assert_eq!(told(&opened.history), want, "{hole:?}");
        let source = LogPart::Conversation(key("crab", "user"));
        let page = home.store.page(&source, None, 100).await.expect("reads");
        assert_eq!(page.entries.len(), want.len(), "{hole:?}");
        assert_eq!(home.read(NAME), spoilt, "its bytes are kept");
        append(&mut opened.log, &[user("next")]).await;
        want.push("user: next".into());
        home.restart();
        let opened = home.loaded("crab", "user").await;
        assert_eq!(told(&opened.history), want);
        assert_eq!(home.names(), [NAME]);
    }
}

#[tokio::test]
async fn unwritten_last_block_is_torn() {
    let home = Home::new();
    let bytes = sample(&home).await;
    for lost in [&b"\0\0\0\0\0\0"[..], b"{\"role\":\"us\0\0\0\0\0\0\0\0"] {
        let _ = std::fs::remove_file(home.sessions().join(TORN));
        home.write(NAME, [&bytes[..], lost].concat());
        let opened = home.loaded("crab", "user").await;
        assert_eq!(opened.history.len(), 3);
        assert_eq!(home.read(NAME), bytes);
        assert!(home.read(TORN).ends_with(lost));
    }
}

#[tokio::test]
async fn crash_after_marker_keeps_title_and_request() {
    let mut home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let begun = |id| Record::Run(run(id, RunPhase::Start));
    append(&mut log, &[begun(1), user("one"), titled("Before")]).await;
    append(&mut log, &[begun(2), said("two"), titled("A garden")]).await;
    append(&mut log, &[compact("sum", 0), titled("A garden")]).await;
    drop(log);
    let name = "crab_user_1_a-garden.jsonl";
    let whole = home.read(name);
    home.write(name, &whole[..whole.len() - 20]);
    home.restart();
    let listed = home.store.list(None, None).await.expect("lists");
    assert_eq!(listed[0].meta.title, "A garden");
    assert_eq!(listed[0].message_count, 2);
    let opened = home.loaded("crab", "user").await;
    assert_eq!(opened.meta.title, "A garden");
    let known: Vec<u64> = opened.requests.iter().map(|(_, run)| *run).collect();
    assert_eq!(known, [1, 2], "none of them runs again");
}

#[tokio::test]
async fn missing_newline_is_added_after_a_refused_append() {
    let home = Home::new();
    let bytes = sample(&home).await;
    home.write(NAME, &bytes[..bytes.len() - 1]);
    let mut opened = home.loaded("crab", "user").await;
    home.disk.fail(|op, n| {
        let fault = if n == 0 {
            Fault::Short(5)
        } else {
            Fault::Error(std::io::ErrorKind::StorageFull)
        };
        (op == Op::Write).then_some(fault)
    });
    opened
        .log
        .append(&[user("refused")])
        .await
        .expect_err("full");
    home.disk.heal();
    append(&mut opened.log, &[user("taken")]).await;
    let history = home.loaded("crab", "user").await.history;
    assert_eq!(history.len(), 4);
    assert_eq!(history[3].content, "taken");
}
