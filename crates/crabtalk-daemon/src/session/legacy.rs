//! What clients of the 0.0.20 generation read and write otherwise (WIRE-5).
//!
//! Invariant: a client that sent Hello, or used anything newer, meets none of
//! this but what its meaning cannot be doubted.

use super::wire;
use crate::partial_answers::PartialAnswers;
use crabtalk_domain::{AskKind, End, ToolCallInfo, Usage};
use crabtalk_proto::AskQuestion;
use crabtalk_runtime::PendingAsk;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde_json::Value;

/// The kind of a provider that names none.
pub(super) const DEFAULT_KIND: &str = "openai";

/// What the calls of a step are called in the list of events: names, a command
/// with its first line.
pub(super) fn calls_label(calls: &[ToolCallInfo]) -> String {
    let label = |call: &ToolCallInfo| {
        let arguments: Option<Value> = serde_json::from_str(&call.arguments).ok();
        let command = arguments.as_ref().and_then(|a| a["command"].as_str());
        match command.filter(|_| call.name == "bash") {
            Some(command) => format!("bash({})", command.lines().next().unwrap_or_default()),
            None => call.name.clone(),
        }
    };
    calls.iter().map(label).collect::<Vec<_>>().join(", ")
}

/// How long a call took.
pub(super) fn duration_label(duration_ms: u64) -> String {
    format!("{duration_ms}ms")
}

/// How a run ended: the error, else its model and tokens.
pub(super) fn end_label(end: &End) -> String {
    let usage = end.usage.as_ref().filter(|_| end.error.is_empty());
    let Some(Usage {
        prompt_tokens,
        completion_tokens,
        cache_hit_tokens,
        ..
    }) = usage
    else {
        return end.error.clone();
    };
    let cached = cache_hit_tokens.filter(|tokens| *tokens > 0);
    let cached = cached.map_or(String::new(), |tokens| {
        format!(" ({} cached)", tokens_label(tokens))
    });
    format!(
        "{} {} in{cached} / {} out",
        end.model,
        tokens_label(*prompt_tokens),
        tokens_label(*completion_tokens)
    )
}

fn tokens_label(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// The day of an instant as a person calls it; empty for what is no instant.
pub(super) fn day_label(at: &str, now: Timestamp, zone: &TimeZone) -> String {
    let Ok(at) = at.parse::<Timestamp>() else {
        return String::new();
    };
    let day = at.to_zoned(zone.clone()).date();
    let today = now.to_zoned(zone.clone()).date();
    if day == today {
        "Today".to_owned()
    } else if today.checked_sub(1.day()).is_ok_and(|before| before == day) {
        "Yesterday".to_owned()
    } else {
        day.to_string()
    }
}

/// A provider's table with the names of its models in place of their tables.
pub(super) fn with_names(table: &mut Value) {
    for model in table["models"].as_array_mut().into_iter().flatten() {
        if let Some(name) = model.get("name").cloned() {
            *model = name;
        }
    }
}

/// The reverse: a model that was known keeps what its name does not tell.
pub(super) fn with_tables(table: &mut Value, known: &Value) {
    let known = known["models"].as_array();
    let models = table.get_mut("models").and_then(Value::as_array_mut);
    for model in models.into_iter().flatten() {
        let mut found = known.into_iter().flatten();
        if let Some(found) = found.find(|known| model.is_string() && known["name"] == *model) {
            model.clone_from(found);
        }
    }
}

/// Takes a reply to the ask that it is meant for. `Some` is what to answer
/// the ask with; with `None` there are questions left.
pub(super) fn whole_answer(
    partial: &PartialAnswers,
    asks: &[PendingAsk],
    asked: &PendingAsk,
    reply: &str,
) -> Option<String> {
    let questions = wire::ask(&asked.ask).questions;
    let mut all = partial.all();
    // What was withdrawn is not answered any more.
    all.retain(|id, _| asks.iter().any(|pending| pending.ask.id == *id));
    if asked.ask.kind != AskKind::Question || questions.len() < 2 {
        return Some(reply.to_owned());
    }
    let mut given = all.remove(&asked.ask.id).unwrap_or_default();
    match serde_json::from_str(reply) {
        Ok(Value::Object(named)) => {
            if !named
                .keys()
                .all(|name| question(&questions, name).is_some())
            {
                return Some(reply.to_owned());
            }
            for (name, answer) in named {
                let question = question(&questions, &name).expect("looked at above");
                given.insert(question.question.clone(), answer);
            }
        }
        _ => {
            let open = questions.iter().find(|q| !given.contains_key(&q.question));
            let open = open.expect("a full answer is not kept");
            given.insert(open.question.clone(), reply.into());
        }
    }
    if questions.iter().all(|q| given.contains_key(&q.question)) {
        return Some(Value::Object(given).to_string());
    }
    all.insert(asked.ask.id.clone(), given);
    None
}

fn question<'a>(questions: &'a [AskQuestion], name: &str) -> Option<&'a AskQuestion> {
    let named = |q: &&AskQuestion| q.question == name || !q.header.is_empty() && q.header == name;
    questions.iter().find(named)
}

