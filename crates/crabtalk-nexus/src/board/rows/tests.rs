use super::*;
use crate::agent::State;
use crate::backend::Prompt;
use crate::name::Name;
use crate::world::Answer;

fn agent(n: usize) -> AgentLine {
    let states = [State::Active, State::Approval, State::PreCompression];
    let asks = n % 3 == 1;
    AgentLine {
        name: Name::new(&format!("AGENT-{n}")).unwrap(),
        state: states[n % 3],
        for_ms: 61_000 * n as u64,
        queue: n,
        kind: String::new(),
        tokens: Some(12_345),
        window: Some(200_000),
        percent: Some(6),
        turns: 7,
        flags: vec!["held".into()],
        note: "a note \u{1b}[31m of somebody".into(),
        last: "← ADMIN [X] 漢字漢字漢字漢字漢字 make \u{1b}]0;title\u{7} it".into(),
        waits_for: "your approval: bash cargo test".into(),
        for_admin: asks,
        is_cut: false,
        waits: asks.then(|| Prompt {
            id: format!("p{n}"),
            tool: "bash".into(),
            subject: "echo \u{202e} \u{1b}[2J".into(),
            text: "line\n".repeat(60),
            ..Prompt::default()
        }),
    }
}

fn desk(agents: usize) -> Desk {
    let now = Instant::now();
    let mut desk = Desk::new(true, now);
    let board = Answer::Board {
        agents: (0..agents).map(agent).collect(),
        inbox: 3,
        tasks: 40,
        seen: 0,
        entries: (0..100)
            .map(|n| Entry {
                n,
                why: "it \u{1b}[2J happened, and more".repeat(4),
                did: vec!["post m1".into()],
                ..Entry::default()
            })
            .collect(),
    };
    desk.hear(board, now);
    desk
}

fn text(drawn: &Drawn) -> String {
    let rows = drawn.drawing.rows.iter();
    rows.map(|row| format!("{}\n", row.text())).collect()
}

/// Tries every terminal size, any number of agents, and each mode.
#[test]
fn rows_fit_the_terminal_and_are_escaped() {
    let now = Instant::now();
    for width in [16, 30, 40, 59, 60, 80, 99, 100, 200] {
        for height in [6, 10, 15, 16, 24, 50] {
            for count in [0, 1, 3, 50] {
                let mut desk = desk(count);
                for place in [0, 1, count.saturating_sub(1)] {
                    desk.chosen = desk.agents.get(place).map(|agent| agent.name.clone());
                    for mode in 0..3 {
                        desk.mode = match mode {
                            0 => Mode::Plain,
                            1 => Mode::Typing(Typing::Send, Box::default()),
                            _ => Mode::Reading(Reading {
                                text: "word \u{1b}[2J ".repeat(300),
                                ..Reading::default()
                            }),
                        };
                        let drawn = draw(&mut desk, (width, height), now);
                        let shown = text(&drawn);
                        let at = format!("{width}x{height} {count} {place} {mode}\n{shown}");
                        for row in &drawn.drawing.rows {
                            assert!(row.width() <= width, "{at}");
                        }
                        assert!(drawn.drawing.rows.len() <= height, "{at}");
                        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{at}");
                        if let (0, Some(chosen)) = (mode, &desk.chosen) {
                            let name: String = chosen.as_str().chars().take(4).collect();
                            assert!(shown.contains(&format!("›{name}")), "{at}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn always_is_shown_only_where_it_is_offered() {
    let mut desk = desk(3);
    desk.chosen = desk.agents.get(1).map(|agent| agent.name.clone());
    let shown = text(&draw(&mut desk, (120, 40), Instant::now()));
    assert!(shown.contains("a allow · d deny"), "{shown}");
    let prompt = desk.agents[1].waits.as_mut().unwrap();
    prompt.always = "commands that begin so".into();
    let shown = text(&draw(&mut desk, (120, 40), Instant::now()));
    assert!(shown.contains("a allow · A always"), "{shown}");
}

#[test]
fn each_agent_has_a_row() {
    let mut desk = desk(3);
    let drawn = draw(&mut desk, (120, 40), Instant::now());
    let shown = text(&drawn);
    for part in [
        "ACTIVE",
        "APPROVAL",
        "PRE-COMPRESSION",
        "2m",
        "12.3k   6%",
        "LAST MESSAGE",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        shown.contains("1 wait for you") && shown.contains("3 messages"),
        "{shown}"
    );
    let narrow = text(&draw(&mut desk, (40, 24), Instant::now()));
    assert!(
        narrow.contains("PRE-COM") && narrow.contains("6%"),
        "{narrow}"
    );
}

#[test]
fn prompt_shows_whether_it_is_complete() {
    let mut desk = desk(3);
    desk.chosen = Some(Name::new("AGENT-1").unwrap());
    let drawn = draw(&mut desk, (80, 24), Instant::now());
    assert_eq!(drawn.prompt, Some(("p1".into(), false)));
    assert!(text(&drawn).contains("v shows all"));
    desk.agents[1].waits.as_mut().unwrap().text = "one line".into();
    let drawn = draw(&mut desk, (80, 24), Instant::now());
    assert_eq!(drawn.prompt, Some(("p1".into(), true)));
    assert!(text(&drawn).contains("<U+202E>"), "what is hidden is seen");
}

#[test]
fn text_is_read_to_its_end() {
    let mut desk = desk(1);
    desk.mode = Mode::Reading(Reading {
        text: (0..100).map(|n| format!("line {n}\n")).collect(),
        ..Reading::default()
    });
    let first = text(&draw(&mut desk, (80, 24), Instant::now()));
    assert!(first.contains("line 0\n") && !first.contains("line 99"));
    let Mode::Reading(reading) = &mut desk.mode else {
        panic!();
    };
    assert!(!reading.to_the_end);
    reading.top = usize::MAX;
    assert!(text(&draw(&mut desk, (80, 24), Instant::now())).contains("line 99"));
    let Mode::Reading(reading) = &desk.mode else {
        panic!();
    };
    assert!(reading.to_the_end);
}
