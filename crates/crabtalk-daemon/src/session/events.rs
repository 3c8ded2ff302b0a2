//! `SubscribeEvents`: streams the events of all runs (WIRE-8).

use super::{Session, wire};
use crate::node::Node;
use crate::remote::Grant;
use crabtalk_domain::{
    AgentEvent, AskKind, ComponentNews, ConversationKey, End, ToolCallInfo as Call,
};
use crabtalk_proto::*;
use crabtalk_runtime::{HubEvent, HubSubscription, Missed};
use futures_core::Stream;
use futures_util::stream;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A subscriber's filter and position.
struct Watcher {
    /// The reach of its token; `None` for the owner.
    reach: Option<Reach>,
    events: HubSubscription,
    /// The first message, for a client that requested its position.
    begins: Option<AgentEventMsg>,
    shutdown: CancellationToken,
    agent: Option<String>,
    sender: Option<String>,
    without_deltas: bool,
    missed: u64,
}

/// Maximum number of asks to remember until they end.
const MAX_SHOWN: usize = 256;

/// The reach of a watcher's token.
struct Reach {
    grant: Arc<Grant>,
    node: Arc<Node>,
    /// Shown asks, whose ends may be shown.
    shown: VecDeque<String>,
}

impl Reach {
    fn may(&mut self, event: &HubEvent) -> bool {
        let config = self.node.config();
        // Events without a conversation require a token that reaches everything.
        let Some(key) = &event.key else {
            return self.grant.unrestricted();
        };
        if !self.grant.pair(&config, key) {
            return false;
        }
        if self.grant.acts_for_owner(&config) {
            return true;
        }
        // Asks to owners and their answers are hidden from other clients.
        if let AgentEvent::AskUser(ask) = &event.event {
            let may = ask.kind == AskKind::Question;
            if may {
                self.shown.push_back(ask.id.clone());
                self.shown
                    .drain(..self.shown.len().saturating_sub(MAX_SHOWN));
            }
            return may;
        }
        if let AgentEvent::AskSettled { id, .. } = &event.event {
            let before = self.shown.len();
            self.shown.retain(|shown| shown != id);
            return self.shown.len() < before;
        }
        true
    }
}

impl Session {
    pub(super) fn watch(
        &self,
        request: SubscribeEvents,
    ) -> impl Stream<Item = Result<AgentEventMsg, Status>> + Send + use<> {
        let narrowed = |name: Option<String>| name.filter(|name| !name.is_empty());
        let (agent, sender) = (narrowed(request.agent), narrowed(request.sender));
        let (events, begins) = self.place(request.after, &request.life);
        let watcher = Watcher {
            reach: self.grant().map(|grant| Reach {
                grant: Arc::clone(grant),
                node: Arc::clone(&self.node),
                shown: VecDeque::new(),
            }),
            events,
            begins,
            shutdown: self.shutdown.clone(),
            agent,
            sender,
            without_deltas: request.without_deltas,
            missed: 0,
        };
        stream::unfold(watcher, |mut watcher| async move {
            let next = watcher.next().await?;
            Some((Ok(next), watcher))
        })
    }

    /// Where a subscription starts: now, or after an earlier one.
    fn place(&self, after: Option<u64>, life: &str) -> (HubSubscription, Option<AgentEventMsg>) {
        let runtime = &self.node.runtime;
        let Some(after) = after else {
            return (runtime.watch(), None);
        };
        let mut events = match life {
            "" => runtime.watch(),
            life if life == runtime.life() => runtime.watch_after(after),
            // A client with the position of an earlier life gets all events of this one.
            _ => runtime.watch_after(0),
        };
        let missed = events.take_missed().map_or(0, |Missed(missed)| missed);
        let begins = AgentEventMsg {
            kind: AgentEventKind::Subscribed.into(),
            seq: events.position(),
            life: runtime.life().to_owned(),
            missed,
            ..AgentEventMsg::default()
        };
        (events, Some(begins))
    }
}

impl Watcher {
    async fn next(&mut self) -> Option<AgentEventMsg> {
        if let Some(begins) = self.begins.take() {
            return Some(begins);
        }
        loop {
            let next = tokio::select! {
                () = self.shutdown.cancelled() => return None,
                next = self.events.next() => next?,
            };
            match next {
                Err(Missed(missed)) => self.missed += missed,
                Ok(event) if self.wants(&event) && self.may(&event) => {
                    let Some(mut message) = message(&event) else {
                        continue;
                    };
                    message.missed = std::mem::take(&mut self.missed);
                    message.root = event.root.as_ref().and_then(|root| self.root(root));
                    return Some(message);
                }
                Ok(_) => {}
            }
        }
    }

    fn may(&mut self, event: &HubEvent) -> bool {
        self.reach.as_mut().is_none_or(|reach| reach.may(event))
    }

    /// The root run of a delegation, if the token reaches it.
    fn root(&self, (key, run): &(Arc<ConversationKey>, u64)) -> Option<RunRef> {
        let may = self.reach.as_ref().is_none_or(|reach| {
            let config = reach.node.config();
            reach.grant.pair(&config, key)
        });
        may.then(|| RunRef {
            agent: key.agent.to_string(),
            sender: key.sender.to_string(),
            run: *run,
        })
    }

