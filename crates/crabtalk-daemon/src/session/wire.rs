//! Converts events and errors of the domain to messages of the protocol.

use crate::error::Error;
use crabtalk_config as config;
use crabtalk_domain::tool::Progress;
use crabtalk_domain::{
    AgentEvent, Ask, AskKind, AskOption as Option_, AskOutcome as Outcome, End, Image as Image_,
    ToolCallInfo as Call, Usage,
};
use crabtalk_files::tables::TablesError;
use crabtalk_memory as memory;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::*;
use crabtalk_runtime::{Subscription, Waits};
use futures_core::Stream;
use futures_util::stream;
use std::sync::Arc;

/// Longest text in a message, so that the frame stays below its limit with the other
/// fields.
const MAX_TEXT_BYTES: usize = 12 * 1024 * 1024;

/// The code of each error (WIRE-3).
fn code_of(error: &Error) -> u32 {
    match error {
        Error::Invalid(_) => code::BAD_REQUEST,
        Error::Unauthorized(_) => code::UNAUTHORIZED,
        Error::Forbidden(_) => code::FORBIDDEN,
        Error::NotFound(_) => code::NOT_FOUND,
        Error::Conflict(_) => code::CONFLICT,
        Error::TooLarge(_) => code::TOO_LARGE,
        Error::TooMany(_) => code::TOO_MANY,
        Error::Failed(_) => code::INTERNAL,
        Error::Unavailable(_) => code::SHUTTING_DOWN,
        Error::TimedOut(_) => code::TIMEOUT,
        Error::RunEnded { code, .. } => *code,
        Error::Runtime(error) => error.code(),
        Error::Config(error) => match error {
            config::Error::Conflict(_) => code::CONFLICT,
            config::Error::Io { .. } => code::INTERNAL,
            config::Error::TooLarge { .. } => code::TOO_LARGE,
            config::Error::Invalid(_)
            | config::Error::BadEdit(_)
            | config::Error::NoKey { .. }
            | config::Error::KeyFile { .. }
            | config::Error::BadKey { .. }
            | config::Error::NoHome
            | config::Error::MissingVariable { .. } => code::BAD_REQUEST,
        },
        Error::Tables(error) => match error {
            TablesError::Conflict(_) => code::CONFLICT,
            TablesError::Broken { .. } | TablesError::Unreadable { .. } => code::BAD_REQUEST,
            TablesError::Write { .. } => code::INTERNAL,
        },
        Error::Memory(error) => match error {
            memory::Error::BadName(_) | memory::Error::TooLarge { .. } => code::BAD_REQUEST,
            memory::Error::OwnersOnly(_) | memory::Error::NotYours(_) => code::FORBIDDEN,
            memory::Error::NotFound(_) => code::NOT_FOUND,
            memory::Error::Ambiguous { .. } | memory::Error::TooMany { .. } => code::CONFLICT,
            memory::Error::Broken { .. }
            | memory::Error::Io { .. }
            | memory::Error::Index(_)
            | memory::Error::Storage(_) => code::INTERNAL,
        },
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        Self::new(code_of(&error), error.to_string())
    }
}

/// Reads a run for one client.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) run: Option<Subscription>,
    pub(super) without_user_message: bool,
    /// The agent that answers, once the run has started.
    pub(super) speaker: Arc<str>,
    /// The notice to add to its Start.
    pub(super) notice: Option<String>,
    /// Whether to send the position in the queue until the run begins.
    pub(super) waits: bool,
    /// The only event of a reader without a run.
    pub(super) only: Option<Result<StreamEvent, Status>>,
}

impl Reader {
    pub(super) fn new(run: Subscription) -> Self {
        Self {
            run: Some(run),
            ..Self::default()
        }
    }

