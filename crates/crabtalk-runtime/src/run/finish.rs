//! Ends a run: closes open calls, records the end, reports it.

use super::repeats::REPEATS;
use super::{Outcome, Publisher, Run, RunTask, Stop};
use crate::error::{storage_code, with_source};
use crate::history::CANCELLED;
use crate::inner::Inner;
use crate::registry::{self, Shared};
use crate::spending::Tally;
use crabtalk_domain::model::{Error, ErrorKind};
use crabtalk_domain::storage::{self, MetaRecord, Record, RunPhase, RunRecord};
use crabtalk_domain::{AgentEvent, Cost, End, Message, Origin, Role, RunEnded, RunOutcome, Usage};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Maximum bytes of a failure's reason in the log; providers may answer with a page of
/// HTML.
const MAX_REASON_BYTES: usize = 2048;

/// Maximum bytes of the answer that is reported to listeners; the log has all of it.
const MAX_ANSWER_BYTES: usize = 8 * 1024;

/// How long the End waits for the listeners, which take milliseconds unless a disk
/// hangs.
const PATIENCE: Duration = Duration::from_secs(1);

impl Stop {
    pub(super) fn filtered(model: &str) -> Self {
        let message = format!("{model}'s content filter stopped the answer; rephrase the request");
        Self::Model(Error::new(ErrorKind::Filtered, message))
    }

    /// Code and message of the End event (WIRE-3).
    fn end(&self) -> (u32, String) {
        match self {
            Self::Model(error) => (error.kind.code(), error.message.clone()),
            Self::Storage(error) => (storage_code(error), with_source(error)),
            Self::MaxIterations(limit) => (
                508,
                format!(
                    "the run took {limit} steps, the limit (max_iterations); say \"go on\" to continue"
                ),
            ),
            Self::NoSuchTool(message) => (400, message.clone()),
            Self::OnlyToolCalls(guest) => (
                422,
                format!("the guest {guest} tried to call a tool, which guests cannot do"),
            ),
            Self::Repeated(tool) => (
                422,
                format!(
                    "the agent called {tool} {REPEATS} times with the same arguments and results; \
                     tell it what to do differently"
                ),
            ),
            Self::Empty(model) => (502, format!("{model} sent an empty answer; try again")),
            Self::OnlyThoughts(model) => (
                502,
                format!("{model} sent reasoning but no answer; say \"go on\", or try again"),
            ),
            Self::Cancelled => (499, "cancelled".into()),
            Self::ShuttingDown => (503, "the daemon is shutting down".into()),
        }
    }
}

/// Reports the end of a run once. Outlives the run's future, so that a panic is also
/// reported.
pub(crate) struct Ending {
    rt: Arc<Inner>,
    publisher: Arc<Publisher>,
    tally: Arc<Tally>,
    speaker: String,
    run: u64,
    origin: Origin,
    request_id: String,
    began: Instant,
    told: AtomicBool,
}

impl Ending {
    pub(super) fn new(
        rt: &Arc<Inner>,
        shared: &Shared,
        run: u64,
        speaker: &str,
        work: &RunTask,
    ) -> Self {
        let (key, log) = (Arc::clone(&shared.key), Arc::clone(&work.job.log));
        let request = &work.job.request;
        let request_id = request.request_id.clone().unwrap_or_default();
        let tally = Arc::default();
        let publisher = rt.publisher(key, run, speaker, &request_id, log);
        let publisher = publisher.with_run(work.job.audience.as_deref(), &tally);
        Self {
            rt: Arc::clone(rt),
            publisher: Arc::new(publisher),
            tally,
            speaker: speaker.to_owned(),
            run,
            origin: request.origin.clone(),
            request_id,
            began: Instant::now(),
            told: AtomicBool::new(false),
        }
    }

    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    pub(super) fn publisher(&self) -> &Arc<Publisher> {
        &self.publisher
    }

    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Time since the start of the run.
    fn duration(&self) -> Duration {
        self.began.elapsed()
    }

    /// Takes the run out of flight, then reports its end to listeners and readers.
    async fn tell(&self, shared: &Shared, end: End, answer: String) {
        shared.release(self.publisher.log());
        let total = self.tally.total();
        let ended = RunEnded {
            key: Arc::clone(&shared.key),
            speaker: self.speaker.clone(),
            origin: Some(self.origin.clone()),
            request_id: self.request_id.clone(),
            outcome: RunOutcome {
                run: self.run,
                code: end.code,
                error: end.error.clone(),
                interrupted: false,
                usage: Some(total.usage),
                duration: Some(self.duration()),
            },
            answer,
            total: Some(total),
            carried_on_as: None,
        };
        let is_news = !self.told.swap(true, Ordering::Relaxed);
        let mut hearing = pin!(async {
            if is_news {
                self.rt.ends.tell(&ended).await;
            }
        });
        let heard = timeout(PATIENCE, &mut hearing).await.is_ok();
        self.publisher.publish(AgentEvent::End(End {
            cost: total.cost,
            ..end
        }));
        if !heard {
            tracing::warn!(conversation = %shared.key, run = self.run, "a listener for the end of runs is slow; the conversation waits for it");
            hearing.await;
        }
    }