    fn wants(&self, event: &HubEvent) -> bool {
        let fits = |want: &Option<String>, is: &str| want.as_deref().is_none_or(|want| want == is);
        let delta = matches!(event.event, AgentEvent::Text(_) | AgentEvent::Thinking(_));
        // A filter by conversation excludes events without one.
        let (agent, sender) = names(event);
        !(delta && self.without_deltas) && fits(&self.agent, agent) && fits(&self.sender, sender)
    }
}

/// The conversation of an event; empty for none.
fn names(event: &HubEvent) -> (&str, &str) {
    let key = event.key.as_deref();
    key.map_or(("", ""), |key| (key.agent.as_str(), key.sender.as_str()))
}

/// The flat form; `None` for events that watchers receive in another form.
fn message(event: &HubEvent) -> Option<AgentEventMsg> {
    let (agent, sender) = names(event);
    let mut message = AgentEventMsg {
        agent: agent.to_owned(),
        sender: sender.to_owned(),
        timestamp: event.at.clone(),
        run: event.run,
        speaker: event.speaker.to_string(),
        request_id: event.request_id.to_string(),
        tokens: event.tokens,
        seq: event.seq,
        ..AgentEventMsg::default()
    };
    message.kind = told(&mut message, event.event.clone())?.into();
    Some(message)
}

/// Fills a message from an event, and returns the event's kind.
fn told(message: &mut AgentEventMsg, event: AgentEvent) -> Option<AgentEventKind> {
    use AgentEventKind as Kind;
    Some(match event {
        AgentEvent::Start { .. } => Kind::RunStarted,
        AgentEvent::UserMessage { .. } => return None,
        AgentEvent::ThinkingStart => Kind::ThinkingStart,
        AgentEvent::Thinking(text) => {
            message.content = text;
            Kind::ThinkingDelta
        }
        AgentEvent::ThinkingEnd => Kind::ThinkingEnd,
        AgentEvent::TextStart => Kind::TextStart,
        AgentEvent::Text(text) => {
            message.content = text;
            Kind::TextDelta
        }
        AgentEvent::TextEnd => Kind::TextEnd,
        AgentEvent::ToolStart(calls) => calls_of(message, calls),
        AgentEvent::ToolResult {
            output,
            is_error,
            call_id,
            ..
        } => {
            message.content = call_id;
            message.tool_output = wire::cap(output);
            message.tool_is_error = is_error;
            Kind::ToolResult
        }
        AgentEvent::ToolsComplete => Kind::ToolsComplete,
        AgentEvent::AskUser(ask) => {
            ask_of(message, wire::ask(&ask));
            Kind::Ask
        }
        AgentEvent::AskSettled { id, outcome } => {
            settled_of(message, wire::settled(id, outcome));
            Kind::AskSettled
        }
        AgentEvent::Steered(content) => {
            message.content = wire::cap(content);
            Kind::Steered
        }
        AgentEvent::Compacted { failed, title, .. } => {
            message.tool_is_error = !failed.is_empty();
            message.content = if failed.is_empty() { title } else { failed };
            Kind::Compacted
        }
        AgentEvent::Interrupted { reason, .. } => {
            message.content = reason;
            Kind::RunError
        }
        // Watchers receive the ask itself.
        AgentEvent::Waiting { .. } => return None,
        AgentEvent::Notice(notice) => {
            message.content = notice;
            Kind::Notice
        }
        AgentEvent::ToolProgress { call_id, progress } => {
            message.content.clone_from(&progress.message);
            message.progress = Some(wire::progress(call_id, progress));
            Kind::ToolProgress
        }
        AgentEvent::Component(news) => {
            component_of(message, &news);
            Kind::Component
        }
        AgentEvent::End(end) => end_of(message, end),
    })
}

fn calls_of(message: &mut AgentEventMsg, calls: Vec<Call>) -> AgentEventKind {
    message.tool_calls = wire::calls(calls);
    AgentEventKind::ToolStart
}

fn component_of(message: &mut AgentEventMsg, news: &ComponentNews) {
    message.content.clone_from(&news.said);
    message.component = Some(ComponentInfo {
        name: news.name.clone(),
        source: news.source.clone(),
        state: news.state.clone(),
        error: news.error.clone(),
        tool_count: u32::try_from(news.tools).unwrap_or(u32::MAX),
        ..ComponentInfo::default()
    });
}

fn ask_of(message: &mut AgentEventMsg, ask: AskUserEvent) {
    message.ask_id.clone_from(&ask.ask_id);
    if let Some(first) = ask.questions.first() {
        message.content.clone_from(&first.question);
    }
    message.ask = Some(ask);
}

fn settled_of(message: &mut AgentEventMsg, settled: AskSettledEvent) {
    message.ask_id.clone_from(&settled.ask_id);
    message.content.clone_from(&settled.answer);
    message.settled = Some(settled);
}

fn end_of(message: &mut AgentEventMsg, end: End) -> AgentEventKind {
    message.content = end.error;
    match end.code {
        499 => AgentEventKind::RunKilled,
        code if code != 0 => AgentEventKind::RunError,
        _ => AgentEventKind::Done,
    }
}
