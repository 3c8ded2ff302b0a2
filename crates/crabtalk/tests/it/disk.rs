//! A disk without room: a clear error, and work as before when there is some
//! (STORE-5).

use crate::rig::{
    Daemon, ModelServer, TestEnv, can_trace, chunks, end_of, entries, eventually, has_tools, skip,
    stream_to_end, within,
};
use crabtalk_proto::{
    Client, CreateCronMsg, ListCronRunsMsg, ListSubscriptionsMsg, Ping, PublishEventMsg,
    RemoveConversationMsg, RunCronMsg, StreamMsg, SubscribeEventMsg, stream_event,
};
use crabtalk_testkit::scripted::{Script, openai};
use futures_util::StreamExt;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde_json::json;
use std::time::{Duration, Instant};

/// What a sync takes on a disk that hangs: three times the five seconds in which a
/// daemon promises to end, so that a crowded machine has some of them, too. A run
/// waits for some syncs before its first word.
const SYNC: Duration = Duration::from_secs(15);

fn say(content: &str) -> StreamMsg {
    StreamMsg {
        content: content.into(),
        ..StreamMsg::default()
    }
}

/// Lets no file of the daemon grow beyond so many bytes: a full disk that
/// needs no disk and no rights.
fn limit_files(daemon: &Daemon, bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        ..getrlimit(Resource::Fsize)
    };
    prlimit(Some(daemon.pid()), Resource::Fsize, limit).unwrap();
}

/// What was said is in the page cache and survives the daemon; what waits for the
/// disk was never announced.
#[tokio::test]
async fn a_sync_that_hangs_does_not_keep_the_daemon() {
    let this = "a_sync_that_hangs_does_not_keep_the_daemon";
    if !has_tools(this, &["strace"]) {
        return;
    }
    if !can_trace() {
        return skip(this, "no process may be traced here");
    }
    let env = TestEnv::new();
    let daemon = env.daemon_on_a_slow_disk(SYNC).await;
    let mut connection = env.connect().await;
    let mut events = std::pin::pin!(connection.stream(say("hello")));
    // Text is told before it is durable.
    let answered = async {
        while let Some(event) = events.next().await {
            if matches!(event.unwrap().event, Some(stream_event::Event::Chunk(_))) {
                return;
            }
        }
        panic!("the run ended before its log was synced");
    };
    within("an answer", answered).await;
    let begun = Instant::now();
    kill_process(daemon.pid(), Signal::TERM).unwrap();
    // It is over when it gives its home back: the tracer keeps the process for as
    // long as the call that it delays.
    let pid_file = env.home.join("run/daemon.pid");
    let given_back = async || std::fs::read(&pid_file).unwrap().is_empty().then_some(());
    eventually("the daemon to end", given_back).await;
    let took = begun.elapsed();
    daemon.kill().await;
    // Behind the text there are syncs that it did not wait for.
    assert!(took < SYNC * 4 / 5, "{took:?}");
    let _daemon = env.daemon().await;
    let entries = entries(&env, "crab", "user").await;
    assert_eq!(entries.first().map(|e| e.content.as_str()), Some("hello"));
}

#[tokio::test]
async fn a_full_disk_is_an_error_and_room_ends_it() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let daemon = env.daemon().await;
    stream_to_end(&env, say("before")).await;
    let log = env.logs().pop().unwrap();
    let size = std::fs::metadata(&log).unwrap().len();
    let before = entries(&env, "crab", "user").await;

    // Not even the user's message fits: it is refused, whole.
    limit_files(&daemon, Some(size));
    let refused = env.run(&["ask", "does not fit"]).await.fails(1);
    assert!(refused.contains(".jsonl"), "{refused}");
    assert_eq!(entries(&env, "crab", "user").await, before);
    env.connect().await.ping(Ping {}).await.unwrap();

    // The message fits, the answer does not: the run ends, and says why.
    limit_files(&daemon, Some(size + 3000));
    let long = "/tool bash {\"command\":\"seq 3000\"}";
    let events = stream_to_end(&env, say(long)).await;
    let end = end_of(&events);
    assert_eq!(end.code, 500);
    assert!(end.error.contains(".jsonl"), "{end:?}");

    limit_files(&daemon, None);
    let events = stream_to_end(&env, say("after")).await;
    assert!(chunks(&events).contains("You told me: after"));
    let now = entries(&env, "crab", "user").await;
    assert_eq!(now[..before.len()], before[..]);
    assert_eq!(now[now.len() - 2].content, "after");

    // And it is all there for the next daemon.
    daemon.kill().await;
    let _daemon = env.daemon().await;
    assert_eq!(entries(&env, "crab", "user").await, now);
}