    /// Ends a run that panicked, or refuses it if it had not started.
    pub(crate) async fn tell_of_panic(&self, shared: &Shared) {
        let log = self.publisher.log();
        if log.run() == 0 {
            shared.forget_current();
            return log.refuse(crate::Error::Panicked);
        }
        if log.end().is_none() {
            registry::tell_untaken(shared, &self.publisher, Vec::new());
            let end = End {
                agent: self.speaker.clone(),
                error: crate::Error::Panicked.to_string(),
                code: crate::Error::Panicked.code(),
                ..End::default()
            };
            self.tell(shared, end, String::new()).await;
        }
    }
}

impl Run<'_> {
    /// Closes open calls, records the end and reports it.
    pub(super) async fn finish(mut self, outcome: Result<(), Stop>) -> Outcome {
        let (mut code, mut message) = match &outcome {
            Ok(()) => (0, String::new()),
            Err(stop) => stop.end(),
        };
        let mut failure = match outcome {
            Err(Stop::Storage(error)) => Some(error),
            Ok(()) | Err(_) => None,
        };
        if failure.is_none()
            && let Err(error) = self.close(code, &message).await
        {
            failure = Some(error);
        }
        if let Some(error) = &failure {
            (code, message) = (storage_code(error), with_source(error));
            tracing::warn!(conversation = %self.shared.key, run = self.number, %error, "the log failed");
            let unkept = std::mem::take(&mut self.unkept);
            registry::tell_untaken(self.shared, &self.publisher, unkept);
        }
        let answer = self.last_words();
        let total = self.tally.total();
        self.log_line(code, &total.cost);
        let usage = (self.usage != Usage::default()).then_some(self.usage);
        let end = End {
            agent: self.speaker.name.to_string(),
            error: message,
            code,
            provider: self.provider,
            model: self.model,
            usage,
            cost: total.cost,
            context: (self.context)
                .or(self.shared.live().meta.context)
                .map(Box::new),
        };
        self.ending.tell(self.shared, end, answer).await;
        if failure.is_none() {
            Outcome::Intact
        } else {
            Outcome::Unsure
        }
    }

    /// Appends a result for each open call, the steering messages that no step consumed,
    /// and the end.
    async fn close(&mut self, code: u32, why: &str) -> Result<(), storage::Error> {
        let now = self.rt.now();
        let mut records = Vec::new();
        if let Some(calls) = self.calls.as_mut() {
            for (call, result) in calls.calls.iter().zip(calls.results.iter_mut()) {
                if result.is_none() {
                    let mut synthetic = Message::tool(call.id.clone(), CANCELLED, true);
                    synthetic.at.clone_from(&now);
                    let synthetic = Arc::new(synthetic);
                    records.push(Record::Message(Arc::clone(&synthetic)));
                    *result = Some(synthetic);
                }
            }
        }
        let late = self.shared.live().steers.take();
        self.unkept = late.map(|mut steers| steers.take()).unwrap_or_default();
        let late: Vec<Arc<Message>> = self
            .unkept
            .clone()
            .into_iter()
            .map(|content| {
                let mut message = Message::user(content);
                message.at.clone_from(&now);
                Arc::new(message)
            })
            .collect();
        records.extend(late.iter().cloned().map(Record::Message));
        records.push(self.uptime());
        let end = RunRecord {
            id: self.number,
            phase: RunPhase::End,
            code,
            error: why[..why.floor_char_boundary(MAX_REASON_BYTES)].to_owned(),
            usage: Some(self.tally.total().usage),
            duration_ms: Some(self.ending.duration().as_millis() as u64),
            at: now,
            ..RunRecord::default()
        };
        records.push(Record::Run(end.clone()));
        let position = self.shared.append(&records).await?;
        self.unkept.clear();
        self.open.last_end = Some(end);
        self.close_calls();
        let mut steered = Vec::with_capacity(late.len());
        for message in late {
            steered.push(AgentEvent::Steered(message.content.clone()));
            self.open.push(self.shared, message);
        }
        let synced = self.shared.synced_at_end(position);
        self.announcer.after(synced, steered);
        self.announcer.flush().await
    }

    /// The last text of the run, for the listeners.
    fn last_words(&self) -> String {
        let said = self.open.history.iter().skip(self.injected_at).rev();
        let mut said = said.filter(|message| message.role == Role::Assistant);
        let last = said.find(|message| !message.content.is_empty());
        let text = last.map_or("", |message| message.content.as_str());
        match text.floor_char_boundary(MAX_ANSWER_BYTES) {
            cut if cut < text.len() => format!("{} [cut]", &text[..cut]),
            _ => text.to_owned(),
        }
    }

    fn uptime(&self) -> Record {
        // Always written, since lists read state from the log's end.
        let secs = (self.started.elapsed().as_millis() as u64 + 500) / 1000;
        let mut live = self.shared.live();
        live.meta.uptime_secs = live.meta.uptime_secs.saturating_add(secs);
        // A guest's model has a different context window.
        if !self.is_guest() {
            live.meta.context = self.context.or(live.meta.context);
        }
        Record::Meta(MetaRecord {
            uptime_secs: Some(live.meta.uptime_secs),
            context: live.meta.context,
            ..MetaRecord::default()
        })
    }

    /// Writes the run's log line (OPS-3).
    fn log_line(&self, code: u32, cost: &Cost) {
        tracing::info!(
            agent = %self.request.key.agent,
            sender = %self.request.key.sender,
            speaker = %self.speaker.name,
            run = self.number,
            origin = %self.request.origin,
            model = %self.model,
            prompt_tokens = self.usage.prompt_tokens,
            completion_tokens = self.usage.completion_tokens,
            money = cost.money,
            duration_ms = self.started.elapsed().as_millis() as u64,
            code,
            "run"
        );
    }
}
