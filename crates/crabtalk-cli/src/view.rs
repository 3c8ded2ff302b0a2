//! Prints the events of a run: answers to standard output, tools and notes to standard
//! error, or all events as JSON.

use crate::json;
use crate::screen::Screen;
use crate::text::{call_summary, duration, image_note, money, summary};
use crate::todo::{self, Todo};
use crabtalk_proto::{
    AskOutcome, AskSettledEvent, QueuedEvent, StreamEnd, StreamEvent, ToolCallInfo,
    ToolResultEvent, code, stream_event,
};
use std::collections::HashMap;
use std::io;

#[derive(Default)]
pub(crate) struct View {
    /// Whether events are printed as JSON.
    json: bool,
    /// Tool names by call id.
    calls: HashMap<String, String>,
    /// The last todo list.
    todo: Todo,
    /// Text of the last step, for JSON.
    answer: String,
    /// Whether the queue was reported.
    waited: bool,
}

impl View {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            ..Self::default()
        }
    }

    pub(crate) fn event(&mut self, screen: &mut Screen, event: &StreamEvent) -> io::Result<()> {
        if self.json {
            return screen.json(&self.for_script(event));
        }
        match &event.event {
            Some(event) => self.known(screen, event),
            // An event of a newer daemon.
            None => Ok(()),
        }
    }

    /// The event as JSON; an End includes the whole answer.
    fn for_script(&mut self, event: &StreamEvent) -> serde_json::Value {
        use stream_event::Event;
        let mut value = json::stream_event(event);
        match &event.event {
            Some(Event::Chunk(chunk)) => self.answer.push_str(&chunk.content),
            // Another step follows.
            Some(Event::ToolStart(_) | Event::UserSteered(_)) => self.answer.clear(),
            Some(Event::End(_)) => value["text"] = std::mem::take(&mut self.answer).into(),
            Some(_) | None => {}
        }
        value
    }

    fn known(&mut self, screen: &mut Screen, event: &stream_event::Event) -> io::Result<()> {
        use stream_event::Event;
        match event {
            Event::Queued(e) => {
                self.waited = true;
                screen.note(&format!("crabtalk: {}", queued(e)))
            }
            Event::Start(e) => {
                if std::mem::take(&mut self.waited) {
                    screen.note("crabtalk: running now")?;
                }
                if !e.notice.is_empty() {
                    screen.note(&format!("crabtalk: {}", e.notice))?;
                }
                if e.model.is_empty() {
                    return Ok(());
                }
                screen.note(&format!("{} answers with {}", e.agent, e.model))
            }
            Event::Chunk(e) => screen.answer(&e.content),
            Event::ToolStart(e) => e.calls.iter().try_for_each(|call| self.call(screen, call)),
            Event::ToolResult(e) => self.result(screen, e),
            Event::End(e) => end(screen, e),
            Event::TextEnd(_) => screen.end_line(),
            Event::UserSteered(e) => screen.note(&format!("steered: {}", summary(&e.content))),
            Event::UserMessage(e) => {
                screen.note(&format!("{}: {}", origin(&e.origin), summary(&e.content)))
            }
            Event::Compacted(e) if e.failed.is_empty() => screen.note(&format!(
                "compacted {} tokens to {} (archive: {})",
                e.tokens_before, e.tokens_after, e.title
            )),
            Event::Compacted(e) => screen.note(&format!("cannot compact: {}", e.failed)),
            Event::Interrupted(e) => {
                screen.note(&format!("run {} was interrupted: {}", e.run, e.reason))
            }
            Event::Waiting(e) => screen.note(&format!(
                "crabtalk: the run waits for {} to approve a tool call, for {} at most",
                e.whom,
                duration(e.timeout_secs)
            )),
            Event::AskSettled(e) => screen.note(&format!("crabtalk: {}", settled(e))),
            Event::Notice(e) => screen.note(&format!("crabtalk: {}", e.text)),
            Event::AskUser(_)
            | Event::ToolProgress(_)
            | Event::ToolsComplete(_)
            | Event::TextStart(_)
            | Event::ThinkingStart(_)
            | Event::Thinking(_)
            | Event::ThinkingEnd(_) => Ok(()),
        }
    }

    fn call(&mut self, screen: &mut Screen, call: &ToolCallInfo) -> io::Result<()> {
        self.calls.insert(call.call_id.clone(), call.name.clone());
        if call.name == todo::TOOL
            && let Some(list) = Todo::parse(&call.arguments)
        {
            let said = format!("> todo {}", list.change(&self.todo));
            self.todo = list;
            return screen.note(&said);
        }
        screen.note(&format!(
            "> {} {}",
            call.name,
            call_summary(&call.arguments)
        ))
    }

    fn result(&mut self, screen: &mut Screen, result: &ToolResultEvent) -> io::Result<()> {
        let name = self.calls.remove(&result.call_id);
        let name = name.as_deref().unwrap_or("tool");
        let secs = result.duration_ms as f64 / 1000.0;
        if result.is_error {
            let first = result.output.lines().find(|line| !line.trim().is_empty());
            let first = summary(first.unwrap_or_default());
            return screen.note(&format!("< {name} failed after {secs:.1} s: {first}"));
        }
        // The call itself shows the list.
        if name == todo::TOOL {
            return Ok(());
        }
        screen.note(&format!("< {name} {secs:.1} s"))?;
        let mut images = result.images.iter();
        images.try_for_each(|image| screen.note(&format!("  {}", image_note(image))))
    }
}