/// What was acknowledged is not dropped because the disk was full when its time came.
#[tokio::test]
async fn an_event_whose_run_finds_no_room_waits_for_it() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let subscribed = connection.subscribe_event(SubscribeEventMsg {
        source: "x".into(),
        target_agent: "crab".into(),
        once: false,
    });
    let id = subscribed.await.unwrap().id;
    let publish = async |payload: &str| {
        let (source, payload) = ("x".into(), payload.into());
        let event = PublishEventMsg { source, payload };
        env.connect().await.publish_event(event).await.unwrap();
    };
    let subscription = async || {
        let mut connection = env.connect().await;
        let listed = connection.list_subscriptions(ListSubscriptionsMsg {}).await;
        let listed = listed.unwrap().subscriptions;
        listed.into_iter().find(|one| one.id == id).unwrap()
    };
    // The log is longer than the journal of events, which has room for one more.
    publish(&"long ".repeat(2000)).await;
    let over = async || (subscription().await.last_outcome == "ok").then_some(());
    eventually("the first run's end", over).await;
    let log = env.logs().pop().unwrap();
    let size = std::fs::metadata(&log).unwrap().len();
    limit_files(&daemon, Some(size));
    publish("after").await;
    let told = async || {
        let last = subscription().await.last_outcome;
        last.contains(".jsonl").then_some(())
    };
    eventually("the disk's refusal", told).await;
    assert_eq!(subscription().await.failed, 0);

    // The next daemon goes on with it as well.
    daemon.kill().await;
    let daemon = env.daemon().await;
    let said = async || {
        let entries = entries(&env, "crab", "event:x").await;
        let said = entries.iter().filter(|entry| entry.content == "after");
        (said.count() == 1).then_some(())
    };
    eventually("the run", said).await;

    // And the same one, once there is room.
    let size = std::fs::metadata(&log).unwrap().len();
    limit_files(&daemon, Some(size));
    publish("at last").await;
    eventually("the disk's refusal", told).await;
    limit_files(&daemon, None);
    let said = async || {
        let entries = entries(&env, "crab", "event:x").await;
        let said = entries.iter().filter(|entry| entry.content == "at last");
        (said.count() == 1).then_some(())
    };
    eventually("the run", said).await;
}

/// A full disk is no fault of what is scheduled: it neither fails nor is paused for it.
#[tokio::test]
async fn a_scheduled_run_that_finds_no_room_waits_for_it() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    let mut connection = env.connect().await;
    let created = connection.create_cron(CreateCronMsg {
        schedule: "0 0 1 1 *".into(),
        content: Some("long ".repeat(1000)),
        ..CreateCronMsg::default()
    });
    let id = created.await.unwrap().id;
    let last = async || {
        let (id, limit) = (Some(id), 1);
        let request = ListCronRunsMsg { id, limit };
        let runs = env.connect().await.list_cron_runs(request).await;
        runs.unwrap().runs.remove(0)
    };
    let ends_well = async || (last().await.outcome == "ok").then_some(());
    connection.run_cron(RunCronMsg { id }).await.unwrap();
    eventually("the first run's end", ends_well).await;
    let log = env.logs().pop().unwrap();
    let before = entries(&env, "crab", "cron").await.len();
    let size = std::fs::metadata(&log).unwrap().len();
    limit_files(&daemon, Some(size));
    let begun = connection.run_cron(RunCronMsg { id }).await.unwrap();
    let waits = async || daemon.stderr().contains("waits for the disk").then_some(());
    eventually("the disk's refusal", waits).await;
    assert_eq!(last().await.outcome, "running");
    limit_files(&daemon, None);
    eventually("the run's end", ends_well).await;
    assert_eq!(last().await.due, begun.due);
    assert_eq!(entries(&env, "crab", "cron").await.len(), before + 2);
}

