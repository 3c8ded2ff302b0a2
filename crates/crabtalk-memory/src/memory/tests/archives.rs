//! Archived turns.
//!
//! All of it in paused time, which stands still while anything works: how long a
//! question is patient never depends on how busy the machine is.

use super::*;

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn the_oldest_turn_of_long_archives_is_found_at_once() {
    let mut world = World::new();
    world.archive("user", &long_ago(1_200));
    world.archive("user", &long_ago(3)[1..]);
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    assert!(world.pages_read() > 100, "it had to be read once");
    world.restart();
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    assert!(world.injected("user", WALRUS).await.contains("bathtub"));
    assert_eq!(world.pages_read(), 0, "the index outlives the daemon");
}

#[tokio::test(start_paused = true)]
async fn no_run_waits_for_what_is_archived() {
    let mut world = World::new();
    world.archive("user", &long_ago(1_200));
    for _ in 0..3 {
        assert_eq!(world.injected("user", WALRUS).await, "");
        assert_eq!(world.pages_read(), 0);
    }
    world.rest().await;
    assert!(world.injected("user", WALRUS).await.contains("bathtub"));
    // A conversation that was met is looked at once.
    world.restart();
    world.injected("user", "hi walrus").await;
    world.rest().await;
    world.injected("user", "hi walrus").await;
    let rest = tokio::time::timeout(Duration::from_secs(60), world.rest()).await;
    assert!(rest.is_err(), "nothing is left to do");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_is_never_at_rest_indexes_a_step_now_and_then() {
    let world = World::new();
    world.archive("user", &long_ago(1_200));
    world.injected("user", WALRUS).await;
    let begun = Instant::now();
    world.memory.archives().fill(|| None).await;
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(4),
        "steps are far apart: {took:?}"
    );
    assert!(world.injected("user", WALRUS).await.contains("bathtub"));
}

