//! Entries of the worst sort, and files that somebody broke.

use super::{create, crons_file, fired, listed, over, reload, rows, yearly};
use crate::rig::{TestEnv, eventually, skip};
use crabtalk_proto::{Client, CreateCronMsg};
use std::fmt::Write as _;
use std::fs;

#[tokio::test]
async fn garbage_in_the_file_costs_what_it_is_and_no_more() {
    let env = TestEnv::new();
    let good = "[[cron]]\nid = 2\nschedule = \"@daily\"\ncontent = \"look\"\n";
    let text = format!("[[cron]]\nid = 1\nschedule = \"61 * * * *\"\ncontent = \"a\"\n{good}[x]\n");
    env.write(".crabtalk/config/crons.toml", &text);
    let daemon = env.daemon().await;
    let crons = listed(&env).await;
    let ids: Vec<u64> = crons.iter().map(|cron| cron.id).collect();
    // Entry 1 and the table x are told, entry 2 is scheduled.
    assert_eq!(ids, [0, 1, 2]);
    assert!(
        crons[1].problem.contains("crons.toml:1: the minute field"),
        "{crons:?}"
    );
    assert!(!crons[2].next_fire.is_empty());
    assert!(
        daemon.stderr().contains("the minute field"),
        "{}",
        daemon.stderr()
    );
    // No TOML at all: everything stays, and nothing is written over.
    env.write(".crabtalk/config/crons.toml", "[[cron]\nnonsense");
    let (_, errors) = reload(&env).await;
    assert!(errors[0].contains("crons.toml:1: "), "{errors:?}");
    assert_eq!(listed(&env).await.len(), 3);
    let mut connection = env.connect().await;
    assert!(connection.create_cron(yearly("x")).await.is_err());
    assert_eq!(
        fs::read_to_string(crons_file(&env)).unwrap(),
        "[[cron]\nnonsense"
    );
    daemon.kill().await;
    // Nor does it keep a daemon from starting.
    let _daemon = env.daemon().await;
    assert_eq!(listed(&env).await, []);
}

#[tokio::test]
async fn a_zone_that_is_gone_keeps_its_entry_from_firing_and_no_other() {
    let env = TestEnv::new();
    let text = "[[cron]]\nid = 1\nschedule = \"@daily\"\nzone = \"Europe/Atlantis\"\ncontent = \"a\"\n\
        [[cron]]\nid = 2\nschedule = \"@daily\"\nzone = \"Asia/Tokyo\"\ncontent = \"b\"\n";
    env.write(".crabtalk/config/crons.toml", text);
    let _daemon = env.daemon().await;
    let crons = listed(&env).await;
    assert!(
        crons[0]
            .problem
            .contains("no time zone \"Europe/Atlantis\""),
        "{crons:?}"
    );
    assert!(crons[1].next_fire.ends_with("+09:00"), "{crons:?}");
    assert_eq!(fs::read_to_string(crons_file(&env)).unwrap(), text);
}