/// What waits for room is not dropped by a restart, whether it comes again or not.
#[tokio::test]
async fn a_scheduled_run_that_waits_for_room_is_begun_by_the_next_daemon() {
    let env = TestEnv::new();
    let daemon = env.daemon().await;
    // Their logs are longer than all that has to fit meanwhile.
    for sender in ["tg:1", "tg:2"] {
        let long = StreamMsg {
            sender: Some(sender.into()),
            ..say(&"long ".repeat(4000))
        };
        stream_to_end(&env, long).await;
    }
    let sizes = env
        .logs()
        .into_iter()
        .map(|log| log.metadata().unwrap().len());
    limit_files(&daemon, sizes.min());
    let mut connection = env.connect().await;
    let again = connection.create_cron(CreateCronMsg {
        schedule: "0 0 1 1 *".into(),
        content: Some("said again".into()),
        sender: "tg:1".into(),
        ..CreateCronMsg::default()
    });
    let again = again.await.unwrap().id;
    let once = connection.create_cron(CreateCronMsg {
        at: Some("in 1s".into()),
        content: Some("said once".into()),
        sender: "tg:2".into(),
        ..CreateCronMsg::default()
    });
    let once = once.await.unwrap().id;
    connection.run_cron(RunCronMsg { id: again }).await.unwrap();
    let both_wait = async || {
        let said = daemon.stderr();
        (said.matches("waits for the disk").count() == 2).then_some(())
    };
    eventually("the disk's refusals", both_wait).await;
    daemon.terminate().await;

    let _daemon = env.daemon().await;
    for (id, sender, words) in [(again, "tg:1", "said again"), (once, "tg:2", "said once")] {
        let ends_well = async || {
            let (id, limit) = (Some(id), 10);
            let request = ListCronRunsMsg { id, limit };
            let runs = env.connect().await.list_cron_runs(request).await;
            let runs = runs.unwrap().runs;
            (runs.first()?.outcome == "ok").then_some(runs)
        };
        let runs = eventually("the run's end", ends_well).await;
        assert_eq!(runs.len(), 1, "{runs:?}");
        let entries = entries(&env, "crab", sender).await;
        let said = entries.iter().filter(|entry| entry.content == words);
        assert_eq!(said.count(), 1, "{entries:?}");
    }
    let used_up = async || {
        let listed = env.run(&["cron", "list"]).await.ok();
        (!listed.contains("said once")).then_some(())
    };
    eventually("the entry to go", used_up).await;
}

/// Half an export would look like all of it, and keep the next one from its place.
#[tokio::test]
async fn an_export_that_does_not_fit_leaves_nothing_behind() {
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    stream_to_end(&env, say(&"long ".repeat(2000))).await;
    let there = || std::fs::read_dir(&env.work).unwrap().count();
    let before = there();
    let small = "trap '' XFSZ; ulimit -f 1; exec \"$CRABTALK\" export -o out.md";
    let said = env.shell(small).await.fails(1);
    assert!(said.contains("cannot write out.md"), "{said}");
    assert_eq!(there(), before);
    env.run(&["export", "-o", "out.md"]).await.ok();
    let whole = std::fs::read_to_string(env.work.join("out.md")).unwrap();
    assert_eq!(whole, env.run(&["export"]).await.ok());
    // What is there stays.
    let said = env.run(&["export", "-o", "out.md"]).await.fails(1);
    assert!(said.contains("exists"), "{said}");
}

