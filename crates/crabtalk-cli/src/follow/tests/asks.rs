//! What a run asks, and who answers it.

use super::*;

#[tokio::test]
async fn an_approval_is_answered_at_the_terminal_while_the_stream_stays_open() {
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
        "\ncrab wants to use bash:\n    ls\nAllow? [y]es once, [n]o (or n: reason) > \
         Please answer y or n, or n: and a reason > "
    );
    assert!(at.err.text().contains("< bash 1.5 s\n"));
}

#[tokio::test]
async fn what_was_typed_before_a_question_never_answers_it() {
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
        // While the question has only just appeared, too.
        shows(&shown, "    ls\n", 1).await;
        typist.send("y").await.unwrap();
        shows(&shown, "> ", 1).await;
        typist.send("n: no").await.unwrap();
        // And what answers one question says nothing of the next.
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
async fn several_asks_are_put_one_after_another_and_results_wait() {
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
async fn an_answer_that_comes_too_late_or_is_refused_is_said() {
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
async fn a_prompt_that_somebody_else_answered_vanishes_with_a_word() {
    let (mut fake, mut at) = ask("x").await;
    let (typist, shown) = at.with_person();
    let drive = async {
        for event in [start(), question("q1"), question("q2"), question("q3")] {
            fake.send(event).await;
        }
        shows(&shown, "> ", 1).await;
        // One that stands behind another goes without a word.
        fake.send(settled("q2", AskOutcome::Withdrawn, "")).await;
        fake.send(settled("q1", AskOutcome::Answered, "Red")).await;
        shows(&shown, "> ", 2).await;
        typist.send("Blue").await.unwrap();
        fake.next_told().await;
        assert_eq!(fake.next_told().await, "reply q3 Blue");
        // Our own answer is no news.
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
async fn who_leaves_questions_to_others_is_told_how_they_ended() {
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
    assert!(err.contains("crabtalk: nobody answered in time\n"), "{err}");
    assert!(err.contains("the run ended\n"), "{err}");
}

#[tokio::test]
async fn a_prompt_is_withdrawn_when_the_step_went_on() {
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
    assert_eq!(fake.next_told().await, "reply q1 nobody is here");
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
