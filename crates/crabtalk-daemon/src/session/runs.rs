//! Starts and attaches to runs.

use super::remote::Who;
use super::wire::{Reader, to_wire};
use super::{Session, shown};
use crate::error::Error;
use crabtalk_domain::model::ToolChoice;
use crabtalk_domain::storage::RunRecord;
use crabtalk_domain::{AgentEvent, ConversationKey, End, Mode};
use crabtalk_proto::*;
use crabtalk_runtime::{RunAnswer, RunRequest, Subscription};
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use std::sync::Arc;

/// Longest request id, in bytes; the log keeps 256 of them per conversation.
const MAX_REQUEST_ID_BYTES: usize = 256;

/// Converts a message of `send` into one of `stream`.
fn as_streamed(message: SendMsg) -> StreamMsg {
    StreamMsg {
        agent: message.agent,
        content: message.content,
        sender: message.sender,
        cwd: message.cwd,
        guest: message.guest,
        tool_choice: message.tool_choice,
        request_id: message.request_id,
        images: message.images,
        model: message.model,
        mode: message.mode,
    }
}

impl Session {
    async fn submit(&self, said: StreamMsg) -> Result<Subscription, Error> {
        let key = self.key(&said.agent, said.sender.as_deref().unwrap_or_default())?;
        super::refuse_reserved(&key.sender)?;
        let request_id = said.request_id.filter(|id| !id.is_empty());
        if request_id
            .as_ref()
            .is_some_and(|id| id.len() > MAX_REQUEST_ID_BYTES)
        {
            let message = format!("the request_id has more than {MAX_REQUEST_ID_BYTES} bytes");
            return Err(Error::Invalid(message));
        }
        let cwd = said.cwd.as_deref().filter(|cwd| !cwd.is_empty());
        let request = RunRequest {
            guest: said.guest.filter(|guest| !guest.is_empty()),
            cwd: self.check_cwd(cwd).await?,
            tool_choice: tool_choice(said.tool_choice.as_deref().unwrap_or_default()),
            model: self.check_model(said.model)?,
            mode: check_mode(said.mode)?,
            may_raise_mode: matches!(self.who, Who::Owner),
            request_id,
            origin: self.origin(said.sender.as_deref().unwrap_or_default()),
            images: shown::images(said.images)?,
            ..RunRequest::new(key, said.content)
        };
        self.node.runtime.submit(request).map_err(Error::from)
    }

    /// Announces a message, so that the model prepares a connection (MODEL-8).
    pub(super) async fn expect(&self, request: ExpectMessageMsg) -> Result<(), Error> {
        let key = self.key(&request.agent, &request.sender)?;
        super::refuse_reserved(&key.sender)?;
        let model = self.check_model(Some(request.model))?;
        let runtime = &self.node.runtime;
        Ok(runtime.expect(key.agent.as_str(), model.as_deref())?)
    }

    /// Checks the model of a run: it must exist, and choosing it requires the role `operate`,
    /// since it may cost more.
    fn check_model(&self, model: Option<String>) -> Result<Option<String>, Error> {
        let Some(model) = model.filter(|model| !model.is_empty()) else {
            return Ok(None);
        };
        if self.who.role() < Role::Operate {
            let message = "a run's model is chosen with the role operate; leave it out";
            return Err(Error::Forbidden(message.into()));
        }
        let known = self.model_list().models;
        if known.iter().any(|known| known.name == model) {
            return Ok(Some(model));
        }
        let names: Vec<_> = known.into_iter().map(|known| known.name).collect();
        Err(Error::Invalid(format!(
            "unknown model {model:?}; there are: {}",
            names.join(", ")
        )))
    }

    pub(super) async fn run_to_end(&self, request: SendMsg) -> Result<SendResponse, Error> {
        // The run reports a failure to find a model.
        let _ = self.node.models.find().await;
        let run = self.submit(as_streamed(request)).await?;
        response(run.answer().await?)
    }

    pub(super) fn run_as_stream(
        self: Arc<Self>,
        request: StreamMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        let reader = async move {
            // Before Start, which names the model. The run reports a failure.
            let _ = self.node.models.find().await;
            let blind = self.blindness(&request);
            let run = match self.submit(request).await {
                Ok(run) => run,
                Err(error) => return Reader::only(Err(error)),
            };
            let chosen = self.node.models.take_notice();
            let notices: Vec<String> = chosen.into_iter().chain(blind).collect();
            let notice = (!notices.is_empty()).then(|| notices.join("; "));
            Reader {
                // A client does not need its own message.
                without_user_message: true,
                waits: true,
                notice,
                ..Reader::new(run)
            }
        };
        // Boxed to keep the stream small after the start.
        stream::once(Box::pin(reader))
            .map(Reader::into_stream)
            .flatten()
    }

