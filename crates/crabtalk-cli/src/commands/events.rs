//! `events`: prints the events of all conversations as they occur.

use super::Context;
use crate::error::Error;
use crate::json;
use crate::prompt::{is_approval, wanted};
use crate::text::{call_summary, summary};
use crate::view::settled as settled_words;
use crabtalk_client::WatchNews;
use crabtalk_proto::{AgentEventMsg, SubscribeEvents};
use futures_util::StreamExt;

pub(super) async fn events(context: &mut Context) -> Result<(), Error> {
    let request = SubscribeEvents {
        agent: context.global.agent.clone(),
        sender: Some(context.named_sender()).filter(|sender| !sender.is_empty()),
        ..SubscribeEvents::default()
    };
    let mut events = context.client().await?.watch(request);
    let console = &mut context.console;
    loop {
        let event = tokio::select! {
            biased;
            Some(()) = console.interrupts.next() => return Err(Error::Interrupted),
            event = events.next() => event,
        };
        let Some(event) = event else {
            return Err(Error::Failed(
                "the daemon closed the event stream".to_owned(),
            ));
        };
        let event = match event? {
            WatchNews::Event(event) => event,
            news @ (WatchNews::Lost { .. }
            | WatchNews::Back { .. }
            | WatchNews::Restarted { .. }) => {
                let said = lost_and_found(&news);
                if context.global.json {
                    console.screen.json(&said)?;
                }
                let words = said["content"].as_str().unwrap_or_default();
                console.screen.note(&format!("crabtalk: {words}"))?;
                continue;
            }
        };
        if context.global.json {
            console.screen.json(&json::of(&*event))?;
        } else if let Some(line) = line(&event) {
            console.screen.line(&line)?;
            if let Some(ask) = event.ask.as_ref().filter(|ask| is_approval(ask)) {
                console.screen.line(&wanted(ask, &event.agent))?;
            }
        }
    }
}

/// A change of the connection, as JSON.
fn lost_and_found(news: &WatchNews) -> serde_json::Value {
    let events = |count: u64| match count {
        0 => "no events missed".to_owned(),
        count => format!("{count} events missed"),
    };
    match news {
        WatchNews::Event(_) => serde_json::Value::Null,
        WatchNews::Lost { why } => serde_json::json!({
            "type": "lost", "content": format!("{why}; reconnecting"),
        }),
        WatchNews::Back { missed } => {
            let words = events(*missed);
            serde_json::json!({
                "type": "back", "content": format!("reconnected, {words}"), "missed": missed,
            })
        }
        WatchNews::Restarted { missed } => serde_json::json!({
            "type": "restarted",
            "content": format!(
                "the daemon was restarted, and its last events may be lost; since then {}",
                events(*missed)
            ),
            "missed": missed,
        }),
    }
}

/// Formats an event in one line; `None` for deltas of text, which would be too many.
fn line(event: &AgentEventMsg) -> Option<String> {
    let kind = json::of(event)["type"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    if event.missed > 0 {
        return Some(format!("({} events missed)", event.missed));
    }
    let pieces = ["text_delta", "thinking_delta", "text_start", "text_end"];
    if pieces.contains(&kind.as_str()) || kind.starts_with("thinking_") || kind == "tools_complete"
    {
        return None;
    }
    let mut text = vec![event.content.clone()];
    text.extend(
        event
            .tool_calls
            .iter()
            .map(|c| format!("{} {}", c.name, call_summary(&c.arguments))),
    );
    text.push(event.tool_output.clone());
    if let Some(settled) = &event.settled {
        text = vec![settled_words(settled)];
    }
    if !event.ask_id.is_empty() {
        text.push(format!("(ask {})", event.ask_id));
    }
    let text = summary(&text.join(" "));
    let line = format!(
        "{} {} {} {kind} {text}",
        event.timestamp, event.agent, event.sender
    );
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::{AgentEventKind, ToolCallInfo};

    #[test]
    fn events_are_lines_without_text_chunks() {
        let event = |kind: AgentEventKind| AgentEventMsg {
            agent: "crab".into(),
            sender: "user".into(),
            kind: kind.into(),
            timestamp: "12:00".into(),
            ..AgentEventMsg::default()
        };
        let mut start = event(AgentEventKind::ToolStart);
        start.tool_calls.push(ToolCallInfo {
            name: "bash".into(),
            arguments: r#"{"command":"ls"}"#.into(),
            ..ToolCallInfo::default()
        });
        assert_eq!(
            line(&start).as_deref(),
            Some("12:00 crab user tool_start bash ls")
        );
        assert_eq!(line(&event(AgentEventKind::TextDelta)), None);
        let missed = AgentEventMsg {
            missed: 3,
            ..AgentEventMsg::default()
        };
        assert_eq!(line(&missed).as_deref(), Some("(3 events missed)"));
        let newer = AgentEventMsg {
            kind: 99,
            ..event(AgentEventKind::Done)
        };
        assert_eq!(line(&newer).as_deref(), Some("12:00 crab user 99"));
    }
}
