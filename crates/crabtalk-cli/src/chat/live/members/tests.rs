use super::*;
use crabtalk_proto::{RunRef, ToolCallInfo};

fn event(agent: &str, number: u64, kind: AgentEventKind, tokens: u64) -> AgentEventMsg {
    AgentEventMsg {
        agent: agent.into(),
        sender: format!("delegate:{number}"),
        run: 1,
        kind: kind.into(),
        tokens,
        root: Some(RunRef {
            agent: "crab".into(),
            sender: "user".into(),
            run: 3,
        }),
        ..AgentEventMsg::default()
    }
}

fn call(agent: &str, number: u64, command: &str) -> AgentEventMsg {
    let call = ToolCallInfo {
        name: "bash".into(),
        arguments: serde_json::json!({ "command": command }).to_string(),
        call_id: "c".into(),
    };
    AgentEventMsg {
        tool_calls: vec![call],
        ..event(agent, number, AgentEventKind::ToolStart, 1_500)
    }
}

fn hear(members: &mut Members, events: &[AgentEventMsg]) {
    for event in events {
        members.event(event, ("crab", "user"));
    }
}

fn rows(members: &Members) -> Vec<String> {
    let rows = members.rows(Some(3), 60, "*");
    rows.iter().map(Line::text).collect()
}

#[test]
fn each_member_has_a_row_with_its_state() {
    use AgentEventKind as Kind;
    let mut members = Members::default();
    hear(
        &mut members,
        &[
            event("ada", 1, Kind::RunStarted, 0),
            event("bob", 2, Kind::RunStarted, 0),
            call("ada", 1, "cargo test"),
        ],
    );
    let heading = "Members \u{b7} Ctrl-S shows their output";
    assert_eq!(
        rows(&members),
        [
            heading,
            "  * ada \u{b7} bash cargo test \u{b7} 1.5k tokens \u{b7} 0s",
            "  * bob \u{b7} working \u{b7} 0s",
        ]
    );
    members.asked(&AskUserEvent {
        ask_id: "1".into(),
        delegate: "delegate:2".into(),
        ..AskUserEvent::default()
    });
    hear(&mut members, &[event("ada", 1, Kind::Done, 2_000)]);
    assert_eq!(
        rows(&members)[1..],
        [
            "  \u{2713} ada \u{b7} done \u{b7} 2.0k tokens \u{b7} 0s",
            "  ! bob \u{b7} waiting for you \u{b7} 0s",
        ]
    );
    assert_eq!(members.first(Some(3)), Some(1), "it still works");
    members.settled("1");
    hear(&mut members, &[event("bob", 2, Kind::RunError, 0)]);
    assert_eq!(rows(&members)[2], "  \u{2717} bob \u{b7} failed \u{b7} 0s");
}

#[test]
fn members_of_other_runs_are_not_shown() {
    let mut members = Members::default();
    let mut other = event("ada", 1, AgentEventKind::RunStarted, 0);
    other.root.as_mut().unwrap().sender = "user/other".into();
    let mut alone = event("ada", 1, AgentEventKind::RunStarted, 0);
    alone.root = None;
    hear(&mut members, &[other, alone]);
    assert_eq!(rows(&members), [""; 0]);
    hear(
        &mut members,
        &[event("ada", 1, AgentEventKind::RunStarted, 0)],
    );
    assert_eq!(members.rows(Some(2), 60, "*"), []);
    assert_eq!(
        (members.first(Some(3)), members.first(None)),
        (Some(0), None)
    );
    let mut next = event("bob", 2, AgentEventKind::RunStarted, 0);
    next.root.as_mut().unwrap().run = 4;
    let late = event("ada", 1, AgentEventKind::Done, 0);
    hear(&mut members, &[next, late]);
    assert_eq!(members.rows(Some(4), 60, "*").len(), 2, "of the newest run");
}

#[test]
fn view_shows_and_scrolls_the_output_of_a_member() {
    let home = tempfile::tempdir().unwrap();
    let client = Client::new(crabtalk_client::Endpoint::of_home(home.path()), "test");
    let mut members = Members::default();
    hear(
        &mut members,
        &[
            event("ada", 1, AgentEventKind::RunStarted, 0),
            event("bob", 2, AgentEventKind::Done, 0),
        ],
    );
    assert!(members.open(0, &client, 60).is_none(), "it is followed");
    assert!(
        members.open(1, &client, 60).is_some(),
        "its messages are read"
    );
    let entry = |text: String| crabtalk_proto::HistoryEntry {
        role: "assistant".into(),
        content: text,
        ..Default::default()
    };
    let page = HistoryPage {
        entries: (0..20).map(|n| entry(format!("line {n}"))).collect(),
        ..HistoryPage::default()
    };
    members.messages("delegate:1", Ok(HistoryPage::default()));
    members.messages("delegate:2", Ok(page));
    let shown = |members: &Members| {
        let rows = members.view_rows(60, 8, "*");
        assert_eq!(rows.len(), 8);
        rows[6].text()
    };
    assert_eq!(shown(&members), "  line 19");
    let press = |members: &mut Members, code| members.key(KeyEvent::from(code));
    assert_eq!(press(&mut members, KeyCode::Up), Wanted::Nothing);
    assert_eq!(press(&mut members, KeyCode::Up), Wanted::Nothing);
    assert_eq!(shown(&members), "  line 18");
    for _ in 0..20 {
        press(&mut members, KeyCode::PageUp);
    }
    let top = members.view_rows(60, 8, "*");
    assert_eq!(top[2].text(), "  line 0");
    assert_eq!(press(&mut members, KeyCode::Right), Wanted::Other(0));
    assert_eq!(press(&mut members, KeyCode::Esc), Wanted::Close);
}
