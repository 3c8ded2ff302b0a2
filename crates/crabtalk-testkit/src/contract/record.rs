//! The notation for records: the kind, then its fields.

use crabtalk_domain::storage::{MetaRecord, Opened, Record, RunPhase, RunRecord};
use crabtalk_domain::{ContextUse, Message, ToolCall, Usage};
use std::sync::Arc;

/// Parses one record. `at` is the time of a message; the record `all` repeats
/// `opened`.
pub(super) fn parse(text: &str, at: &str, opened: &Opened) -> Record {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let words = || {
        rest.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let number = |at: usize| {
        words()
            .get(at)
            .map_or(0, |word| word.parse().expect("a number"))
    };
    let state = MetaRecord::default();
    match kind {
        "user" => message(Message::user(rest), at),
        "assistant" => message(Message::assistant(rest), at),
        "injected" => message(Message::injected(rest), at),
        "result" => message(Message::tool(rest, rest, false), at),
        "calls" => message(calls(words()), at),
        "compact" => {
            let (keep, summary) = rest.split_once(' ').unwrap_or((rest, ""));
            Record::Compact {
                summary: summary.into(),
                title: format!("{summary}."),
                archived_at: "2026-11-02T00:00:00Z".into(),
                keep: keep.parse().expect("a number of messages"),
            }
        }
        "start" => Record::Run(RunRecord {
            tries: number(1) as u32,
            ..run(number(0), RunPhase::Start)
        }),
        "end" => Record::Run(RunRecord {
            code: number(1) as u32,
            usage: Some(Usage {
                prompt_tokens: 10,
                completion_tokens: 2,
                ..Usage::default()
            }),
            duration_ms: Some(1_500),
            ..run(number(0), RunPhase::End)
        }),
        "interrupted" => Record::Run(run(number(0), RunPhase::Interrupted)),
        "title" => Record::Meta(MetaRecord {
            title: Some(rest.into()),
            ..state
        }),
        "cwd" => Record::Meta(MetaRecord {
            cwd: Some(rest.into()),
            own_cwd: Some(true),
            ..state
        }),
        "uptime" => Record::Meta(MetaRecord {
            uptime_secs: Some(number(0)),
            ..state
        }),
        "context" => Record::Meta(MetaRecord {
            context: Some(ContextUse {
                used: number(0),
                window: Some(number(1)),
            }),
            ..state
        }),
        "waiting" => Record::Meta(MetaRecord {
            waiting: Some(words()),
            ..state
        }),
        "steers" => Record::Meta(MetaRecord {
            steers: Some(words()),
            ..state
        }),
        "retried" => Record::Meta(MetaRecord {
            open_run: Some(RunRecord {
                tries: number(1) as u32,
                ..run(number(0), RunPhase::Start)
            }),
            last_run: Some(number(0)),
            ..state
        }),
        "all" => Record::Meta(all(opened)),
        _ => panic!("{text:?} is not a record"),
    }
}

fn calls(ids: Vec<String>) -> Message {
    let call = |id| ToolCall {
        id,
        name: "t".into(),
        arguments: "{}".into(),
    };
    let mut calls = Message::assistant("");
    calls.tool_calls = ids.into_iter().map(call).collect();
    calls
}

fn message(message: Message, at: &str) -> Record {
    Record::Message(Arc::new(Message {
        at: at.into(),
        ..message
    }))
}

fn run(id: u64, phase: RunPhase) -> RunRecord {
    RunRecord {
        id,
        phase,
        origin: "client:local".into(),
        request_id: format!("r{id}"),
        at: "2026-11-01T00:00:01Z".into(),
        ..RunRecord::default()
    }
}

/// The state that follows a marker.
fn all(opened: &Opened) -> MetaRecord {
    MetaRecord {
        title: Some(opened.meta.title.clone()),
        cwd: Some(opened.meta.cwd.clone()),
        own_cwd: Some(opened.meta.own_cwd),
        uptime_secs: Some(opened.meta.uptime_secs),
        context: opened.meta.context,
        last_run: Some(opened.last_run),
        open_run: opened.open_run.clone(),
        requests: Some(opened.requests.clone()),
        waiting: None,
        steers: Some(opened.steers.clone()),
    }
}
