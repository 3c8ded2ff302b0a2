use super::*;
use crabtalk_proto::{ApprovalInfo, AskOption, AskQuestion};
use crabtalk_render::{Line, theme};
use std::time::Duration;

fn approval() -> AskUserEvent {
    AskUserEvent {
        ask_id: "1".into(),
        kind: "approval".into(),
        tool: "bash".into(),
        detail: "cargo test\necho \u{2503} ok".into(),
        lines: 2,
        cwd: "/w".into(),
        reason: "allowed by no rule".into(),
        always: Some(ApprovalInfo {
            agent: "crab".into(),
            sender: "user".into(),
            tool: "bash".into(),
            exact: "cargo test\necho \u{2503} ok".into(),
            cwd: "/w".into(),
            ..ApprovalInfo::default()
        }),
        questions: listed(&["Allow once", "Allow always", "Deny"]),
        ..AskUserEvent::default()
    }
}

/// A question with these choices.
fn listed(labels: &[&str]) -> Vec<AskQuestion> {
    let options = labels.iter().map(|label| AskOption {
        label: (*label).into(),
        ..AskOption::default()
    });
    vec![AskQuestion {
        options: options.collect(),
        ..AskQuestion::default()
    }]
}

fn asking(ask: AskUserEvent) -> Asking {
    Asking::new(ask, "crab", "", "")
}

/// A settled question.
fn settled(ask: AskUserEvent, rows: usize) -> Asking {
    let mut asking = asking(ask);
    let now = Instant::now();
    asking.rows(60, rows);
    asking.drawn(now);
    asking.settle(now + SETTLE);
    assert!(asking.takes_keys());
    asking
}

fn shown(asking: &mut Asking, width: usize) -> String {
    let (rows, _) = asking.rows(width, 30);
    let rows = rows.iter().map(Line::text);
    rows.collect::<Vec<_>>().join("\n")
}

/// Types: `\n` is Enter, `\u{1b}` Esc.
fn typed(asking: &mut Asking, keys: &str) -> Answered {
    let mut last = Answered::Not;
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            c => KeyCode::Char(c),
        };
        last = asking.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

#[test]
fn approval_frame_shows_all_text_behind_its_edge() {
    let mut asking = settled(approval(), 30);
    assert_eq!(
        shown(&mut asking, 70),
        "\u{250f}\u{2501} crab wants to use bash \u{b7} 2 lines\n\
         \u{2503} cargo test\n\
         \u{2503} echo <U+2503> ok\n\
         \u{2503} \n\
         \u{2503} in /w\n\
         \u{2503} reason: allowed by no rule\n\
         \u{2503} Always: allow this exact command in this folder\n\
         \u{2517}\u{2501}  y allow once    a always exactly this    n deny    v view all "
    );
    let narrow = shown(&mut asking, 40);
    for row in narrow.lines() {
        assert!(row.chars().count() <= 40, "{row}");
        assert!(
            row.starts_with(['\u{250f}', '\u{2503}', '\u{2517}']),
            "{row}"
        );
    }
}

#[test]
fn prefix_is_shown_before_storing_on_narrow_terminals() {
    let mut ask = approval();
    ask.questions = listed(&["Allow once", "Allow always", "Deny", "Allow prefix"]);
    if let Some(rule) = &mut ask.always {
        rule.prefix = "cargo test".into();
    }
    let mut asking = settled(ask, 30);
    let narrow = shown(&mut asking, 40);
    for row in narrow.lines() {
        assert!(row.chars().count() <= 40, "{row}");
    }
    for said in ["y once", "a always", "p prefix", "n deny", "v view"] {
        assert!(narrow.contains(said), "{said}: {narrow}");
    }
    let flat = shown(&mut asking, 100);
    assert!(
        flat.contains("Prefix: allow any `cargo test ..` command in this folder"),
        "{flat}"
    );
    assert_eq!(
        typed(&mut asking, "p\n"),
        Answered::With("Allow prefix".into())
    );
    let mut without = settled(approval(), 30);
    assert!(!shown(&mut without, 100).contains("prefix"));
    assert_eq!(typed(&mut without, "p\n"), Answered::Not);
}

#[test]
fn frame_outside_the_sandbox_is_red_and_says_so() {
    let asks = |outside| AskUserEvent {
        outside,
        questions: listed(&["Allow once", "Deny"]),
        ..approval()
    };
    for (outside, style) in [(true, theme::BAD), (false, theme::ASKS)] {
        let mut asking = settled(asks(outside), 30);
        typed(&mut asking, "y");
        let (rows, _) = asking.rows(60, 30);
        for row in &rows {
            let edge = row.spans().first().unwrap();
            assert_eq!(edge.style(), style, "{}", row.text());
        }
        let title = rows.first().unwrap();
        assert_eq!(title.spans()[1].style(), style.bold());
        let says = title.text().contains(" outside the sandbox: crab wants");
        assert_eq!(says, outside, "{}", title.text());
        assert_eq!(typed(&mut asking, "a\n"), Answered::Not, "not listed");
    }
}

#[test]
fn conversation_is_chosen_by_letter_or_digit_where_listed() {
    let ask = AskUserEvent {
        questions: listed(&["Allow once", "Allow for this conversation", "Deny"]),
        ..approval()
    };
    for keys in ["c\n", "5\n"] {
        let mut asking = settled(ask.clone(), 30);
        let answer = Answered::With("Allow for this conversation".into());
        assert_eq!(typed(&mut asking, keys), answer, "{keys:?}");
    }
    let mut asking = settled(ask, 30);
    assert!(shown(&mut asking, 80).contains("c for this conversation"));
    assert_eq!(typed(&mut settled(approval(), 30), "c\n"), Answered::Not);
}

