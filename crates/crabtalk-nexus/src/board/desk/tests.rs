use super::*;
use crate::agent::State;
use crate::backend::Prompt;

fn line(name: &str) -> AgentLine {
    AgentLine {
        name: Name::new(name).unwrap(),
        state: State::Idle,
        for_ms: 0,
        queue: 0,
        kind: String::new(),
        tokens: None,
        window: None,
        percent: None,
        turns: 0,
        flags: Vec::new(),
        note: String::new(),
        last: String::new(),
        waits_for: String::new(),
        for_admin: false,
        is_cut: false,
        waits: None,
    }
}

fn asks(name: &str, id: &str, always: &str) -> AgentLine {
    AgentLine {
        for_admin: true,
        waits: Some(Prompt {
            id: id.into(),
            tool: "bash".into(),
            subject: "cargo test".into(),
            always: always.into(),
            ..Prompt::default()
        }),
        ..line(name)
    }
}

struct At {
    desk: Desk,
    now: Instant,
}

impl At {
    fn with(agents: Vec<AgentLine>) -> Self {
        let now = Instant::now();
        let mut at = Self {
            desk: Desk::new(true, now),
            now,
        };
        at.hear(agents);
        at
    }

    fn hear(&mut self, agents: Vec<AgentLine>) {
        let board = Answer::Board {
            agents,
            inbox: 0,
            tasks: 0,
            seen: 0,
            entries: Vec::new(),
        };
        self.desk.hear(board, self.now);
    }

    /// Shows the prompt long enough.
    fn reads(&mut self, id: &str, fits: bool) {
        self.desk.drawn(Some((id.into(), fits)), self.now);
        self.now += SETTLES;
    }

    fn code(&mut self, code: KeyCode) -> Do {
        self.desk
            .key(KeyEvent::new(code, KeyModifiers::NONE), self.now)
    }

    fn types(&mut self, keys: &str) -> Do {
        let mut done = Do::Nothing;
        for c in keys.chars() {
            done = match c {
                '\n' => self.code(KeyCode::Enter),
                c => self.code(KeyCode::Char(c)),
            };
        }
        done
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

#[test]
fn key_answers_only_the_shown_prompt() {
    let mut at = At::with(vec![asks("A", "p1", "")]);
    assert_eq!(at.types("a"), Do::Nothing, "it was not drawn yet");
    at.reads("p1", true);
    let approve = |id: &str| reply(name("A"), Some(id.to_owned()), Reply::Allow);
    assert_eq!(at.types("a"), approve("p1"));
    // Another prompt replaces it just as the key is pressed.
    at.hear(vec![asks("A", "p2", "")]);
    assert_eq!(at.types("a"), Do::Nothing);
    at.desk.drawn(Some(("p2".into(), true)), at.now);
    assert_eq!(at.types("a"), Do::Nothing, "nobody reads so fast");
    at.now += SETTLES;
    at.desk.drawn(Some(("p2".into(), true)), at.now);
    assert_eq!(at.types("y"), approve("p2"));
}

#[test]
fn always_needs_an_offer() {
    let mut at = At::with(vec![asks("A", "p1", "")]);
    at.reads("p1", true);
    assert_eq!(at.types("A"), Do::Nothing);
    at.hear(vec![asks("A", "p1", "bash cargo test in /w")]);
    let always = reply(name("A"), Some("p1".to_owned()), Reply::Always);
    assert_eq!(at.types("A"), always);
}

#[test]
fn denial_takes_a_reason_and_esc_cancels() {
    let mut at = At::with(vec![asks("A", "p1", "")]);
    at.reads("p1", true);
    let reason = Reply::Deny("not on main".into());
    let deny = reply(name("A"), Some("p1".to_owned()), reason);
    assert_eq!(at.types("dnot on main\n"), deny);
    assert_eq!(at.types("dq"), Do::Nothing, "q is a letter of the reason");
    at.code(KeyCode::Esc);
    assert!(matches!(at.desk.mode, Mode::Plain));
}

#[test]
fn question_is_answered_with_text() {
    let mut agent = asks("A", "p1", "");
    agent.waits.as_mut().unwrap().is_question = true;
    let mut at = At::with(vec![agent]);
    at.reads("p1", true);
    let text = Reply::Text("tabs".into());
    let answer = reply(name("A"), Some("p1".to_owned()), text);
    assert_eq!(at.types("atabs\n"), answer);
    assert_eq!(at.types("r\n"), Do::Nothing, "an empty answer is none");
}

#[test]
fn long_prompt_is_allowed_after_it_was_read() {
    let mut at = At::with(vec![asks("A", "p1", "")]);
    at.reads("p1", false);
    assert_eq!(at.types("a"), Do::Nothing);
    assert!(matches!(at.desk.mode, Mode::Reading(_)));
    assert_eq!(at.types("a"), Do::Nothing, "its end was not shown");
    if let Mode::Reading(reading) = &mut at.desk.mode {
        reading.to_the_end = true;
    }
    assert!(matches!(at.types("a"), Do::Say(Command::Reply { .. })));
    // The board cannot allow a prompt that is not shown completely.
    let mut cut = asks("A", "p1", "");
    cut.is_cut = true;
    at.hear(vec![cut]);
    at.reads("p1", true);
    assert_eq!(at.types("a"), Do::Nothing);
}

#[test]
fn tab_selects_the_next_waiting_agent() {
    let mut at = At::with(vec![line("A"), line("B"), asks("C", "p1", "")]);
    at.code(KeyCode::Down);
    assert_eq!(at.desk.chosen, Some(name("B")));
    at.code(KeyCode::Tab);
    assert_eq!(at.desk.chosen, Some(name("C")));
    at.hear(vec![line("A0"), line("A"), line("B"), asks("C", "p1", "")]);
    assert_eq!(at.desk.chosen, Some(name("C")));
    at.hear(vec![line("A")]);
    assert_eq!(at.desk.chosen, Some(name("A")));
}

#[test]
fn ending_nexus_takes_two_keys() {
    let mut at = At::with(vec![line("A")]);
    assert_eq!(at.types("q"), Do::Nothing);
    assert_eq!(at.types("jq"), Do::Nothing, "something came between");
    assert_eq!(at.types("q"), Do::Quit);
    at.desk.is_owner = false;
    assert_eq!(at.types("q"), Do::Quit);
}
