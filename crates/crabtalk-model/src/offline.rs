//! The embedded offline model, which needs no network.
//! Invariant: the same request gets the same answer.

mod script;
mod summary;

use crate::sight::Sight;
use crabtalk_domain::model::{Chunk, Error, Request, StopReason};
use crabtalk_domain::{Message, Role, Usage, estimate_tokens};
use script::{Act, Script};
use std::collections::{BTreeSet, VecDeque};
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// How the model introduces itself.
const WHO: &str = "I am the offline demonstration built into CrabTalk, not a language model.";

/// An answer of the offline model.
pub(crate) struct Offline {
    chunks: VecDeque<Chunk>,
    /// The pause between two words.
    pause: Duration,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Offline {
    /// Computes the whole answer.
    pub(crate) fn answer(request: &Request, sight: &Sight<'_>) -> Self {
        let (acts, pause) = if request.closing.is_some() {
            let messages: Vec<&Message> = before_closing(request).collect();
            (vec![Act::Say(summary::of(&messages))], Duration::ZERO)
        } else {
            react(request, sight)
        };
        Self {
            chunks: chunks(request, acts),
            pause,
            timer: None,
        }
    }

    /// The next chunk; `None` after the end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, Error>>> {
        if let Some(timer) = &mut self.timer {
            std::task::ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
        let Some(chunk) = self.chunks.pop_front() else {
            return Poll::Ready(None);
        };
        if !self.pause.is_zero() && matches!(chunk, Chunk::Text(_) | Chunk::Thinking(_)) {
            self.timer = Some(Box::pin(sleep(self.pause)));
        }
        Poll::Ready(Some(Ok(chunk)))
    }
}

fn before_closing(request: &Request) -> impl Iterator<Item = &Message> {
    let count = request.messages().count() - usize::from(request.closing.is_some());
    request.messages().take(count)
}

/// Acts on the last user message, or reports the results of its calls.
fn react(request: &Request, sight: &Sight<'_>) -> (Vec<Act>, Duration) {
    let messages: Vec<&Message> = request.messages().filter(|m| !m.auto_injected).collect();
    let asked = messages.iter().rposition(|m| m.role == Role::User);
    let text = asked.map_or("", |at| messages[at].content.as_str());
    let Script { mut acts, pause } = Script::parse(text);
    let since = &messages[asked.map_or(0, |at| at + 1)..];
    if since.iter().any(|message| message.role == Role::Tool) {
        return (vec![Act::Say(report(since, sight))], pause);
    }
    let offered: BTreeSet<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let missing: Vec<Act> = acts
        .iter()
        .filter_map(|act| match act {
            Act::Call { name, .. } if !offered.contains(name.as_str()) => Some(Act::Say(format!(
                "I was not offered a tool {name:?}, but I call it anyway."
            ))),
            Act::Call { .. } | Act::Say(_) | Act::Think(_) | Act::Repeat(_) => None,
        })
        .collect();
    for act in &mut acts {
        if let Act::Repeat(told) = act {
            *act = Act::Say(repeat(request, &messages, told));
        }
    }
    (missing.into_iter().chain(acts).collect(), pause)
}

fn repeat(request: &Request, messages: &[&Message], told: &str) -> String {
    let guests: BTreeSet<&str> = messages
        .iter()
        .map(|m| m.agent.as_str())
        .filter(|agent| !agent.is_empty())
        .collect();
    let tools: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let list = |names: Vec<&str>| {
        if names.is_empty() {
            String::new()
        } else {
            format!(" ({})", names.join(", "))
        }
    };
    format!(
        "{WHO} You told me: {told}\n\nI can see {}, {}{} and {}{}.",
        counted(messages.len(), "message"),
        counted(tools.len(), "tool"),
        list(tools),
        counted(guests.len(), "guest"),
        list(guests.into_iter().collect()),
    )
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// The results of the calls since the last user message.
fn report(since: &[&Message], sight: &Sight<'_>) -> String {
    let calls: Vec<_> = since
        .iter()
        .flat_map(|message| &message.tool_calls)
        .collect();
    let results = since
        .iter()
        .filter(|message| message.role == Role::Tool)
        .map(|result| {
            let name = calls.iter().find(|call| call.id == result.tool_call_id);
            let name = name.map_or("a tool", |call| call.name.as_str());
            let verb = if result.is_error {
                "failed"
            } else {
                "answered"
            };
            format!("{name} {verb}:\n{}", sight.of(result).content)
        });
    results.collect::<Vec<_>>().join("\n\n")
}

fn chunks(request: &Request, acts: Vec<Act>) -> VecDeque<Chunk> {
    let turn = request.messages().count();
    let mut chunks = VecDeque::new();
    let (mut calls, mut said) = (0, 0);
    let mut spoke = false;
    for act in acts {
        match act {
            Act::Say(text) | Act::Repeat(text) => {
                // Consecutive texts become paragraphs.
                if std::mem::replace(&mut spoke, true) {
                    chunks.push_back(Chunk::Text("\n\n".into()));
                }
                said += estimate_tokens(&text);
                chunks.extend(words(&text).map(Chunk::Text));
            }
            Act::Think(text) => {
                said += estimate_tokens(&text);
                chunks.extend(words(&text).map(Chunk::Thinking));
            }
            Act::Call { name, arguments } => {
                said += estimate_tokens(&arguments);
                let id = format!("offline-{turn}-{calls}");
                chunks.push_back(Chunk::ToolCallStart {
                    index: calls,
                    id,
                    name,
                });
                chunks.push_back(Chunk::ToolCallArguments {
                    index: calls,
                    fragment: arguments,
                });
                calls += 1;
            }
        }
    }
    let read: u64 = request.messages().map(Message::estimated_tokens).sum();
    chunks.push_back(Chunk::Usage(Usage {
        prompt_tokens: read + estimate_tokens(&request.system),
        completion_tokens: said,
        ..Usage::default()
    }));
    chunks.push_back(Chunk::Stop(if calls > 0 {
        StopReason::ToolCalls
    } else {
        StopReason::Done
    }));
    chunks
}

/// Splits a text into words with their trailing white space.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive([' ', '\n']).map(str::to_owned)
}

#[cfg(test)]
mod tests;