#[test]
fn keys_during_settling_do_not_answer() {
    let mut asking = asking(approval());
    let now = Instant::now();
    assert_eq!(typed(&mut asking, "y\n"), Answered::Not, "it was not drawn");
    asking.drawn(now);
    assert_eq!(typed(&mut asking, "y\n"), Answered::Not);
    // While typing continues, the question takes no keys.
    let later = now + SETTLE - Duration::from_millis(1);
    asking.typed_elsewhere(later);
    asking.settle(now + SETTLE);
    assert!(!asking.takes_keys());
    asking.settle(later + SETTLE);
    assert!(asking.takes_keys());
    assert_eq!(
        typed(&mut asking, "y\n"),
        Answered::With("Allow once".into())
    );
}

#[test]
fn two_keys_allow_and_a_sentence_does_not() {
    let mut first = settled(approval(), 30);
    assert_eq!(typed(&mut first, "\n"), Answered::Not, "nothing is chosen");
    assert_eq!(typed(&mut first, "yes\n"), Answered::Not);
    assert_eq!(
        typed(&mut first, "a\n"),
        Answered::With("Allow always".into())
    );
    let mut never = settled(
        AskUserEvent {
            always: None,
            questions: Vec::new(),
            ..approval()
        },
        30,
    );
    assert_eq!(typed(&mut never, "a\n"), Answered::Not);
    assert_eq!(typed(&mut never, "n\n"), Answered::With("Deny".into()));
    let mut why = settled(approval(), 30);
    assert_eq!(
        typed(&mut why, "nuse make\n"),
        Answered::With("Deny: use make".into())
    );
    let mut back = settled(approval(), 30);
    assert_eq!(
        typed(&mut back, "nx\u{1b}y\n"),
        Answered::With("Allow once".into())
    );
    let mut aside = settled(approval(), 30);
    assert_eq!(typed(&mut aside, "\u{1b}"), Answered::Aside);
    assert_eq!(typed(&mut aside, "y\n"), Answered::Not);
}

#[test]
fn allowing_needs_the_last_row() {
    let command: String = (1..=30).map(|n| format!("echo {n}\n")).collect();
    let ask = AskUserEvent {
        detail: command + "rm -rf precious",
        ..approval()
    };
    let mut asking = settled(ask, 12);
    assert_eq!(typed(&mut asking, "y\n"), Answered::Not);
    let (rows, _) = asking.rows(60, 12);
    let text: String = rows.iter().map(|row| row.text() + "\n").collect();
    assert!(text.contains("Space shows"), "{text}");
    assert!(!text.contains("precious"), "{text}");
    assert_eq!(rows.len(), 12, "{text}");
    for _ in 0..5 {
        typed(&mut asking, " ");
        asking.rows(60, 12);
    }
    assert_eq!(
        typed(&mut asking, "y\n"),
        Answered::With("Allow once".into())
    );
}

#[test]
fn allowing_needs_a_terminal_with_room() {
    let mut asking = settled(approval(), 30);
    asking.fits = false;
    assert_eq!(typed(&mut asking, "y\n"), Answered::Not);
    assert!(shown(&mut asking, 60).contains("enlarge it"));
    asking.fits = true;
    let allowed = Answered::With("Allow once".into());
    assert_eq!(typed(&mut asking, "\n"), allowed);
}

#[test]
fn change_is_shown_with_line_numbers() {
    let mut edit = settled(
        AskUserEvent {
            tool: "edit".into(),
            detail: "/w/f.txt".into(),
            lines: 1,
            preview: "--- before\n+++ after\n@@ -7,2 +7,2 @@\n a\n-b\n+c\n".into(),
            preview_kind: "diff".into(),
            always: None,
            ..approval()
        },
        30,
    );
    let text = shown(&mut edit, 60);
    assert!(
        text.contains("\u{2503}    7   a\n\u{2503}    8 - b\n\u{2503}    8 + c\n"),
        "{text}"
    );
}

#[test]
fn questions_are_answered_in_their_input_line() {
    let question = |text: &str| AskQuestion {
        question: text.into(),
        options: vec![
            AskOption {
                label: "Red".into(),
                description: "as a crab".into(),
            },
            AskOption {
                label: "Blue".into(),
                ..AskOption::default()
            },
        ],
        ..AskQuestion::default()
    };
    let mut asking = settled(
        AskUserEvent {
            questions: vec![question("Which?"), question("And then?")],
            ..AskUserEvent::default()
        },
        30,
    );
    let text = shown(&mut asking, 60);
    assert!(
        text.starts_with(
            "\u{250f}\u{2501} crab asks\n\u{2503} Which? | And then?\n\u{2503} Which?\n\u{2503} \u{203a} 1. Red - as a crab\n\u{2503}   2. Blue\n"
        ),
        "{text}"
    );
    assert_eq!(typed(&mut asking, "2\n"), Answered::Not);
    assert!(
        shown(&mut asking, 60)
            .contains("\u{2503} Which? \u{2713} | And then?\n\u{2503} And then?\n")
    );
    assert_eq!(
        typed(&mut asking, "green\n"),
        Answered::With(r#"{"And then?":"green","Which?":"Blue"}"#.into())
    );
}
