//! Agents get tasks, reflection and compression in turn.

use super::*;

#[test]
fn tasks_are_assigned_one_at_a_time() {
    let mut bench = Bench::ready(TWO);
    bench.task("@ANY [T1]: one");
    bench.task("@ANY [T2]: two");
    bench.task("@ANY [T3]: three");
    bench.task("@A [T4]: four");
    let (a, b) = (bench.last("A").to_owned(), bench.last("B").to_owned());
    assert_eq!(a, "@NEXUS → @A [T1]: one");
    assert_eq!(b, "@NEXUS → @B [T2]: two");
    bench.says("A", "@A → @B [T1]: help me");
    assert_eq!(bench.last("A"), a, "its task is open");
    bench.says("A", "@A → @NEXUS [t1]: done");
    assert_eq!(bench.last("A"), "@NEXUS → @A [T3]: three");
    let done = |task: &&Task| matches!(task.state, TaskState::Done { .. });
    assert_eq!(bench.world.tasks.values().filter(done).count(), 1);
}

#[test]
fn only_done_or_failed_ends_a_task() {
    let mut bench = Bench::ready("[agent.A]\n");
    bench.task("@A [T1]: one");
    bench.task("@A [T2]: two");
    bench.task("@A [T3]: three");
    let state = |bench: &Bench, id| bench.world.tasks[&id].state.clone();
    bench.says("A", "@A → @NEXUS [T1]: I begin now, will report later");
    assert!(matches!(state(&bench, 1), TaskState::Assigned { .. }));
    assert_eq!(bench.inbox(), [""; 0], "a report is logged");
    bench.after(1800);
    assert!(
        bench.last("A").contains("still open"),
        "{}",
        bench.last("A")
    );
    bench.says("A", "@A → @NEXUS [OTHER]: DONE: the parser takes tabs");
    assert!(matches!(state(&bench, 1), TaskState::Done { .. }));
    assert_eq!(bench.last("A"), "@NEXUS → @A [T2]: two");
    bench.says("A", "@A → @ADMIN [T2]: FAILED: no compiler");
    assert!(matches!(state(&bench, 2), TaskState::Done { .. }));
    assert_eq!(bench.last("A"), "@NEXUS → @A [T3]: three");
}

#[test]
fn stuck_task_is_reported_and_reassigned() {
    let mut bench = Bench::ready(TWO);
    bench.task("@A [T1]: one");
    bench.task("@A [T2]: two");
    bench.says("A", "@A → @NEXUS [T1]: well");
    bench.after(1800);
    bench.says("A", "@A → @NEXUS [T1]: hm");
    bench.after(1800);
    bench.after(1800);
    let told = bench.inbox();
    let told: Vec<_> = told
        .iter()
        .filter(|text| text.contains("task t1"))
        .collect();
    assert_eq!(told.len(), 1, "{told:?}");
    bench.says("A", "@A → @NEXUS [REFLECTION]: Consolidated.");
    let mut change = |id, change| bench.admin(Command::ChangeTask { id, change });
    let nobody = TaskChange::Reassign(Some(name("C")));
    assert!(matches!(change(1, nobody), Answer::Refused { .. }));
    assert!(matches!(
        change(7, TaskChange::Remove),
        Answer::Refused { .. }
    ));
    let to = TaskChange::Reassign(Some(name("B")));
    assert!(matches!(change(1, to), Answer::Done { .. }));
    assert!(matches!(change(2, TaskChange::Remove), Answer::Done { .. }));
    assert!(matches!(
        change(2, TaskChange::Remove),
        Answer::Refused { .. }
    ));
    assert_eq!(bench.last("B"), "@NEXUS → @B [T1]: one");
    assert!(
        bench
            .got("A")
            .iter()
            .any(|text| text.contains("given to another agent"))
    );
    bench.admin(Command::ChangeTask {
        id: 1,
        change: TaskChange::Done("by hand".into()),
    });
    assert!(
        bench
            .world
            .tasks
            .values()
            .all(|task| matches!(task.state, TaskState::Done { .. }))
    );
}

#[test]
fn incomplete_checkpoint_is_reported_once() {
    let mut bench = Bench::ready(TWO);
    let comes = |bench: &mut Bench, result| {
        bench.put(Input::Done(name("A"), 1, Done::Committed(result)));
        let flags = &bench.world.summary().0[0].flags;
        (flags.join(", "), bench.inbox())
    };
    let locked = || Err("git: fatal: Unable to create index.lock".to_owned());
    let (flags, inbox) = comes(&mut bench, locked());
    assert_eq!(flags, "not committed");
    assert!(inbox[0].contains("A: its files are not committed: git: fatal: Unable"));
    let (flags, inbox) = comes(&mut bench, locked());
    assert_eq!((flags.as_str(), inbox.len()), ("not committed", 0));
    let commit = |left_out: &[&str]| {
        Ok(Commit {
            what: "commit 1234567".into(),
            left_out: left_out.iter().map(|file| (*file).to_owned()).collect(),
        })
    };
    let (flags, inbox) = comes(&mut bench, commit(&["a", "b", "c"]));
    assert_eq!(flags, "not committed");
    assert!(
        inbox[0].contains("its checkpoint leaves out a and 2 more"),
        "{inbox:?}"
    );
    let (flags, inbox) = comes(&mut bench, commit(&[]));
    assert_eq!((flags.as_str(), inbox.len()), ("", 0));
    let (_, inbox) = comes(&mut bench, locked());
    assert_eq!(inbox.len(), 1);
}

