//! Prompts are answered by rules, or else by a person.

use super::*;

#[test]
fn checks_6_7_8_prompts_are_answered_by_rules_and_else_by_admin() {
    let config = "[agent.A]\nkind = \"codex\"\nallow = [\"bash(cargo test)\"]\n\
                  deny = [\"bash(rm -rf /)\"]\n";
    let mut bench = Bench::ready(config);
    bench.keys.clear();
    bench.send("@A [X]: work");
    bench.prompts("A", "p1", "cargo test");
    bench.prompts("A", "p2", "rm -rf /");
    bench.prompts("A", "p3", "ls");
    assert_eq!(bench.keys, ["A 1 p1", "A Esc p2"]);
    assert!(bench.inbox()[0].contains("[p3] bash ls"));
    bench.is("A", State::Approval);
    let approve = Command::Reply {
        agent: name("a"),
        prompt: None,
        reply: Reply::Allow,
    };
    bench.admin(approve.clone());
    assert_eq!(bench.keys, ["A 1 p1", "A Esc p2", "A 1 p3"]);
    bench.is("A", State::Active);
    assert!(matches!(bench.admin(approve), Answer::Refused { .. }));
}

#[test]
fn rules_answer_no_prompt_of_a_daemon_agent() {
    let mut bench = Bench::ready("[rules]\nallow = [\"bash(ls)\"]\n[agent.A]\n");
    bench.keys.clear();
    bench.send("@A [X]: work");
    bench.prompts("A", "p1", "ls");
    assert_eq!(bench.keys, <[&str; 0]>::default());
    bench.is("A", State::Approval);
}

#[test]
fn empty_answers_and_compression_of_stopped_agents_fail() {
    let mut bench = Bench::ready(TWO);
    bench.send("@A [X]: go");
    bench.prompts("A", "p1", "ls");
    bench.tells(
        "A",
        What::Prompt(Prompt {
            id: "q1".into(),
            is_question: true,
            ..Prompt::default()
        }),
    );
    for id in ["p1", "q1"] {
        let refused = bench.admin(Command::Reply {
            agent: name("A"),
            prompt: Some(id.into()),
            reply: Reply::Text(" ".into()),
        });
        assert!(matches!(refused, Answer::Refused { .. }), "{refused:?}");
    }
    bench.is("A", State::Approval);
    bench.admin(Command::Stop { agent: name("B") });
    let refused = bench.admin(Command::Compress { agent: name("B") });
    assert!(
        matches!(&refused, Answer::Refused { why } if why.contains("OFFLINE")),
        "{refused:?}"
    );
}

#[test]
fn unordered_compaction_is_logged_and_leads_to_bootstrap() {
    let mut bench = Bench::ready("[agent.A]\nkind = \"codex\"\n");
    bench.tells("A", What::Compacted);
    let entry = bench.log.iter().rfind(|e| e.why.contains("compacted"));
    let entry = entry.unwrap();
    assert_eq!(entry.evidence, Some(proof()));
    assert_eq!(
        (entry.from, entry.to),
        (Some(State::Idle), Some(State::Initialization))
    );
    assert!(bench.last("A").contains("[BOOTSTRAP]"));
}

#[test]
fn failed_agent_does_not_wait_for_an_answer_of_admin() {
    let mut bench = Bench::new("[agent.A]\n");
    let failure = Failure::Missing("there is no tmux".into());
    bench.put(Input::Done(name("A"), 0, Done::Launched(Err(failure))));
    bench.is("A", State::Failed);
    let (agents, inbox, _) = bench.world.board(bench.now);
    assert!(!agents[0].for_admin && agents[0].waits.is_none());
    assert_eq!((agents[0].waits_for.as_str(), inbox), ("`restart`", 1));
}