/// Steps of a shell with mounts of its own: what a disk is like is nobody
/// else's business.
const STEPS: &str = r#"
set -u
home=$CRABTALK_HOME
long=$(printf '%09000d' 0)
start() {
    : > "$HOME/err"
    "$CRABTALK" daemon run 2>> "$HOME/err" &
    daemon=$!
    until grep -q ' ready ' "$HOME/err"; do kill -0 $daemon || exit 9; sleep 0.02; done
}
end() { kill $daemon; wait $daemon; }
step() { echo "== $1"; shift; "$CRABTALK" "$@" 2>&1; echo "exit $?"; }
start; step before ask 'the first words'; end
"#;

const READ_ONLY: &str = r#"
mount --bind "$home" "$home" && mount -o remount,bind,ro "$home" || exit 8
start; step reads history; step lists subscriptions; step writes ask "$long"; end
mount -o remount,bind,rw "$home"
start; step again ask 'the last words'; end
"#;

const FULL: &str = r#"
mv "$home" "$home.saved"; mkdir "$home"
mount -t tmpfs -o size=400k,mode=700 none "$home" || exit 8
cp -a "$home.saved/." "$home"
dd if=/dev/zero of="$home/filler" bs=1k 2> /dev/null
start; step reads history; step lists subscriptions; step writes ask "$long"
rm "$home/filler"; step again ask 'the last words'; end
"#;

/// Nobody starts the daemon but who asks for the history.
const STARTED_BY_A_CLIENT: &str = r#"
mount --bind "$home" "$home" && mount -o remount,bind,ro "$home" || exit 8
step reads history; step ends daemon stop; step gone daemon status
"#;

/// What each step said, its name first; `None` where no mounts may be made.
async fn on_a_disk(test: &str, steps: &str) -> Option<Vec<String>> {
    if !has_tools(test, &["unshare", "mount", "dd"]) {
        return None;
    }
    let env = TestEnv::new();
    let may_mount = env.shell("unshare -rm mount -t tmpfs none \"$HOME\"").await;
    if may_mount.code != Some(0) {
        skip(
            test,
            &format!("no mounts may be made: {}", may_mount.stderr),
        );
        return None;
    }
    env.script("steps", &format!("{STEPS}{steps}"));
    let told = env.shell("unshare -rm sh ./steps").await.ok();
    Some(told.split("== ").skip(1).map(str::to_owned).collect())
}

fn check_steps(told: &[String], file: &str) {
    let [before, reads, lists, writes, again] = told else {
        panic!("{told:#?}");
    };
    assert!(before.ends_with("exit 0\n"), "{before}");
    assert!(
        reads.contains("the first words") && reads.ends_with("exit 0\n"),
        "{reads}"
    );
    assert!(
        lists.contains("no agent waits") && lists.ends_with("exit 0\n"),
        "{lists}"
    );
    assert!(
        writes.contains(file) && writes.contains("make room or make it writable"),
        "{writes}"
    );
    assert!(writes.ends_with("exit 1\n"), "{writes}");
    assert!(
        again.contains("You told me: the last words") && again.ends_with("exit 0\n"),
        "{again}"
    );
}

#[tokio::test]
async fn a_daemon_starts_on_a_read_only_disk_and_shows_what_is_there() {
    let test = "a_daemon_starts_on_a_read_only_disk_and_shows_what_is_there";
    if let Some(told) = on_a_disk(test, READ_ONLY).await {
        check_steps(&told, "crab_user_1.jsonl");
    }
}

#[tokio::test]
async fn a_client_starts_the_daemon_on_a_read_only_disk() {
    let test = "a_client_starts_the_daemon_on_a_read_only_disk";
    let Some(told) = on_a_disk(test, STARTED_BY_A_CLIENT).await else {
        return;
    };
    let [_, reads, ends, gone] = &told[..] else {
        panic!("{told:#?}");
    };
    assert!(
        reads.contains("the first words") && reads.ends_with("exit 0\n"),
        "{reads}"
    );
    assert!(
        ends.contains("the daemon has ended") && ends.ends_with("exit 0\n"),
        "{ends}"
    );
    assert!(gone.ends_with("exit 3\n"), "{gone}");
}

