//! Tests of questions and approvals.

use super::*;

#[tokio::test]
async fn approval_is_answered_while_the_stream_is_open() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        for event in [start(), tool_start("1"), approval("a1")] {
            fake.send(event).await;
        }
        assert_eq!(fake.next_told().await, "stream \"\" x");
        shows(&shown, "> ", 1).await;
        typist.send("what?").await.unwrap();
        typist.send("y").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a1 Allow once");
        for event in [tool_result("1", "", false), complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert_eq!(
        shown.text(),
        "\ncrab wants to use bash:\n    ls\nAllow this? [y]es once, [n]o (or n: reason) > \
         Please answer y or n, or n: reason > "
    );
    assert!(at.err.text().contains("< bash 1.5 s\n"));
}

#[tokio::test]
async fn earlier_input_does_not_answer_a_question() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        fake.next_told().await;
        for early in ["y", "a", "1"] {
            typist.send(early).await.unwrap();
        }
        for event in [start(), approval("a1"), approval("a2")] {
            fake.send(event).await;
        }
        // Input right after the question appears is ignored as well.
        shows(&shown, "    ls\n", 1).await;
        typist.send("y").await.unwrap();
        shows(&shown, "> ", 1).await;
        typist.send("n: no").await.unwrap();
        // An answer applies to one question only.
        typist.send("y").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a1 Deny: no");
        shows(&shown, "> ", 2).await;
        typist.send("n").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a2 Deny");
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
}

#[tokio::test]
async fn several_asks_are_asked_in_turn_and_results_wait() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        for event in [
            start(),
            approval("a1"),
            question("q2"),
            tool_result("9", "", false),
        ] {
            fake.send(event).await;
        }
        fake.next_told().await;
        shows(&shown, "> ", 1).await;
        typist.send("n: no").await.unwrap();
        assert_eq!(fake.next_told().await, "reply a1 Deny: no");
        shows(&shown, "> ", 2).await;
        typist.send("this one").await.unwrap();
        assert_eq!(fake.next_told().await, "reply q2 this one");
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert!(
        shown.text().ends_with("\ncrab asks: Which?\n> "),
        "{}",
        shown.text()
    );
    assert!(at.err.text().contains("< tool 1.5 s\n"), "shown in the end");
}

#[tokio::test]
async fn late_and_refused_answers_are_reported() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let refusals = [
        Err(Status::bad_request("one of Red, Blue")),
        Err(Status::not_found("gone")),
    ];
    fake.script.replies.lock().unwrap().extend(refusals);
    let drive = async {
        for event in [start(), question("q1")] {
            fake.send(event).await;
        }
        fake.next_told().await;
        for times in 1..=2 {
            shows(&shown, "> ", times).await;
            typist.send("green").await.unwrap();
            assert_eq!(fake.next_told().await, "reply q1 green");
        }
        fake.send(end("", 0)).await;
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert_eq!(
        shown.text(),
        "\ncrab asks: Which?\n> one of Red, Blue\n\ncrab asks: Which?\n> (already answered by another client)\n"
    );
}

fn settled(id: &str, outcome: AskOutcome, answer: &str) -> Event {
    Event::AskSettled(AskSettledEvent {
        ask_id: id.into(),
        outcome: outcome.into(),
        by: "laptop".into(),
        answer: answer.into(),
    })
}

#[tokio::test]
async fn prompt_answered_elsewhere_is_removed_with_a_note() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        for event in [start(), question("q1"), question("q2"), question("q3")] {
            fake.send(event).await;
        }
        shows(&shown, "> ", 1).await;
        // A queued question is withdrawn silently.
        fake.send(settled("q2", AskOutcome::Withdrawn, "")).await;
        fake.send(settled("q1", AskOutcome::Answered, "Red")).await;
        shows(&shown, "> ", 2).await;
        typist.send("Blue").await.unwrap();
        fake.next_told().await;
        assert_eq!(fake.next_told().await, "reply q3 Blue");
        // Our own answer is not reported.
        fake.send(settled("q3", AskOutcome::Answered, "Blue")).await;
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    let question = "\ncrab asks: Which?\n> ";
    let want = format!("{question}\n(answered by laptop: Red)\n{question}");
    assert_eq!(shown.text(), want);
    assert!(!at.err.text().contains("answered"), "{}", at.err.text());
}

#[tokio::test]
async fn settled_questions_of_others_are_reported() {
    let (fake, mut at) = ask("--wait x").await;
    let drive = async {
        for (id, outcome) in [("a", AskOutcome::TimedOut), ("b", AskOutcome::Withdrawn)] {
            fake.send(approval(id)).await;
            fake.send(settled(id, outcome, "")).await;
        }
        fake.send(end("", 0)).await;
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    let err = at.err.text();
    assert!(err.contains("crabtalk: not answered in time\n"), "{err}");
    assert!(err.contains("the run ended\n"), "{err}");
}

#[tokio::test]
async fn prompt_is_removed_when_its_step_ends() {
    let (fake, mut at) = ask("x").await;
    let (_typist, shown) = at.with_person();
    let drive = async {
        for event in [start(), approval("a1"), tool_result("1", "", false)] {
            fake.send(event).await;
        }
        shows(&shown, "> ", 1).await;
        for event in [complete(), end("", 0)] {
            fake.send(event).await;
        }
    };
    let (done, ()) = tokio::join!(at.run(), drive);
    done.unwrap();
    assert!(shown.text().ends_with("> \n(already settled)\n"));
    assert!(at.err.text().contains("< tool 1.5 s\n"));
}

#[tokio::test]
async fn without_a_terminal_approvals_are_denied_with_advice() {
    let (mut fake, mut at) = ask("x").await;
    for event in [start(), approval("a1"), question("q1"), end("", 0)] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    fake.next_told().await;
    let told = fake.next_told().await;
    assert_eq!(told, "reply a1 Deny: no terminal to approve it on");
    assert_eq!(fake.next_told().await, "reply q1 nobody is at the terminal");
    let err = at.err.text();
    assert!(err.contains("there is no terminal to ask on: crab wants to use bash:\n    ls\n"));
    let advice = "add `\"bash(ls)\": allow` to `permissions` with `crabtalk agents edit crab`";
    assert!(err.contains(advice), "{err}");
}

#[tokio::test]
async fn wait_leaves_questions_to_others() {
    let (mut fake, mut at) = ask("--wait x").await;
    let (_typist, shown) = at.with_person();
    for event in [start(), approval("a1"), complete(), end("", 0)] {
        fake.send(event).await;
    }
    at.run().await.unwrap();
    fake.next_told().await;
    assert!(fake.told.try_recv().is_err(), "nothing was answered");
    assert_eq!(shown.text(), "");
    assert!(
        at.err
            .text()
            .contains("waiting for an answer: `crabtalk asks`")
    );
}
