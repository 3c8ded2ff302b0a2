use super::output;
use crate::tests::Fake;
use crate::text::local;

#[tokio::test]
async fn cron_tables_show_local_times_sender_quiet_hours_and_folder() {
    let fake = Fake::start().await;
    let [next, due, began, first, last] = [
        "2026-11-22T08:00:00Z",
        "2026-11-21T08:00:00Z",
        "2026-11-21T08:00:01Z",
        "2026-11-19T08:00:00Z",
        "2026-11-20T08:00:00Z",
    ]
    .map(local);
    let skipped = format!("{first} to {last}");
    for (words, cells) in [
        (
            "cron list",
            &[
                "user/house",
                "23:00-07:00",
                "/src/house",
                "/review the branches",
                "$0.0068",
            ][..],
        ),
        (
            "cron show 3",
            &["user/house", "23:00-07:00", "/src/house", &next],
        ),
        (
            "cron runs",
            &[
                &due,
                &began,
                "1.5 s",
                &skipped,
                "skipped 2 times",
                "quiet hours",
            ],
        ),
    ] {
        let table = output(&fake, words).await;
        for cell in cells {
            assert!(table.contains(cell), "{words}: {cell}: {table}");
        }
    }
}

#[tokio::test]
async fn cron_edit_changes_the_arguments() {
    let mut fake = Fake::start().await;
    output(&fake, "cron edit 3 --args all").await;
    assert_eq!(fake.next_told().await, "set 3 Some(\"all\")");
    output(&fake, "cron edit 3 --args none").await;
    assert_eq!(fake.next_told().await, "set 3 Some(\"\")");
}
