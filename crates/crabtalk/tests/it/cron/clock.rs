//! A clock that is set, for real: the daemon under `faketime`.

use super::{crons_file, listed, over, rows};
use crate::rig::{TestEnv, eventually, has_tools};
use std::fs;
use std::time::{Duration, SystemTime};

/// How far the daemon's clock is from the machine's, in seconds. The library
/// reads it anew with each call.
fn set(env: &TestEnv, seconds: i64) {
    fs::write(env.work.join("clock"), format!("{seconds:+}\n")).unwrap();
}

/// The library that `faketime` puts before a program.
fn library() -> Option<String> {
    let listed = std::process::Command::new("faketime")
        .args(["-f", "+0", "printenv", "LD_PRELOAD"])
        .output()
        .ok()?;
    let library = String::from_utf8(listed.stdout).ok()?;
    Some(library.trim().to_owned()).filter(|library| !library.is_empty())
}

#[tokio::test]
async fn a_clock_that_is_put_forward_and_back_fires_nothing_twice() {
    let test = "a_clock_that_is_put_forward_and_back_fires_nothing_twice";
    if !has_tools(test, &["faketime"]) {
        return;
    }
    let Some(library) = library() else {
        return crate::rig::skip(test, "faketime names no library");
    };
    let mut env = TestEnv::new();
    set(&env, 0);
    env.set("LD_PRELOAD", &library);
    env.set(
        "FAKETIME_TIMESTAMP_FILE",
        &env.work.join("clock").display().to_string(),
    );
    env.set("FAKETIME_NO_CACHE", "1");
    env.set("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let _daemon = env.daemon().await;
    // Due in six hours, by the machine's clock.
    let due = SystemTime::now() + Duration::from_secs(6 * 3600);
    let due = jiff::Timestamp::try_from(due).unwrap();
    let entry = |id: u64, missed: &str| {
        let local = due.to_zoned(jiff::tz::TimeZone::UTC);
        format!(
            "[[cron]]\nid = {id}\nschedule = \"{} {} * * *\"\nzone = \"UTC\"\nmissed = \"{missed}\"\n\
             sender = \"cron:{id}\"\ncontent = \"hello\"\n",
            local.minute(),
            local.hour()
        )
    };
    fs::write(crons_file(&env), entry(1, "skip") + &entry(2, "once")).unwrap();
    super::reload(&env).await;
    assert_eq!(listed(&env).await.len(), 2);
    // Eight hours forward: one is missed, the other made up for.
    set(&env, 8 * 3600);
    super::reload(&env).await;
    let missed = eventually("the missed one", async || rows(&env, 1).await.pop()).await;
    assert_eq!(
        (missed.outcome.as_str(), missed.reason.as_str()),
        ("skipped", "missed")
    );
    eventually("the late one", async || rows(&env, 2).await.pop()).await;
    let late = over(&env, 2).await;
    assert!(late.outcome == "ok" && late.late, "{late:?}");
    // Back, and to the due time once more: nothing twice.
    set(&env, 0);
    super::reload(&env).await;
    set(&env, 6 * 3600 + 90);
    super::reload(&env).await;
    // What is due after that shows that somebody has looked.
    let soon = crabtalk_proto::CreateCronMsg {
        schedule: String::new(),
        at: Some("in 1s".into()),
        sender: "cron:soon".into(),
        ..super::yearly("x")
    };
    let soon = super::create(&env, soon).await.id;
    eventually("the last one", async || rows(&env, soon).await.pop()).await;
    over(&env, soon).await;
    assert_eq!(
        (rows(&env, 1).await.len(), rows(&env, 2).await.len()),
        (1, 1)
    );
    // A year back: the clock was wrong, or is wrong now. What is due fires.
    set(&env, -365 * 86_400);
    let year = crabtalk_proto::CreateCronMsg {
        schedule: String::new(),
        at: Some("in 1s".into()),
        sender: "cron:year".into(),
        ..super::yearly("x")
    };
    let year = super::create(&env, year).await.id;
    eventually("the last one", async || rows(&env, year).await.pop()).await;
    assert_eq!(over(&env, year).await.outcome, "ok");
    let next = listed(&env).await.remove(0).next_fire;
    let next: jiff::Timestamp = next.parse().unwrap();
    assert!(next < jiff::Timestamp::now(), "{next} waits for a year");
}
