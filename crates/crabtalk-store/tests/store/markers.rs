//! A marker and its state: neither a crash nor an old version causes a search.

use crate::support::*;
use crabtalk_domain::storage::*;

/// Far less than the archives of these tests, and more than any state.
const FEW_BYTES: u64 = 64 * 1024;

/// Name of the test's log.
const NAME: &str = "crab_user_1_kept.jsonl";

/// Archives a third of a megabyte, whose first run is open.
async fn archive(opened: &mut Opened) {
    let titled = MetaRecord {
        title: Some("kept".into()),
        ..MetaRecord::default()
    };
    append(
        &mut opened.log,
        &[
            Record::Meta(titled),
            Record::Run(run(1, RunPhase::Start)),
            user("x"),
        ],
    )
    .await;
    let many: Vec<Record> = (0..1_000).map(|_| said(&"word ".repeat(60))).collect();
    append(&mut opened.log, &many).await;
    let steered = MetaRecord {
        steers: Some(vec!["wait".into()]),
        ..MetaRecord::default()
    };
    append(&mut opened.log, &[Record::Meta(steered)]).await;
}

fn assert_is_as_archived(opened: &Opened) {
    assert_eq!(opened.meta.title, "kept");
    assert_eq!(opened.last_run, 1);
    assert_eq!(opened.open_run.as_ref().map(|run| run.id), Some(1));
    assert_eq!(opened.requests.len(), 1);
    assert_eq!(opened.steers, ["wait"]);
}

/// Loading never searches the archive for state, wherever a crash interrupts a compaction.
#[tokio::test]
async fn compaction_interrupted_anywhere_causes_no_search() {
    let mut home = Home::new();
    let mut opened = home.open("crab", "user").await;
    archive(&mut opened).await;
    let before = home.read(NAME).len();
    let state = MetaRecord {
        title: Some("kept".into()),
        last_run: Some(1),
        open_run: Some(run(1, RunPhase::Start)),
        requests: Some(vec![(run(1, RunPhase::Start).request_id, 1)]),
        steers: Some(vec!["wait".into()]),
        ..MetaRecord::default()
    };
    let records = [
        Record::Meta(state.clone()),
        compact("sum", 2),
        Record::Meta(state),
    ];
    append(&mut opened.log, &records).await;
    drop(opened);
    let whole = home.read(NAME);
    let marker = "\"compact\"".len() + place_of(&whole[before..], b"\"compact\"") + before;
    let end_of_marker = marker + place_of(&whole[marker..], b"\n") + 1;
    for cut in (end_of_marker..=whole.len()).step_by(7) {
        home.write(NAME, &whole[..cut]);
        home.restart();
        home.disk.bytes_read();
        let opened = home.loaded("crab", "user").await;
        let read = home.disk.bytes_read();
        assert!(read < FEW_BYTES, "{read} bytes at {cut}");
        assert_is_as_archived(&opened);
        assert_eq!(opened.history.len(), 3, "at {cut}");
    }
    // Without its marker, too, nothing is said twice.
    let state_alone = before + place_of(&whole[before..], b"\n") + 1;
    home.write(NAME, &whole[..state_alone]);
    home.restart();
    let opened = home.loaded("crab", "user").await;
    assert_is_as_archived(&opened);
    assert_eq!(opened.history.len(), 1_001);
}

/// Offset of one text in another.
fn place_of(bytes: &[u8], part: &[u8]) -> usize {
    let mut windows = bytes.windows(part.len());
    windows.position(|window| window == part).expect("is there")
}
