//! The steps of a run: request, answer, tool calls, and again (RUN-1).

use super::answer::AnswerStream;
use super::people::Owner;
use super::repeats::Repeats;
use super::{Run, Stop};
use crate::history::{ids, name_calls};
use crate::registry::Steers;
use crate::router::{self, Toolset};
use crate::spending::Account;
use crabtalk_domain::model::{ErrorKind, Request, Response, StopReason, ToolChoice};
use crabtalk_domain::storage::Record;
use crabtalk_domain::tool::ToolSpec;
use crabtalk_domain::{AgentEvent, ContextUse, Message, Role, ToolCallInfo};
use std::collections::HashSet;
use std::sync::Arc;

/// The tools in a request.
type Offered = Arc<Vec<Arc<ToolSpec>>>;

impl Run<'_> {
    /// Runs steps until the model calls no more tools.
    pub(super) async fn steps(&mut self) -> Result<(), Stop> {
        // Adds steering messages accepted before a crash.
        self.take_steers(false).await?;
        if self.is_answered() {
            // The crash came after the answer and before the end.
            return Ok(());
        }
        self.inject().await;
        let limit = self.speaker.max_iterations.max(1);
        for step in 0..limit {
            let tools = self.catalogue();
            let response = self.ask_model_or_make_room(step, &tools).await?;
            let reported = response.usage.map_or(0, |usage| usage.total_tokens());
            let goes_on = if self.is_guest() {
                self.keep_guest_answer(response).await?;
                false
            } else if response.tool_calls.is_empty() {
                self.keep_answer(response).await?;
                self.take_steers(true).await?
            } else {
                self.keep_calls(response).await?;
                self.run_tools(tools).await?;
                if self.take_steers(false).await? {
                    self.repeats = Repeats::default();
                }
                true
            };
            self.make_room(reported).await?;
            if !goes_on {
                return Ok(());
            }
        }
        Err(Stop::MaxIterations(limit))
    }

    /// Gets the context of this run from the hooks, which may ask people. A kill cancels
    /// the wait.
    async fn inject(&mut self) {
        let people = Owner {
            rt: Arc::clone(self.rt),
            audience: Arc::clone(&self.audience),
            standing: self.standing,
            carried_on: self.carried_on,
        };
        let mut injected = self
            .rt
            .hook
            .on_before_run(self.facts.context(), &self.open.history, &people)
            .await;
        for message in &mut injected {
            message.auto_injected = true;
        }
        self.injected = Arc::new(injected);
    }

    /// Whether the history ends with an answer.
    fn is_answered(&self) -> bool {
        let last = self.open.history.last();
        last.is_some_and(|m| m.role == Role::Assistant && m.tool_calls.is_empty())
    }

    /// Asks the model; if the request is too long, compacts and asks again (RUN-4).
    async fn ask_model_or_make_room(
        &mut self,
        step: u32,
        tools: &Toolset,
    ) -> Result<Response, Stop> {
        match self.ask_model(step, tools).await {
            Err(Stop::Model(error)) if error.kind == ErrorKind::TooLong => {
                // Boxed, since few runs compact.
                if Box::pin(self.compact()).await? {
                    Box::pin(self.ask_model(step, tools)).await
                } else {
                    Err(error.into())
                }
            }
            answered => answered,
        }
    }

    /// The tools of this step; a guest has none (RUN-2).
    fn catalogue(&self) -> Arc<Toolset> {
        if self.is_guest() {
            return Arc::default();
        }
        router::tools(self.rt, &self.speaker, &self.rt.catalog.load_full())
    }

    /// The tool choice of the caller and the tools to offer: a named tool must be in
    /// scope, and is offered with its schema.
    fn chosen(&self, tools: &Toolset) -> Result<(ToolChoice, Offered), Stop> {
        let choice = self.request.tool_choice.clone();
        let offered = Arc::clone(&tools.offered);
        let ToolChoice::Named(name) = &choice else {
            return Ok((choice, offered));
        };
        if offered.iter().any(|spec| spec.name == *name) {
            return Ok((choice, offered));
        }
        if let Some(deferred) = tools.all.iter().find(|spec| spec.name == *name) {
            let with = offered.iter().chain([deferred]).cloned().collect();
            return Ok((choice, Arc::new(with)));
        }
        let names: Vec<&str> = tools.all.iter().map(|spec| spec.name.as_ref()).collect();
        let there_are = match names.is_empty() {
            true => "this run has no tools".to_owned(),
            false => format!("there are: {}", names.join(", ")),
        };
        Err(Stop::NoSuchTool(format!(
            "tool_choice: there is no tool {name:?}; {there_are}"
        )))
    }

    async fn ask_model(&mut self, step: u32, tools: &Toolset) -> Result<Response, Stop> {
        let (tool_choice, offered) = match step {
            0 => self.chosen(tools)?,
            _ => (ToolChoice::Auto, Arc::clone(&tools.offered)),
        };
        let request = Request {
            model: self.speaker.model.clone(),
            fallback: self.speaker.fallback.clone(),
            system: Arc::clone(&self.system),
            history: self.open.history.clone(),
            injected: Arc::clone(&self.injected),
            injected_at: self.injected_at,
            closing: None,
            has_guests: self.open.has_guests || self.is_guest(),
            tools: offered,
            tool_choice,
            thinking: self.speaker.thinking,
        };
        let account = Account {
            ledger: &*self.rt.ledger,
            key: &self.request.key,
            run: self.number,
            agent: &self.speaker,
            tally: &self.tally,
        };
        let bill = account.open(&request).await?;
        let stream = self.rt.listen(request);
        let speaker = self.speaker.name.as_str();
        let response = AnswerStream::new(&self.publisher, speaker, bill)
            .read(stream, &mut self.announcer)
            .await?;
        self.provider.clone_from(&response.provider);
        self.model.clone_from(&response.model);
        if let Some(usage) = &response.usage {
            self.usage.add(usage);
        }
        self.context = Some(self.context_of(&response));
        self.has_text |= !response.content.is_empty();
        Ok(response)
    }

    /// Use of the context window after this answer.
    fn context_of(&self, response: &Response) -> ContextUse {
        let used = response.usage.map_or(0, |usage| usage.total_tokens());
        // Some providers report no usage.
        let estimated = || {
            let answer = Message::assistant(response.content.as_str());
            self.open.history.estimated_tokens() + answer.estimated_tokens()
        };
        let limit = |model: &str| self.rt.model.context_limit(model);
        ContextUse {
            used: if used > 0 { used } else { estimated() },
            window: limit(&response.model).or_else(|| limit(&self.speaker.model)),
        }
    }

    fn message(&mut self, response: Response) -> Message {
        let mut message = Message::assistant(response.content);
        message.tool_calls = response.tool_calls;
        message.thinking = response.thinking;
        message.usage = response.usage;
        message.agent = self.request.guest.clone().unwrap_or_default();
        message.at = self.rt.now();
        let history = &self.open.history;
        let taken: HashSet<&str> = match message.tool_calls.is_empty() {
            true => HashSet::new(),
            // Compaction may have removed earlier calls of this run
            // from the history.
            false => history
                .iter()
                .flat_map(|m| ids(m))
                .chain(self.call_ids.iter().map(String::as_str))
                .collect(),
        };
        name_calls(&mut message, |id| taken.contains(id));
        let named: Vec<String> = ids(&message).map(str::to_owned).collect();
        self.call_ids.extend(named);
        message
    }

    /// Appends a message to the log, then to the history.
    pub(super) async fn append(
        &mut self,
        message: Message,
    ) -> Result<crabtalk_domain::storage::Position, Stop> {
        let message = Arc::new(message);
        let position = self
            .shared
            .append(&[Record::Message(Arc::clone(&message))])
            .await?;
        self.open.push(self.shared, message);
        Ok(position)
    }

    async fn keep_answer(&mut self, response: Response) -> Result<(), Stop> {
        let stop = response.stop;
        if response.content.is_empty() && response.thinking.is_empty() {
            // After tool calls an empty answer is valid.
            return match (self.has_text || self.is_after_tools(), stop) {
                (_, Some(StopReason::ContentFilter)) => Err(Stop::filtered(&self.model)),
                (true, _) => Ok(()),
                (false, _) => Err(Stop::Empty(self.model.clone())),
            };
        }
        let is_answer = !response.content.is_empty() || self.has_text || self.is_after_tools();
        let message = self.message(response);
        self.append(message).await?;
        self.publisher.answer_stored();
        match stop {
            Some(StopReason::ContentFilter) => Err(Stop::filtered(&self.model)),
            // The reasoning is stored, so that the model can continue.
            _ if !is_answer => Err(Stop::OnlyThoughts(self.model.clone())),
            // Readers cannot tell that an answer is truncated.
            Some(StopReason::Length) => {
                self.publisher.publish(AgentEvent::Notice(format!(
                    "the answer reached {}'s output limit; say \"go on\" to continue",
                    self.model
                )));
                Ok(())
            }
            Some(StopReason::Done | StopReason::ToolCalls) | None => Ok(()),
        }
    }

    fn is_after_tools(&self) -> bool {
        self.open
            .history
            .last()
            .is_some_and(|m| m.role == Role::Tool)
    }

    /// Stores a guest's text and rejects its tool calls (RUN-2).
    async fn keep_guest_answer(&mut self, mut response: Response) -> Result<(), Stop> {
        let called = !response.tool_calls.is_empty();
        response.tool_calls.clear();
        if response.content.is_empty() && called {
            return Err(Stop::OnlyToolCalls(self.speaker.name.to_string()));
        }
        self.keep_answer(response).await
    }

    /// Appends the calls to the log, then announces them; execution follows.
    async fn keep_calls(&mut self, response: Response) -> Result<(), Stop> {
        let message = self.message(response);
        let calls = message.tool_calls.clone();
        let infos = calls.iter().map(|call| ToolCallInfo {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
        let announced = AgentEvent::ToolStart(infos.collect());
        let position = self.append(message).await?;
        self.publisher.answer_stored();
        self.calls = Some(super::Calls {
            results: vec![None; calls.len()],
            calls,
        });
        self.announcer
            .after(self.shared.synced(position), vec![announced]);
        Ok(self.announcer.flush().await?)
    }

    /// Adds steering messages to the history (RUN-8). At the last step, steering is closed
    /// under the lock that finds none waiting, so that no accepted message is lost.
    async fn take_steers(&mut self, last: bool) -> Result<bool, Stop> {
        let steers = {
            let mut live = self.shared.live();
            let steers = live.steers.as_mut().map(Steers::take).unwrap_or_default();
            if last && steers.is_empty() {
                live.steers = None;
            }
            steers
        };
        let any = !steers.is_empty();
        // Remembered until they are in the log.
        self.unkept.clone_from(&steers);
        for content in steers {
            let mut message = Message::user(content.clone());
            message.at = self.rt.now();
            let position = self.append(message).await?;
            self.unkept.remove(0);
            let synced = self.shared.synced(position);
            self.announcer
                .after(synced, vec![AgentEvent::Steered(content)]);
        }
        Ok(any)
    }
}
