//! Archived turns.

use super::*;

#[tokio::test]
async fn archives_are_read_once_and_only_what_was_said() {
    let world = World::new();
    let mut calls = Message::assistant("Let me look at the zeppelin.");
    calls.tool_calls = vec![ToolCall {
        id: "1".into(),
        name: "bash".into(),
        arguments: "argumentword".into(),
    }];
    calls.at = "2026-01-05T10:00:00Z".into();
    let mut guest = said(
        Role::Assistant,
        "Airships need helium.",
        "2026-01-05T10:02:00Z",
    );
    guest.agent = "ada".into();
    world.archive(
        "user",
        &[
            said(
                Role::User,
                "<recall>\n- recalledword\n</recall> Show the zeppelin",
                "",
            ),
            calls,
            Message::tool("1", "resultword", false),
            guest,
        ],
    );
    for absent in [
        "argumentword",
        "resultword",
        "compactedsummary",
        "recalledword",
    ] {
        assert!(world.titles("user", absent).await.is_empty(), "{absent}");
    }
    let hits = world
        .memory
        .recall(&viewer("user"), "zeppelin", 9)
        .await
        .hits;
    assert_eq!(hits[0].snippet, "Let me look at the zeppelin.");
    assert_eq!(
        (hits[0].title.as_str(), hits[0].at.as_str()),
        ("Archive 1", "2026-01-05T10:00:00Z")
    );
    let ada = world
        .memory
        .recall(&viewer("user"), "what did Ada say about helium", 1)
        .await
        .hits;
    let FoundIn::Archive {
        speaker, index: 1, ..
    } = &ada[0].source
    else {
        panic!("{ada:?}")
    };
    assert_eq!(speaker, "ada");

    let read = world.shelf.pages.load(Ordering::Relaxed);
    world.titles("user", "zeppelin").await;
    assert_eq!(
        world.shelf.pages.load(Ordering::Relaxed),
        read,
        "nothing is read twice"
    );
    world.archive(
        "user",
        &[said(Role::User, "A new xylophone", "2026-02-05T10:00:00Z")],
    );
    assert_eq!(world.titles("user", "xylophone").await[0], "Archive 2");
    assert_eq!(
        world.shelf.pages.load(Ordering::Relaxed),
        read + 1,
        "only what is new"
    );
    world.shelf.archives.lock().unwrap().clear();
    assert!(
        world.titles("user", "xylophone").await.is_empty(),
        "a removed conversation is gone"
    );
}

/// The oldest of them says where the walrus lives.
fn long_ago(turns: usize) -> Vec<Message> {
    let filler = |n| {
        let text = format!("entry {n} about the weather {}", "and wind ".repeat(100));
        said(Role::User, &text, "2026-01-05T10:00:00Z")
    };
    let text = "The walrus lives in the bathtub";
    let oldest = said(Role::User, text, "2026-01-04T10:00:00Z");
    std::iter::once(oldest)
        .chain((1..turns).map(filler))
        .collect()
}

const WALRUS: &str = "Where does the walrus live?";

#[tokio::test]
async fn first_recall_finds_oldest_turn_of_long_archives() {
    let mut world = World::new();
    // Far fewer than a slow machine reads before a recall stops waiting.
    world.archive("user", &long_ago(300));
    world.archive("user", &long_ago(3)[1..]);
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    assert!(world.pages_read() > 25, "it had to be read once");
    world.restart();
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    assert!(world.injected("user", WALRUS).await.contains("bathtub"));
    assert_eq!(world.pages_read(), 0, "the index outlives the daemon");
}

#[tokio::test]
async fn no_run_waits_for_what_is_archived() {
    let mut world = World::new();
    world.archive("user", &long_ago(1_200));
    for _ in 0..3 {
        assert_eq!(world.injected("user", WALRUS).await, "");
        assert_eq!(world.pages_read(), 0);
    }
    world.rest().await;
    assert!(world.injected("user", WALRUS).await.contains("bathtub"));
    // A known conversation is checked once.
    world.restart();
    world.injected("user", "hi walrus").await;
    world.rest().await;
    world.injected("user", "hi walrus").await;
    assert!(world.is_idle().await);
}