    /// Creates a reader of one event without a run.
    pub(super) fn only(said: Result<StreamEvent, Error>) -> Self {
        Self {
            only: Some(said.map_err(Status::from)),
            ..Self::default()
        }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Result<StreamEvent, Status>> + Send {
        // Boxed, since every item moves it.
        stream::unfold(Box::new(self), |mut reader| async move {
            let next = reader.next().await?;
            Some((next, reader))
        })
    }

    async fn next(&mut self) -> Option<Result<StreamEvent, Status>> {
        if let Some(only) = self.only.take() {
            return Some(only);
        }
        loop {
            let run = self.run.as_mut()?;
            if self.waits {
                match run.waits().await {
                    Some(waits) => return Some(Ok(queued(&waits))),
                    None => self.waits = false,
                }
            }
            match run.next().await {
                Ok(Some(next)) => {
                    if let Some(event) = self.shown(next.event) {
                        let seq = next.seq;
                        return Some(Ok(StreamEvent { seq, ..event }));
                    }
                }
                Ok(None) => self.run = None,
                Err(error) => {
                    self.run = None;
                    return Some(Err(Error::from(error).into()));
                }
            }
        }
    }

    /// Converts an event for the client; `None` if it is omitted.
    fn shown(&mut self, event: AgentEvent) -> Option<StreamEvent> {
        // Changes of components are not part of a run.
        let is_left_out = matches!(event, AgentEvent::Component(_))
            || self.without_user_message && matches!(event, AgentEvent::UserMessage { .. });
        if is_left_out {
            return None;
        }
        let run = self.run.as_ref()?;
        if self.speaker.is_empty() {
            self.speaker = run.log().speaker();
        }
        let mut event = to_wire(event, &self.speaker);
        if let Some(Event::Start(start)) = &mut event.event
            && let Some(notice) = self.notice.take()
        {
            start.notice = notice;
        }
        if let Some(Event::End(end)) = &mut event.event {
            end.run = run.log().run();
        }
        Some(event)
    }
}

/// The position in the queue, which is not an event of the run and has no number.
fn queued(waits: &Waits) -> StreamEvent {
    StreamEvent {
        seq: 0,
        event: Some(Event::Queued(QueuedEvent {
            ahead: u32::try_from(waits.ahead).unwrap_or(u32::MAX),
            origin: waits.origin.clone(),
            guest: waits.guest.clone(),
        })),
    }
}

/// Cuts a text that exceeds a frame, with a note.
pub(super) fn cap(text: String) -> String {
    cap_beside(text, &[])
}

/// Cuts a text that shares its frame with images.
pub(super) fn cap_beside(mut text: String, images: &[Image_]) -> String {
    let images: usize = images.iter().map(Image_::size).sum();
    let room = MAX_TEXT_BYTES.saturating_sub(images);
    if text.len() > room {
        let left = text.len() - room;
        text.truncate(text.floor_char_boundary(room));
        text.push_str(&format!(
            "\n[{left} more bytes are in the conversation's log]"
        ));
    }
    text
}

pub(super) fn images(images: &[Image_]) -> Vec<Image> {
    let image = |image: &Image_| Image {
        media_type: image.media_type().as_str().into(),
        data: image.to_bytes().into(),
    };
    images.iter().map(image).collect()
}

pub(super) fn usage(usage: Usage) -> TokenUsage {
    let cut = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
    TokenUsage {
        prompt_tokens: cut(usage.prompt_tokens),
        completion_tokens: cut(usage.completion_tokens),
        total_tokens: cut(usage.total_tokens()),
        cache_hit_tokens: usage.cache_hit_tokens.map(cut),
        cache_miss_tokens: usage.cache_miss_tokens.map(cut),
        reasoning_tokens: usage.reasoning_tokens.map(cut),
    }
}

pub(super) fn calls(calls: Vec<Call>) -> Vec<ToolCallInfo> {
    let budget = MAX_TEXT_BYTES / calls.len().max(1);
    let call = |call: Call| {
        let mut arguments = call.arguments;
        arguments.truncate(arguments.floor_char_boundary(budget));
        ToolCallInfo {
            name: call.name,
            arguments,
            call_id: call.call_id,
        }
    };
    calls.into_iter().map(call).collect()
}

/// Converts an ask. In an approval hidden characters are made visible, so that any client
/// may print it; the exact text is executed. A question is unchanged, since answers refer
/// to its text.
pub(super) fn ask(ask: &Ask) -> AskUserEvent {
    let shown = |text: &str| match ask.kind {
        AskKind::Approval => visible(text).into_owned(),
        AskKind::Question => text.to_owned(),
    };
    let option = |option: &Option_| AskOption {
        label: option.label.clone(),
        description: option.description.clone(),
    };
    let question = |q: &crabtalk_domain::AskQuestion| AskQuestion {
        question: shown(&q.question),
        header: q.header.clone(),
        options: q.options.iter().map(option).collect(),
        multi_select: q.multi_select,
    };
    let (preview, preview_kind) = ask
        .preview
        .as_ref()
        .map_or_else(Default::default, |preview| {
            (shown(&preview.text), preview.kind.as_str().to_owned())
        });
    AskUserEvent {
        questions: ask.questions.iter().map(question).collect(),
        ask_id: ask.id.clone(),
        kind: ask.kind.as_str().into(),
        tool: shown(&ask.tool),
        detail: shown(&ask.detail),
        preview,
        preview_kind,
        cwd: shown(&ask.cwd),
        reason: shown(&ask.reason),
        always: ask.always.as_ref().map(|rule| ApprovalInfo {
            agent: shown(&rule.agent),
            sender: shown(&rule.sender),
            tool: shown(&rule.tool),
            exact: shown(&rule.exact),
            cwd: shown(&rule.cwd),
            prefix: shown(&rule.prefix),
            ..ApprovalInfo::default()
        }),
        lines: u32::try_from(ask.detail.lines().count()).unwrap_or(u32::MAX),
        outside: ask.outside,
        delegate: ask.delegate.clone(),
    }
}

pub(super) fn progress(call_id: String, far: Progress) -> ToolProgressEvent {
    ToolProgressEvent {
        call_id,
        progress: far.done,
        total: far.total,
        message: far.message,
    }
}

/// The end of an ask.
pub(super) fn settled(ask_id: String, outcome: Outcome) -> AskSettledEvent {
    let (outcome, by, answer) = match outcome {
        Outcome::Answered { by, answer } => (AskOutcome::Answered, by.to_string(), answer),
        Outcome::Withdrawn => (AskOutcome::Withdrawn, String::new(), String::new()),
        Outcome::TimedOut => (AskOutcome::TimedOut, String::new(), String::new()),
    };
    AskSettledEvent {
        ask_id,
        outcome: outcome.into(),
        by,
        answer,
    }
}

/// Converts the end of a run, without its number.
fn end(end: End) -> StreamEnd {
    let context = end.context.as_ref();
    StreamEnd {
        agent: end.agent,
        error: end.error,
        code: end.code,
        provider: end.provider,
        model: end.model,
        usage: end.usage.map(usage),
        money: end.cost.money,
        unpriced_tokens: end.cost.unpriced_tokens,
        context_used: context.map(|context| context.used),
        context_window: context.and_then(|context| context.window),
        run: 0,
    }
}

/// Converts the result of a tool, cut to fit into a frame with its images.
fn result(
    call_id: String,
    output: String,
    duration_ms: u64,
    is_error: bool,
    shown: &[Image_],
) -> ToolResultEvent {
    ToolResultEvent {
        call_id,
        output: cap_beside(output, shown),
        duration_ms,
        is_error,
        images: images(shown),
    }
}

/// Converts an event without its number. `speaker` is the agent of text and reasoning.
pub(super) fn to_wire(event: AgentEvent, speaker: &str) -> StreamEvent {
    let agent = || speaker.to_owned();
    match event {
        AgentEvent::Start {
            agent,
            run,
            model,
            mode,
        } => Event::Start(StreamStart {
            agent,
            run,
            model,
            mode: mode.map(|mode| mode.to_string()).unwrap_or_default(),
            notice: String::new(),
        }),
        AgentEvent::UserMessage {
            content,
            guest,
            origin,
        } => Event::UserMessage(UserMessageEvent {
            content: cap(content),
            guest,
            origin,
        }),
        AgentEvent::ThinkingStart => Event::ThinkingStart(ThinkingStartEvent { agent: agent() }),
        AgentEvent::Thinking(content) => Event::Thinking(StreamThinking { content }),
        AgentEvent::ThinkingEnd => Event::ThinkingEnd(ThinkingEndEvent { agent: agent() }),
        AgentEvent::TextStart => Event::TextStart(TextStartEvent { agent: agent() }),
        AgentEvent::Text(content) => Event::Chunk(StreamChunk { content }),
        AgentEvent::TextEnd => Event::TextEnd(TextEndEvent { agent: agent() }),
        AgentEvent::ToolStart(started) => Event::ToolStart(ToolStartEvent {
            calls: calls(started),
        }),
        AgentEvent::ToolResult {
            call_id,
            output,
            duration_ms,
            is_error,
            images: shown,
        } => Event::ToolResult(result(call_id, output, duration_ms, is_error, &shown)),
        AgentEvent::ToolsComplete => Event::ToolsComplete(ToolsCompleteEvent {}),
        AgentEvent::AskUser(asked) => Event::AskUser(ask(&asked).into()),
        AgentEvent::AskSettled { id, outcome } => Event::AskSettled(settled(id, outcome)),
        AgentEvent::Steered(content) => Event::UserSteered(UserSteeredEvent {
            content: cap(content),
        }),
        AgentEvent::Compacted {
            tokens_before,
            tokens_after,
            title,
            failed,
        } => Event::Compacted(CompactedEvent {
            tokens_before,
            tokens_after,
            title,
            failed,
        }),
        AgentEvent::Interrupted { run, reason } => {
            Event::Interrupted(InterruptedEvent { run, reason })
        }
        AgentEvent::Waiting { whom, timeout_secs } => {
            Event::Waiting(WaitingEvent { whom, timeout_secs })
        }
        AgentEvent::Notice(text) => Event::Notice(NoticeEvent { text }),
        AgentEvent::ToolProgress {
            call_id,
            progress: far,
        } => Event::ToolProgress(progress(call_id, far)),
        // Sent to watchers only.
        AgentEvent::Component(news) => Event::Notice(NoticeEvent {
            text: news.said.clone(),
        }),
        AgentEvent::End(ended) => Event::End(end(ended)),
    }
    .into()
}