#[tokio::test]
async fn a_daemon_starts_on_a_full_disk_and_works_when_there_is_room() {
    let test = "a_daemon_starts_on_a_full_disk_and_works_when_there_is_room";
    if let Some(told) = on_a_disk(test, FULL).await {
        check_steps(&told, "crab_user_1.jsonl");
    }
}

#[tokio::test]
async fn a_log_that_another_program_cut_is_read_again() {
    let model = ModelServer::start(Script::openai([openai::text("Yes.")]).repeating()).await;
    let env = TestEnv::with_model(&model);
    let daemon = env.daemon().await;
    for words in ["first", "second"] {
        stream_to_end(&env, say(words)).await;
    }
    let log = env.logs().pop().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let second = text.find("second").unwrap();
    std::fs::write(&log, &text[..second]).unwrap();

    let events = stream_to_end(&env, say("third")).await;
    assert_eq!(end_of(&events).code, 0);
    let sent = model.requests().await.pop().unwrap()["messages"].to_string();
    assert!(
        sent.contains("first") && sent.contains("third") && !sent.contains("second"),
        "{sent}"
    );
    assert!(daemon.stderr().contains("another program changed its log"));
    let now = entries(&env, "crab", "user").await;
    let words: Vec<&str> = now.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(words, ["first", "Yes.", "third", "Yes."]);
    daemon.kill().await;
    let _daemon = env.daemon().await;
    assert_eq!(entries(&env, "crab", "user").await, now);
}

/// What is half of it helps nobody, and takes the room that others need.
#[tokio::test]
async fn an_output_that_does_not_fit_leaves_nothing_behind() {
    let env = TestEnv::new();
    env.agent("crab", "permissions: { bash: allow }");
    let daemon = env.daemon().await;
    limit_files(&daemon, Some(1 << 20));
    let long = "/tool bash {\"command\":\"head -c 3000000 /dev/zero | tr '\\\\0' x; echo end\"}";
    let events = stream_to_end(&env, say(long)).await;
    let text = chunks(&events);
    assert!(text.contains("could not be kept"), "{text}");
    let folders = std::fs::read_dir(env.home.join("state/outputs")).unwrap();
    for folder in folders {
        let left = std::fs::read_dir(folder.unwrap().path()).unwrap().count();
        assert_eq!(left, 0);
    }
    // The signal that comes with it ends nobody.
    env.connect().await.ping(Ping {}).await.unwrap();
}

#[tokio::test]
async fn outputs_of_tools_go_with_their_conversation() {
    let call = [("bash", json!({"command": "seq 100000"}))];
    let replies = [openai::tools("a", &call), openai::text("Counted.")];
    let model = ModelServer::start(Script::openai(replies)).await;
    let env = TestEnv::with_model(&model);
    env.agent("crab", "permissions: { bash: allow }");
    let _daemon = env.daemon().await;
    let events = stream_to_end(
        &env,
        StreamMsg {
            content: "count".into(),
            ..StreamMsg::default()
        },
    )
    .await;
    assert_eq!(end_of(&events).code, 0);
    let outputs = env.home.join("state/outputs");
    let names = |folder: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        entries
            .map(|entry| name(entry).into_string().unwrap())
            .collect()
    };
    assert_eq!(names(&outputs).len(), 1, "the whole output is kept");
    let removal = RemoveConversationMsg::default();
    env.connect()
        .await
        .remove_conversation(removal)
        .await
        .unwrap();
    assert!(names(&outputs).is_empty(), "{:?}", names(&outputs));
    let trash = names(&env.sessions().join("trash"));
    assert!(
        trash.iter().any(|name| name.ends_with(".jsonl.outputs")),
        "{trash:?}"
    );
}