    pub(super) fn attached(
        self: Arc<Self>,
        request: AttachMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        let reader = async move { self.attach_reader(&request).await };
        stream::once(Box::pin(reader))
            .map(Reader::into_stream)
            .flatten()
    }

    async fn attach_reader(&self, request: &AttachMsg) -> Reader {
        let key = match self.key(&request.agent, &request.sender) {
            Ok(key) => key,
            Err(error) => return Reader::only(Err(error)),
        };
        let runtime = &self.node.runtime;
        if request.only_run {
            return self.reader_of_run(&key, request).await;
        }
        if let Some(log) = runtime.attach(&key) {
            if log.end().is_none() {
                let after = match (request.run, request.after) {
                    (Some(run), Some(after)) if run == log.run() => after,
                    (None, Some(after)) => after,
                    (Some(_) | None, _) => 0,
                };
                return Reader::new(log.subscribe(after));
            }
            // A finished run: send only its end.
            return Reader::new(log.subscribe_to_end());
        }
        match runtime.last_end(&key).await {
            Ok(run) => Reader::only(Ok(end_of(&key, &run))),
            Err(error) => Reader::only(Err(error.into())),
        }
    }

    /// The events of one run after a number, else its end.
    async fn reader_of_run(&self, key: &ConversationKey, request: &AttachMsg) -> Reader {
        let Some(run) = request.run.filter(|run| *run > 0) else {
            let error = Error::Invalid("`only_run` needs a `run`".into());
            return Reader::only(Err(error));
        };
        let runtime = &self.node.runtime;
        if let Some(log) = runtime.attach_run(key, run) {
            return Reader::new(log.subscribe(request.after.unwrap_or_default()));
        }
        // An interrupted run gets its end when its conversation is opened. While a later run is
        // attached, the conversation is already open.
        if runtime.attach(key).is_none()
            && let Err(error) = runtime.last_end(key).await
        {
            return Reader::only(Err(error.into()));
        }
        let trace = runtime.storage().trace(key, run).await;
        Reader::only(match trace.map(|trace| trace.and_then(|trace| trace.end)) {
            Ok(Some(end)) => Ok(end_of(key, &end)),
            Ok(None) => Err(Error::NotFound(format!(
                "the events of run {run} of {key} are gone; see the history"
            ))),
            Err(error) => Err(error.into()),
        })
    }
}

/// The end of a run, from its log.
fn end_of(key: &ConversationKey, run: &RunRecord) -> StreamEvent {
    let error = match run.error.as_str() {
        // Old logs lack the reason.
        "" if run.code != 0 => "the run failed; see the history".into(),
        error => error.to_owned(),
    };
    let end = End {
        agent: key.agent.to_string(),
        code: run.code,
        error,
        ..End::default()
    };
    let mut event = to_wire(AgentEvent::End(end), "");
    if let Some(stream_event::Event::End(end)) = &mut event.event {
        end.run = run.id;
    }
    event
}

fn response(answer: RunAnswer) -> Result<SendResponse, Error> {
    let RunAnswer {
        end,
        text: content,
        notices,
        ..
    } = answer;
    if end.code != 0 {
        return Err(Error::RunEnded {
            code: end.code,
            error: end.error,
        });
    }
    Ok(SendResponse {
        agent: end.agent,
        content: super::wire::cap(content),
        provider: end.provider,
        model: end.model,
        usage: end.usage.map(super::wire::usage),
        money: end.cost.money,
        unpriced_tokens: end.cost.unpriced_tokens,
        notices,
    })
}

fn tool_choice(text: &str) -> ToolChoice {
    match text {
        "" | "auto" => ToolChoice::Auto,
        "none" => ToolChoice::None,
        "required" | "any" => ToolChoice::Required,
        name => ToolChoice::Named(name.to_owned()),
    }
}

/// Parses a mode.
fn check_mode(mode: Option<String>) -> Result<Option<Mode>, Error> {
    let Some(name) = mode.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let known = Mode::parse(&name).ok_or_else(|| {
        let names = Mode::ALL.map(Mode::as_str).join(", ");
        Error::Invalid(format!("{name:?} is not a mode; there are: {names}"))
    });
    known.map(Some)
}