/// The words of a reply to an approval that names the question, as replies to
/// questions do. Another ask's question names nothing here.
pub(super) fn approval_words(asked: &PendingAsk, reply: &str) -> Option<String> {
    if asked.ask.kind != AskKind::Approval {
        return None;
    }
    let Ok(Value::Object(named)) = serde_json::from_str(reply) else {
        return None;
    };
    let questions = wire::ask(&asked.ask).questions;
    let mut named = named.into_iter();
    match (named.next(), named.next()) {
        (Some((name, Value::String(words))), None) => question(&questions, &name).map(|_| words),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_called_by_their_names_and_commands() {
        let call = |name: &str, arguments: &str| ToolCallInfo {
            call_id: "1".into(),
            name: name.into(),
            arguments: arguments.into(),
        };
        let calls = [
            call("bash", "{\"command\":\"ls -la\\nrm x\"}"),
            call("read", "{\"command\":\"no\"}"),
            call("bash", "{broken"),
        ];
        assert_eq!(calls_label(&calls), "bash(ls -la), read, bash");
        assert_eq!(duration_label(342), "342ms");
    }

    #[test]
    fn an_end_names_model_and_tokens_or_the_error() {
        let mut end = End {
            model: "sonnet".into(),
            usage: Some(Usage {
                prompt_tokens: 1_250,
                completion_tokens: 42,
                ..Usage::default()
            }),
            ..End::default()
        };
        assert_eq!(end_label(&end), "sonnet 1.2k in / 42 out");
        let usage = end.usage.as_mut().expect("set above");
        usage.prompt_tokens = 2_500_000;
        usage.cache_hit_tokens = Some(999);
        assert_eq!(end_label(&end), "sonnet 2.5M in (999 cached) / 42 out");
        end.error = "cancelled".into();
        assert_eq!(end_label(&end), "cancelled");
        assert_eq!(end_label(&End::default()), "");
    }

    #[test]
    fn days_are_called_as_a_person_calls_them() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let now: Timestamp = "2026-11-22T08:00:00Z".parse().expect("an instant");
        for (at, label) in [
            ("2026-11-22T00:00:00.000Z", "Today"),
            ("2026-11-21T22:30:00Z", "Today"),
            ("2026-11-21T21:30:00Z", "Yesterday"),
            ("2026-11-20T21:30:00Z", "2026-11-20"),
            ("", ""),
        ] {
            assert_eq!(day_label(at, now, &zone), label, "{at}");
        }
    }

    #[test]
    fn models_are_names_on_the_way_out_and_whole_again_on_the_way_in() {
        let known = json!({"models": [{"name": "a", "context": 8}, {"name": "b"}]});
        let mut shown = known.clone();
        with_names(&mut shown);
        assert_eq!(shown, json!({"models": ["a", "b"]}));
        let mut back = json!({"models": ["a", "new", {"name": "b", "context": 2}]});
        with_tables(&mut back, &known);
        let whole = json!({"models": [
            {"name": "a", "context": 8}, "new", {"name": "b", "context": 2},
        ]});
        assert_eq!(back, whole);
    }
}