#[tokio::test]
async fn a_log_that_says_otherwise_is_believed() {
    let world = World::new();
    world.archive("user", &long_ago(3));
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    // The same archive by all that a list tells, with other words in it.
    let other = said(
        Role::User,
        "The walrus moved to the pond",
        "2026-01-04T10:00:00Z",
    );
    world
        .shelf
        .archives
        .lock()
        .unwrap()
        .get_mut(&key("user"))
        .unwrap()[0][0] = other;
    let injected = world.injected("user", WALRUS).await;
    assert!(!injected.contains("bathtub"), "{injected}");
    world.rest().await;
    assert!(world.injected("user", WALRUS).await.contains("pond"));
    // Removed and created again.
    world.shelf.archives.lock().unwrap().clear();
    world.archive(
        "user",
        &[said(Role::User, "A kettle", "2026-02-04T10:00:00Z")],
    );
    assert_eq!(world.titles("user", "walrus kettle").await, ["Archive 1"]);
    assert_eq!(world.injected("user", WALRUS).await, "");
}

#[tokio::test]
async fn unreadable_archive_hides_no_results_and_fails_no_turn() {
    let world = World::new();
    world.archive("user", &long_ago(3));
    world.titles("user", WALRUS).await;
    world.archive("user", &long_ago(1)[..]);
    world.shelf.broken.store(true, Ordering::Relaxed);
    world.memory.archives().note(&key("user"));
    world.rest().await;
    let recalled = world.memory.recall(&viewer("user"), WALRUS, 3).await;
    assert_eq!(recalled.hits[0].title, "Archive 1");
    assert!(!recalled.complete);
    let query = serde_json::json!({ "query": WALRUS });
    let told = world.call("user", "recall", query.clone()).await.content;
    assert!(told.contains("bathtub") && told.contains("Some archives were not searched"));
    world.pages_read();
    assert!(world.injected("user", WALRUS).await.contains("bathtub"));
    assert!(world.is_idle().await);
    world.shelf.broken.store(false, Ordering::Relaxed);
    let titles = world.titles("user", WALRUS).await;
    assert!(titles.contains(&"Archive 2".to_owned()), "{titles:?}");
    let told = world.call("user", "recall", query).await.content;
    assert!(!told.contains("Some archives"), "{told}");
}

#[tokio::test]
async fn just_archived_conversations_are_indexed_first() {
    let world = World::new();
    world.archive("tg:1", &long_ago(2_000));
    world.injected("tg:1", WALRUS).await;
    world.archive("user", &long_ago(3));
    world.memory.archives().note(&key("user"));
    let filling = world.memory.archives().fill();
    let found = async {
        while !world.injected("user", WALRUS).await.contains("bathtub") {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = filling => {}
        () = found => {}
    }
    assert_eq!(world.injected("tg:1", WALRUS).await, "");
}

#[tokio::test]
async fn neighbouring_archives_rank_as_one_conversation() {
    let world = World::new();
    let at = "2026-01-05T10:00:00Z";
    world.archive(
        "user",
        &[said(Role::User, "Where does the walrus sleep?", at)],
    );
    world.archive("user", &[said(Role::Assistant, "In the bathtub.", at)]);
    world.archive("tg:1", &[said(Role::Assistant, "In the garden.", at)]);
    let hits = world.memory.recall(&viewer("user"), WALRUS, 5).await.hits;
    let mut found: Vec<&str> = hits.iter().map(|hit| hit.snippet.as_str()).collect();
    found.sort_unstable();
    // The answer shares no word with the question.
    assert_eq!(found, ["In the bathtub.", "Where does the walrus sleep?"]);
}

#[tokio::test]
async fn deleted_index_is_made_again() {
    let mut world = World::new();
    world.archive("user", &long_ago(40));
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    std::fs::remove_dir_all(world.home.path().join("state")).unwrap();
    world.restart();
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
}

#[tokio::test]
async fn forgotten_conversation_is_not_found() {
    let world = World::new();
    world.archive("user", &long_ago(3));
    world.titles("user", WALRUS).await;
    world.memory.archives().forget(&key("user")).await;
    assert_eq!(world.injected("user", WALRUS).await, "");
}