/// The author of a message.
pub(crate) fn origin(origin: &str) -> String {
    let (kind, rest) = origin.split_once(':').unwrap_or((origin, ""));
    let rest = summary(rest);
    match kind {
        "client" => match rest.strip_prefix("token/") {
            Some(token) => format!("from a client with the token {token}"),
            None => "from another client".to_owned(),
        },
        "cron" => format!(
            "from cron, entry {}",
            rest.split(':').next().unwrap_or_default()
        ),
        "delegate" => "from another agent".to_owned(),
        "" => "from another client".to_owned(),
        _ if kind.starts_with("event") => format!("from the event {rest}"),
        _ => format!("from {}", summary(origin)),
    }
}

/// The place of a message in the queue.
pub(crate) fn queued(event: &QueuedEvent) -> String {
    let kind = event.origin.split([':', '#']).next();
    let first = match (event.guest.as_str(), kind.unwrap_or_default()) {
        ("", "compaction") => "a compaction".to_owned(),
        ("", "cron") => "a cron run".to_owned(),
        ("", "event") => "an event's run".to_owned(),
        ("", "delegate") => "a delegated run".to_owned(),
        ("", _) => "another run".to_owned(),
        (guest, _) => format!("the guest {}", summary(guest)),
    };
    match event.ahead {
        0 | 1 => format!("behind {first}"),
        ahead => format!("behind {first} and {} more", ahead - 1),
    }
}

/// Describes how an ask was settled.
pub(crate) fn settled(event: &AskSettledEvent) -> String {
    match event.outcome() {
        AskOutcome::Answered => {
            format!("answered by {}: {}", event.by, summary(&event.answer))
        }
        AskOutcome::Withdrawn => "withdrawn: the run ended".to_owned(),
        AskOutcome::TimedOut => "not answered in time".to_owned(),
        AskOutcome::Unknown => "withdrawn".to_owned(),
    }
}

fn end(screen: &mut Screen, end: &StreamEnd) -> io::Result<()> {
    screen.end_line()?;
    if end.code == code::CANCELLED {
        return screen.note("crabtalk: the run was cancelled");
    }
    if !end.error.is_empty() || end.code != 0 {
        let error = if end.error.is_empty() {
            "no reason given"
        } else {
            &end.error
        };
        return screen.problem(&format!("crabtalk: the run failed: {error} ({})", end.code));
    }
    let model = match (end.provider.as_str(), end.model.as_str()) {
        ("", model) => model.to_owned(),
        (provider, model) => format!("{provider}/{model}"),
    };
    match &end.usage {
        Some(usage) => screen.note(&format!(
            "{model}: {} tokens read, {} written{}",
            usage.prompt_tokens,
            usage.completion_tokens,
            cost(end)
        )),
        None if model.is_empty() => Ok(()),
        None => screen.note(&model),
    }
}

/// The cost of a run, if known.
fn cost(end: &StreamEnd) -> String {
    let Some(spent) = end.money else {
        return String::new();
    };
    let unpriced = match end.unpriced_tokens {
        0 => String::new(),
        tokens => format!(" ({tokens} tokens without price)"),
    };
    format!(", {}{unpriced}", money(spent))
}