#[tokio::test(start_paused = true)]
async fn between_turns_that_follow_each_other_nothing_is_indexed() {
    let world = World::new();
    world.archive("user", &long_ago(1_200));
    world.injected("user", WALRUS).await;
    let begun = Instant::now();
    // No look falls into a run, and each sees that there was another.
    let turns = || Some(begun.elapsed().as_millis() as u64 / 100);
    let filling = world.memory.archives().fill(turns);
    let within = tokio::time::timeout(Duration::from_millis(1_900), filling).await;
    assert!(within.is_err());
    assert!(world.index_files().is_empty());
    let begun = Instant::now();
    world.rest().await;
    let took = begun.elapsed();
    assert!(
        took < Duration::from_millis(600),
        "one wait for all: {took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_just_archived_is_indexed_before_anything_else() {
    let world = World::new();
    world.archive("tg:1", &long_ago(1_200));
    world.injected("tg:1", WALRUS).await;
    world.archive("user", &long_ago(3));
    let archives = world.memory.archives();
    let runs = std::cell::Cell::new(0);
    let busy = || {
        runs.set(runs.get() + 1);
        if runs.get() == 2 {
            archives.note(&key("user"));
        }
        None
    };
    let filling = archives.fill(busy);
    // The other one needs a rest that does not come within that time.
    let within = tokio::time::timeout(Duration::from_millis(500), filling).await;
    assert!(within.is_err());
    assert!(world.injected("user", WALRUS).await.contains("bathtub"));
    assert_eq!(world.injected("tg:1", WALRUS).await, "");
    archives.finish().await;
    assert!(world.injected("tg:1", WALRUS).await.contains("bathtub"));
}

#[tokio::test(start_paused = true)]
async fn many_small_archives_become_few_files_and_stay_findable() {
    let world = World::new();
    let said_in = |n: usize| format!("In part {n} we met animal{n} and {}", ["Ada", "Bo"][n % 2]);
    for n in 0..70 {
        let mut turn = said(Role::Assistant, &said_in(n), "2026-01-05T10:00:00Z");
        turn.agent = ["ada", "bo"][n % 2].into();
        world.archive("user", &[turn]);
        // As each compaction does.
        world.memory.archives().note(&key("user"));
        world.rest().await;
    }
    let files = world.index_files().len();
    assert!(files <= 14, "{files} files");
    for n in 0..70 {
        let hits = world
            .memory
            .recall(&viewer("user"), &format!("animal{n}"), 3)
            .await
            .hits;
        assert_eq!(
            (hits[0].title.clone(), &hits[0].snippet),
            (format!("Archive {}", n + 1), &said_in(n))
        );
        let FoundIn::Archive { speaker, .. } = &hits[0].source else {
            panic!("{hits:?}")
        };
        assert_eq!(speaker, ["ada", "bo"][n % 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_search_indexes_is_in_few_files_too() {
    let world = World::new();
    world.archive("user", &long_ago(3_000));
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    // Eight of one size become one; a turn opens them all.
    let files = world.index_files().len();
    assert!((1..=8).contains(&files), "{files} files");
}

#[tokio::test(start_paused = true)]
async fn whatever_lies_in_a_segments_place_is_put_aside_and_the_index_made_again() {
    let mut world = World::new();
    world.archive("user", &long_ago(40));
    let found = world.titles("user", WALRUS).await;
    assert!(!found.is_empty());
    let [file] = &world.index_files()[..] else {
        panic!("one file")
    };
    let file = file.clone();
    let folder = file.parent().unwrap().to_owned();
    let obstacles: [fn(&std::path::Path); 3] = [
        |path| std::fs::create_dir(path).unwrap(),
        |path| std::os::unix::fs::symlink("nowhere", path).unwrap(),
        |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
    ];
    for (at, obstruct) in obstacles.into_iter().enumerate() {
        std::fs::remove_file(&file).unwrap();
        // A socket's path is short.
        let here = std::env::temp_dir().join(format!("ct-{}-{at}", std::process::id()));
        obstruct(&here);
        std::fs::rename(&here, &file).unwrap();
        world.restart();
        world.titles("user", WALRUS).await;
        assert_eq!(world.titles("user", WALRUS).await, found, "obstacle {at}");
        std::fs::remove_dir_all(&folder).unwrap();
        world.restart();
        assert_eq!(world.titles("user", WALRUS).await, found);
    }
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "precious").unwrap();
    world.restart();
    world.titles("user", WALRUS).await;
    assert_eq!(world.titles("user", WALRUS).await, found);
    let mut aside = folder.into_os_string();
    aside.push(".foreign");
    assert_eq!(std::fs::read_to_string(aside).unwrap(), "precious");
}

#[tokio::test(start_paused = true)]
async fn a_damaged_index_is_made_again() {
    let mut world = World::new();
    world.archive("user", &long_ago(40));
    world.titles("user", WALRUS).await;
    let [file] = &world.index_files()[..] else {
        panic!("one file")
    };
    let whole = std::fs::read(file).unwrap();
    let step = whole.len() / 60;
    let cut = (0..whole.len())
        .step_by(step)
        .map(|at| whole[..at].to_vec());
    let flipped = (0..whole.len()).step_by(step).map(|at| {
        let mut bytes = whole.clone();
        bytes[at..(at + 8).min(whole.len())]
            .iter_mut()
            .for_each(|byte| *byte ^= 0xff);
        bytes
    });
    let foreign = [b"not an index at all".to_vec(), Vec::new()];
    for damaged in cut.chain(flipped).chain(foreign) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, &damaged).unwrap();
        world.restart();
        // Nothing is said that was not; what is broken mends itself.
        for hit in world.memory.recall(&viewer("user"), WALRUS, 3).await.hits {
            assert!(
                hit.snippet.contains("walrus") || hit.snippet.contains("weather"),
                "{hit:?}"
            );
        }
    }
    std::fs::write(file, &whole[..whole.len() / 2]).unwrap();
    world.restart();
    assert_eq!(world.titles("user", WALRUS).await[0], "Archive 1");
    assert_eq!(
        std::fs::read(file).unwrap(),
        whole,
        "made again, byte for byte"
    );
}

#[tokio::test(start_paused = true)]
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
    // Removed and begun anew.
    world.shelf.archives.lock().unwrap().clear();
    world.archive(
        "user",
        &[said(Role::User, "A kettle", "2026-02-04T10:00:00Z")],
    );
    assert_eq!(world.titles("user", "walrus kettle").await, ["Archive 1"]);
    assert_eq!(world.injected("user", WALRUS).await, "");
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_cannot_be_read_hides_nothing_and_costs_no_turn() {
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
    let rest = tokio::time::timeout(Duration::from_secs(60), world.rest()).await;
    assert!(rest.is_err() || world.pages_read() == 0);
    world.shelf.broken.store(false, Ordering::Relaxed);
    let titles = world.titles("user", WALRUS).await;
    assert!(titles.contains(&"Archive 2".to_owned()), "{titles:?}");
    let told = world.call("user", "recall", query).await.content;
    assert!(!told.contains("Some archives"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_conversation_leaves_nothing() {
    let world = World::new();
    world.archive("user", &long_ago(3));
    world.titles("user", WALRUS).await;
    let [file] = &world.index_files()[..] else {
        panic!("one file")
    };
    let bytes = std::fs::read(file).unwrap();
    let words = bytes
        .windows(6)
        .any(|six| six == b"walrus" || six == b"bathtu");
    assert!(!words, "no words in the index");
    world.memory.archives().forget(&key("user")).await;
    assert!(world.index_files().is_empty());
}