#[test]
fn reflection_follows_work_once() {
    let mut bench = Bench::ready(TWO);
    bench.after(1800);
    assert_eq!(bench.got("A").len(), 1, "nothing to reflect on");
    bench.send("@A [X]: go");
    bench.says("A", "@A → @ADMIN [X]: ok");
    bench.after(1800);
    assert!(bench.last("A").contains("[REFLECTION]"));
    bench.says("A", "@A → @NEXUS [REFLECTION]: Consolidated.");
    let count = bench.got("A").len();
    bench.after(1800);
    bench.after(1800);
    assert_eq!(bench.got("A").len(), count);
}

#[test]
fn compression_runs_through_its_phases() {
    let mut bench = Bench::ready(TWO);
    bench.keys.clear();
    bench.send("@A [X]: go");
    bench.tells(
        "A",
        What::TurnEnded(Turn {
            output: "@A → @ADMIN [X]: ok".into(),
            tokens: Some(700),
            window: Some(1000),
            ..Turn::default()
        }),
    );
    bench.is("A", State::PreCompression);
    assert!(bench.last("A").contains("External compression scheduled."));
    bench.says("A", "@A → @NEXUS [COMPRESSION]: Ready for compression.");
    assert!(bench.keys[0].starts_with("A Verify"), "{:?}", bench.keys);
    let verified = |result| Input::Done(name("A"), 0, Done::Verified(result));
    bench.put(verified(Err("x is not committed".into())));
    assert!(bench.last("A").contains("Not ready for compression: x is"));
    bench.says("A", "@A → @NEXUS [COMPRESSION]: Ready for compression.");
    bench.put(verified(Ok(())));
    bench.is("A", State::AwaitAdmin);
    bench.inbox();
    bench.admin(Command::Reply {
        agent: name("a"),
        prompt: None,
        reply: Reply::Allow,
    });
    assert!(bench.keys.last().unwrap().starts_with("A Compress"));
    let compressed = Compressed {
        session: "s2".into(),
        evidence: proof(),
    };
    bench.put(Input::Done(name("A"), 0, Done::Compressed(Ok(compressed))));
    assert!(bench.last("A").contains("[BOOTSTRAP]"));
    bench.confirms("A");
    bench.is("A", State::Idle);
    assert_eq!(bench.world.agents[&name("a")].meters.tokens, None);
}

#[test]
fn one_agent_compresses_at_a_time() {
    let mut bench = Bench::ready(&format!("compress = \"auto\"\n{TWO}"));
    let compress = |agent: &str| Command::Compress { agent: name(agent) };
    bench.send("@B [X]: go");
    bench.admin(compress("a"));
    bench.admin(compress("b"));
    bench.says("B", "@B → @ADMIN [X]: ok");
    bench.is("B", State::Idle);
    bench.says("A", "@A → @NEXUS [COMPRESSION]: Ready for compression.");
    bench.keys.clear();
    bench.put(Input::Done(name("A"), 0, Done::Verified(Ok(()))));
    assert!(bench.keys.iter().any(|key| key.starts_with("A Compress")));
    let failed = crate::backend::Failure::Failed("no".into());
    bench.put(Input::Done(name("A"), 0, Done::Compressed(Err(failed))));
    bench.is("A", State::Idle);
    bench.is("B", State::PreCompression);
    bench.admin(Command::Cancel { agent: name("b") });
    bench.says("B", "@B → @NEXUS [COMPRESSION]: Ready for compression.");
    assert!(!bench.keys.iter().any(|key| key.starts_with("B Compress")));
}

/// The cost of a queue depends on its current contents, not on its history.
#[test]
fn only_the_latest_done_tasks_are_kept() {
    let mut bench = Bench::ready(TWO);
    for n in 1..=1200 {
        bench.task(&format!("@A [T{n}]: do it"));
        bench.says("A", &format!("@A → @NEXUS [T{n}]: done"));
    }
    let tasks = &bench.world.tasks;
    assert_eq!((tasks.len(), tasks.keys().next_back()), (1000, Some(&1200)));
    let world = bench.restored(bench.world.team.clone());
    assert_eq!(world.tasks, *tasks);
    // A number is never reused.
    bench.task("@A [NEXT]: go");
    assert_eq!(bench.world.tasks.keys().next_back(), Some(&1201));

    let mut bench = Bench::ready(TWO);
    let long = "y".repeat(60_000);
    for n in 1..=100 {
        bench.task(&format!("@A [T{n}]: do it"));
        bench.says("A", &format!("@A → @NEXUS [T{n}]: {long}"));
    }
    let bytes: usize = bench.rows.values().map(String::len).sum();
    assert!(bytes < 5 * 1024 * 1024, "{bytes}");
}

#[test]
fn open_tasks_are_bounded_by_their_bytes() {
    let mut bench = Bench::ready(TWO);
    let long = "z".repeat(60_000);
    let refused = (0..1000).find_map(|n| {
        let text = format!("@A [T{n}]: {long}");
        let answer = bench.admin(Command::AddTask { text });
        let Answer::Refused { why } = answer else {
            return None;
        };
        Some(why)
    });
    assert!(refused.unwrap().contains("bytes of tasks are open"));
}
