//! What stands between a start and the first answer, and between a message and
//! the model, by the system calls that are made.

use crate::rig::{ModelServer, TestEnv, can_trace, eventually, has_tools, skip, stream_to_end};
use crabtalk_proto::{Client, Ping, StreamMsg};
use crabtalk_testkit::scripted::{Script, openai};

/// Threads that are started before a daemon is ready: one that reads what the start
/// needs, and other files afterwards.
const MAX_THREADS: usize = 1;

/// Wakes between a message and the request for it when nothing has changed: by a
/// look at the folder that the client names, and by one at all that a run needs. Each
/// wakes twice, since tests are built with a clock that can be paused.
const MAX_HOPS: usize = 4;

/// What a daemon needs only once somebody asks it something, or never.
const LATER: &[&str] = &[
    "crons.toml",
    "subscriptions.toml",
    "events.jsonl",
    "state/cron/",
    "state/records.db",
    "state/trust.toml",
    "config/skills",
    "entries/",
    "sessions",
    "trash",
    "localtime",
];

/// The paths that lines of a trace open.
fn opened(trace: &str) -> impl Iterator<Item = &str> {
    let opens = trace.lines().filter(|line| line.contains("open"));
    opens.filter_map(|line| line.split('"').nth(1))
}

#[tokio::test]
async fn a_start_reads_and_starts_no_more_than_its_first_answer_needs() {
    let this = "a_start_reads_and_starts_no_more_than_its_first_answer_needs";
    if !has_tools(this, &["strace"]) {
        return;
    }
    if !can_trace() {
        return skip(this, "no process may be traced here");
    }
    let env = TestEnv::new();
    env.agent("crab", "description: the usual one");
    env.write(
        ".crabtalk/config/crons.toml",
        "[[cron]]\nid = 1\nschedule = \"0 9 * * *\"\ncontent = \"look\"\n",
    );
    env.write(
        ".crabtalk/config/skills/fly/SKILL.md",
        "---\nname: fly\ndescription: how to fly\n---\nFlap.\n",
    );
    env.write(
        ".crabtalk/config/memory/entries/a.md",
        "---\nname: a\n---\nA.\n",
    );
    let (daemon, trace) = env
        .traced_daemon("open,openat,clone,clone3,write,accept4,madvise")
        .await;
    env.connect().await.ping(Ping {}).await.unwrap();
    let said = StreamMsg {
        content: "hello".into(),
        ..StreamMsg::default()
    };
    stream_to_end(&env, said).await;
    // Cron has its entry by now, and whatever else begins by itself has begun.
    let listed = async || {
        env.run(&["cron", "list"])
            .await
            .ok()
            .contains("0 9")
            .then_some(())
    };
    eventually("the entry", listed).await;
    assert!(daemon.terminate().await.success());
    let whole = async || {
        let text = std::fs::read_to_string(&trace).unwrap_or_default();
        text.contains("shutting down").then_some(text)
    };
    let whole = eventually("the trace", whole).await;

    let (before, _) = whole.split_once("\"READY=1").unwrap();
    for path in opened(before) {
        let early = LATER.iter().find(|late| path.contains(**late));
        assert!(early.is_none(), "the start reads {path}");
    }
    assert!(opened(before).any(|path| path.ends_with("agents/crab.md")));
    let threads = before.lines().filter(|line| line.contains("CLONE_THREAD"));
    let threads: Vec<&str> = threads.collect();
    assert!(threads.len() <= MAX_THREADS, "{threads:#?}");
    // The code of the start is given back by the thread that serves, before it does. Another
    // one does so again a moment later.
    let (ready, behind) = whole.split_once("\"READY=1").unwrap();
    let serving = ready.lines().last().unwrap().split(' ').next().unwrap();
    let (unserved, _) = behind.split_once("accept4(").unwrap();
    let gives_back = |line: &str| line.starts_with(serving) && line.contains("MADV_DONTNEED");
    assert!(
        unserved.lines().any(gives_back) || !cfg!(target_env = "gnu"),
        "{unserved}"
    );
    // One zone is wanted, not a list of all that the system has.
    let zones: Vec<&str> = opened(&whole)
        .filter(|path| path.contains("zoneinfo"))
        .collect();
    assert!(zones.len() <= 1, "{zones:?}");
}

/// How often the runtime is woken by another thread between reading a message and
/// sending the request for it: `None` if either is not in the trace yet.
fn hops(trace: &str, said: &str) -> Option<usize> {
    let (_, behind) = trace.split_once(said)?;
    let (between, _) = behind.split_once("\"POST ")?;
    let wakes = |line: &&str| line.contains(r#", "\1\0\0\0\0\0\0\0", 8"#);
    Some(between.lines().filter(wakes).count())
}

#[tokio::test]
async fn a_turn_asks_the_disk_once_whether_all_is_as_it_was() {
    let this = "a_turn_asks_the_disk_once_whether_all_is_as_it_was";
    if !has_tools(this, &["strace"]) {
        return;
    }
    if !can_trace() {
        return skip(this, "no process may be traced here");
    }
    let model = ModelServer::start(Script::openai([openai::text("ok")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    let config = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    // A sync that is through wakes the runtime as well.
    env.config(&format!("{config}\n[storage]\nsync = \"never\"\n"));
    env.write(".crabtalk/config/Crab.md", "You are kind.");
    env.write(
        ".crabtalk/config/memory/MEMORY.md",
        "The dog is called Rex.",
    );
    env.write("work/AGENTS.md", "Write tests.");
    let (daemon, trace) = env.traced_daemon("recvfrom,read,write,writev,sendto").await;
    let work = env.work.display().to_string();
    env.run(&["trust", "add", &work]).await.ok();
    let mut turn = 0;
    // What changed within the last moment is not believed, so the first turns read.
    let once = async || {
        turn += 1;
        let content = format!("turn {turn}.");
        let said = StreamMsg {
            content: content.clone(),
            cwd: Some(work.clone()),
            ..StreamMsg::default()
        };
        stream_to_end(&env, said).await;
        let hops = hops(&std::fs::read_to_string(&trace).unwrap(), &content)?;
        (hops <= MAX_HOPS).then_some(())
    };
    eventually("a turn that asks once", once).await;
    assert!(daemon.terminate().await.success());
}
