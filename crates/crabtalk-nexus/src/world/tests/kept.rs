//! A crash loses nothing, and each action has its reason in the log.

use super::*;

#[test]
fn mail_survives_a_crash_of_the_agent() {
    let mut bench = Bench::ready(TWO);
    bench.send("@A [X]: go");
    bench.tells("A", What::Died(Default::default()));
    bench.after(1);
    assert!(bench.last("A").contains("[BOOTSTRAP]"));
    bench.confirms("A");
    assert_eq!(
        bench.last("A"),
        "@NEXUS → @A [X]: Your session was interrupted while you worked on the message from \
         @ADMIN above. Please carry on with it and answer it."
    );
}

#[test]
fn each_action_is_logged_with_its_reason() {
    let mut bench = Bench::ready(TWO);
    bench.send("@A [X]: go");
    bench.prompts("A", "p1", "ls");
    let entry = bench.log.iter().rfind(|e| e.why.contains("[p1]")).unwrap();
    assert_eq!(
        (entry.from, entry.to),
        (Some(State::Active), Some(State::Approval))
    );
    assert_eq!(entry.evidence, Some(proof()));
    assert!(entry.did[0].contains("tell ADMIN"));
    let numbers: Vec<u64> = bench.log.iter().map(|entry| entry.n).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
}

#[test]
fn restored_world_continues() {
    let mut bench = Bench::ready(TWO);
    bench.task("@A [T]: work");
    bench.send("@A [X]: more");
    let mut world = bench.restored(bench.world.team.clone());
    assert_eq!(world.agents, bench.world.agents);
    assert_eq!(world.tasks, bench.world.tasks);
    assert_eq!(world.mail.letters(), bench.world.mail.letters());
    assert_eq!(world.mail.last(), bench.world.mail.last());
    let out = world.handle(bench.now, Input::Began);
    let adopt = |order: &&Order| matches!(order.deed, Deed::Launch(Launch::Adopt { .. }));
    assert_eq!(out.orders.iter().filter(adopt).count(), 2);
    let letter = world.mail.letters().values().next().unwrap();
    assert_eq!(letter.course.fate, Fate::Acked);
}

/// Time without a running NEXUS does not count against deadlines.
#[test]
fn deadlines_are_extended_after_a_pause_of_nexus() {
    const DAY_MS: Ms = 24 * 60 * 60 * 1000;
    let mut launching = World::new(Bench::new(TWO).world.team);
    launching.handle(1_000_000, Input::Began);
    let bootstrapping = Bench::new(TWO).world;
    let mut noticed = Bench::ready("[agent.A]\n");
    noticed.admin(Command::Compress { agent: name("A") });
    noticed.is("A", State::PreCompression);
    let mut works = Bench::ready("[agent.A]\n");
    works.send("@A [X]: go");
    for world in [launching, bootstrapping, noticed.world, works.world] {
        let mut next = world.clone();
        let later = world.now + DAY_MS;
        next.handle(later, Input::Began);
        let was = next.agents.clone();
        assert_eq!(next.handle(later, Input::Tick).orders, []);
        assert_eq!(next.agents, was);
        assert!(next.next_due().is_some_and(|at| at > later));
    }
}

/// Each entry costs a synced write, and the log's size is limited.
#[test]
fn activity_is_logged_rarely() {
    let mut bench = Bench::ready(TWO);
    bench.send("@A [X]: go");
    let writes = bench.writes;
    for _ in 0..1000 {
        bench.now += 100;
        bench.tells("A", What::Progress);
    }
    let written = bench.writes - writes;
    assert!(written <= 7, "{written} writes in 100 s");
    bench.keys.clear();
    bench.after(100);
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    bench.after(20);
    assert_eq!(bench.keys, ["A Probe"]);
}

#[test]
fn cancel_without_a_turn_leads_to_idle() {
    let mut bench = Bench::ready(TWO);
    bench.send("@A [T]: go");
    bench.put(Input::Done(name("A"), 0, Done::Cancelled(Ok(true))));
    bench.is("A", State::Active);
    bench.put(Input::Done(name("A"), 0, Done::Cancelled(Ok(false))));
    bench.is("A", State::Idle);
}

/// Mail and tasks of an agent that left the configuration are kept.
#[test]
fn work_of_a_removed_agent_is_reported_and_requeued() {
    let mut bench = Bench::ready(TWO);
    let agent = Some(name("A"));
    bench.admin(Command::Pause {
        agent: agent.clone(),
    });
    bench.task("@ANY [ANY]: whoever");
    assert!(bench.last("B").contains("[ANY]"), "{}", bench.last("B"));
    bench.task("@B [OWN]: yours");
    bench.send("@B [LATER]: wait for this");
    bench.admin(Command::Resume { agent });
    let team: Team = toml::from_str("root = \"/team\"\n[agent.A]\n").unwrap();
    bench.world = bench.restored(team);
    bench.put(Input::Began);
    let session = "s-A".to_owned();
    let busy = false;
    bench.tells("A", What::Ready { session, busy });
    bench.put(Input::Tick);
    let inbox = bench.inbox().join("\n");
    for text in ["wait for this", "tasks wait for it: t2"] {
        assert!(inbox.contains(text), "{text}: {inbox}");
    }
    assert!(
        bench.last("A").contains("[ANY]: whoever"),
        "{}",
        bench.last("A")
    );
    let letters = bench.world.mail.letters().values();
    assert!(letters.map(|l| &l.mail.to).all(|to| *to != name("B")));
}