#[tokio::test]
async fn ten_thousand_entries_are_listed_and_the_daemon_idles() {
    let env = TestEnv::new();
    env.config("[limits]\ncrons = 10000\n");
    let mut text = String::new();
    for id in 1..=10_050 {
        let entry = format!("[[cron]]\nid = {id}\nschedule = \"0 0 1 1 *\"\ncontent = \"x\"\n");
        text.push_str(&entry);
    }
    env.write(".crabtalk/config/crons.toml", &text);
    let daemon = env.daemon().await;
    let crons = listed(&env).await;
    let taken = crons.iter().filter(|cron| cron.problem.is_empty()).count();
    assert_eq!((taken, crons.len()), (10_000, 10_050));
    let mut connection = env.connect().await;
    let more = connection.create_cron(yearly("x")).await.unwrap_err();
    assert_eq!(more.code(), Some(429), "{more}");
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.pid().as_raw_nonzero()));
        let stat = stat.ok()?;
        let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
        Some(fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?)
    };
    let Some(mut before) = ticks() else {
        return skip(
            "ten_thousand_entries_are_listed_and_the_daemon_idles",
            "no /proc",
        );
    };
    // What its start left to do may come first.
    eventually(
        "two idle seconds with three hundredths of work at most",
        async || {
            tokio::time::sleep(std::time::Duration::from_secs(2)).await;
            let now = ticks().unwrap();
            let used = now - std::mem::replace(&mut before, now);
            (used <= 3).then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn books_that_cannot_be_written_stop_the_firing_and_nothing_else() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let id = create(&env, yearly("hello")).await.id;
    assert_eq!(fired(&env, id).await.outcome, "ok");
    daemon.terminate().await;
    // A folder lies where their database should be.
    let (records, kept) = (
        env.home.join("state/records.db"),
        env.home.join("state/kept"),
    );
    fs::rename(&records, &kept).unwrap();
    fs::create_dir(&records).unwrap();
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let request = crabtalk_proto::RunCronMsg { id };
    let refused = connection.run_cron(request).await.unwrap_err();
    assert!(refused.to_string().contains("records.db"), "{refused}");
    // Everything else goes on.
    let asked = env.run(&["ask", "hello", "--no-stdin"]).await.ok();
    assert!(asked.contains("hello"), "{asked}");
    daemon.terminate().await;
    // Mended, the books are what they were.
    fs::remove_dir(&records).unwrap();
    fs::rename(&kept, &records).unwrap();
    let _daemon = env.daemon().await;
    assert_eq!(fired(&env, id).await.outcome, "ok");
    assert_eq!(rows(&env, id).await.len(), 2);
}

#[tokio::test]
async fn bad_requests_are_refused_in_words() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let folder = env.work.join("none").display().to_string();
    let quiet = |start: &str, end: &str| CreateCronMsg {
        quiet_start: Some(start.into()),
        quiet_end: Some(end.into()),
        ..yearly("x")
    };
    let cases = [
        (
            400,
            "the minute field",
            CreateCronMsg {
                schedule: "x * * * *".into(),
                ..yearly("x")
            },
        ),
        (400, "something to say", yearly(" ")),
        (400, "no time of day", quiet("25:00", "07:00")),
        (400, "no time of day", quiet("25:00", "")),
        (
            404,
            "nobody",
            CreateCronMsg {
                agent: "nobody".into(),
                ..yearly("x")
            },
        ),
        (
            400,
            "not a folder",
            CreateCronMsg {
                cwd: Some(folder),
                ..yearly("x")
            },
        ),
        (
            400,
            "has passed",
            CreateCronMsg {
                schedule: String::new(),
                at: Some("2020-01-01 10:00".into()),
                ..yearly("x")
            },
        ),
        (
            400,
            "daemon's own",
            CreateCronMsg {
                sender: "delegate:1".into(),
                ..yearly("x")
            },
        ),
        (
            400,
            "or \"once\"",
            CreateCronMsg {
                missed: Some("often".into()),
                ..yearly("x")
            },
        ),
    ];
    for (code, want, request) in cases {
        let mut connection = env.connect().await;
        let refused = connection.create_cron(request).await.unwrap_err();
        assert_eq!(refused.code(), Some(code), "{refused}");
        assert!(refused.to_string().contains(want), "{want}: {refused}");
    }
    // One of two quiet hours alone means nothing.
    assert_eq!(create(&env, quiet("23:00", "")).await.id, 1);
    assert!(!crons_file(&env).with_extension("tmp").exists());
}

#[tokio::test]
async fn a_folder_that_is_gone_is_a_failed_run() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let place = env.work.join("soon-gone");
    fs::create_dir(&place).unwrap();
    let entry = CreateCronMsg {
        cwd: Some(place.display().to_string()),
        ..yearly("x")
    };
    let id = create(&env, entry).await.id;
    fs::remove_dir(&place).unwrap();
    let run = fired(&env, id).await;
    assert_eq!(run.outcome, "failed", "{run:?}");
    assert!(run.reason.contains("soon-gone"), "{run:?}");
}

/// Thirty entries at the same second, each in a conversation of its own: four
/// run at a time, and all of them once.
#[tokio::test]
async fn a_storm_is_spread() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(3);
    let mut text = String::new();
    for id in 1..=30 {
        writeln!(
            text,
            "[[cron]]\nid = {id}\nat = \"{soon}\"\nsender = \"cron:{id}\"\ncontent = \"x\""
        )
        .unwrap();
    }
    env.write(".crabtalk/config/crons.toml", &text);
    reload(&env).await;
    for id in 1..=30 {
        eventually("a run", async || rows(&env, id).await.pop()).await;
        let run = over(&env, id).await;
        assert_eq!(run.outcome, "ok", "{run:?}");
        assert_eq!(rows(&env, id).await.len(), 1);
    }
    eventually("the entries to go", async || {
        listed(&env).await.is_empty().then_some(())
    })
    .await;
}
