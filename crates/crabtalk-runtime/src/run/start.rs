//! Starts a run: appends the message, then publishes Start.

use super::announce::Synced;
use super::mode::{is_contained, mode_of};
use super::repeats::Repeats;
use super::{Announcer, Ending, Facts, Publisher, Run, RunRequest, RunTask};
use crate::catalog::Catalog;
use crate::command::Job;
use crate::compaction::Budget;
use crate::inner::Inner;
use crate::open::{CUT_OFF, OpenConversation, REMEMBERED_REQUESTS, interrupted, interruption};
use crate::registry::{Shared, Steers};
use crate::{Error, framing};
use crabtalk_domain::storage::{Record, RunPhase, RunRecord};
use crabtalk_domain::{AgentConfig, AgentEvent, Message, Role, Usage};
use crabtalk_gate::{Standing, standing};
use std::sync::Arc;

pub(super) async fn start<'a>(
    rt: &'a Arc<Inner>,
    shared: &'a Arc<Shared>,
    open: &'a mut OpenConversation,
    work: RunTask,
    ending: Arc<Ending>,
) -> Result<Run<'a>, Error> {
    let RunTask { job, cut } = work;
    let catalog = rt.catalog.load_full();
    let (speakers, facts, is_contained) = composed(rt, shared, open, &catalog, &job).await?;
    let Speakers {
        guest,
        primary,
        speaker,
    } = speakers;
    let standing = standing_of(&catalog, &job.request);
    let mode = mode_of(&job.request, &speaker, standing, is_contained);
    let is_carried_on = cut.is_some();
    let said = match &cut {
        Some(_) => None,
        None => Some(said(rt, &job, &facts).await?),
    };
    let Job {
        request, audience, ..
    } = *job;
    let number = facts.run;
    let request = RunRequest {
        mode: Some(mode),
        ..request
    };
    let begun = StartRecords::of(&request, &guest, number, cut.map(|cut| *cut), rt.now());
    let StoredStart {
        synced,
        injected_at,
    } = begun
        .keep(shared, open, &request, &facts, said.as_ref())
        .await?;

    let publisher = Arc::clone(ending.publisher());
    let model = rt.model_named(&speaker.model);
    let interrupted = open.interrupted.take();
    let who = (speaker.name.as_str(), model.as_str());
    begun.publish(&publisher, who, said.as_deref(), interrupted);
    let started_as = begun.tell_of_cut(rt, shared).await;
    let mut announcer = Announcer::new(Arc::clone(&publisher));
    announcer.after(synced, Vec::new());

    let name = request.key.agent.as_str();
    let system = framing::system_prompt(&speaker.prompt, guest.as_deref(), name, open.has_guests);
    let system = system.into();
    Ok(Run {
        cwd: facts.cwd.clone(),
        standing,
        mode,
        facts,
        carried_on: is_carried_on,
        budget: Budget::new(&primary, &*rt.model),
        rt,
        shared,
        open,
        request: RunRequest { guest, ..request },
        speaker,
        primary,
        started_as,
        number,
        audience: audience.unwrap_or_else(|| Arc::clone(&publisher)),
        publisher,
        announcer,
        system,
        injected: Arc::default(),
        injected_at,
        calls: None,
        repeats: Repeats::default(),
        has_text: false,
        call_ids: Vec::new(),
        unkept: Vec::new(),
        usage: Usage::default(),
        context: None,
        tally: Arc::clone(ending.tally()),
        ending,
        provider: String::new(),
        model,
        started: tokio::time::Instant::now(),
    })
}

/// The agents as hooks composed them, the facts for hooks, and whether the folder allows
/// mode `auto`. A kill does not wait for hooks: the model is not called, and the message
/// is stored (CONV-5).
async fn composed(
    rt: &Inner,
    shared: &Shared,
    open: &OpenConversation,
    catalog: &Catalog,
    job: &Job,
) -> Result<(Speakers, Arc<Facts>, bool), Error> {
    let configured = Speakers::as_configured(catalog, &job.request)?;
    let mut facts = facts(shared, open, catalog, &job.request, &configured);
    let standing = standing_of(catalog, &job.request);
    // Both access the disk; run them concurrently.
    let both = async {
        futures_util::join!(
            configured.composed(rt),
            is_contained(rt, &job.request, &facts.agent, standing, &facts.cwd)
        )
    };
    let (speakers, is_contained) = tokio::select! {
        biased;
        () = rt.shutdown.cancelled() => return Err(Error::ShuttingDown),
        () = job.cancel.cancelled() => (configured, false),
        both = both => both,
    };
    facts.agent = Arc::clone(&speakers.speaker);
    Ok((speakers, Arc::new(facts), is_contained))
}

fn standing_of(catalog: &Catalog, request: &RunRequest) -> Standing {
    let sender = &request.key.sender;
    standing(&request.origin, sender, &catalog.owners, request.root)
}

/// The facts of the run for hooks.
fn facts(
    shared: &Shared,
    open: &OpenConversation,
    catalog: &Catalog,
    request: &RunRequest,
    speakers: &Speakers,
) -> Facts {
    let standing = standing_of(catalog, request);
    Facts {
        key: request.key.clone(),
        origin: request.origin.clone(),
        agent: Arc::clone(&speakers.speaker),
        cwd: request
            .cwd
            .clone()
            .unwrap_or_else(|| catalog.cwd(&shared.key, &shared.live().meta)),
        run: open.last_run + 1,
        for_owner: standing.is_owner && !standing.unattended,
        has_archives: open.has_archives(),
    }
}

/// The agents of a turn.
struct Speakers {
    guest: Option<String>,
    /// The conversation's own agent.
    primary: Arc<AgentConfig>,
    /// The agent that answers: the guest or the primary.
    speaker: Arc<AgentConfig>,
}

impl Speakers {
    /// Composes the agents with the hooks.
    async fn composed(&self, rt: &Inner) -> Self {
        let primary = rt.build_agent(&self.primary).await;
        let speaker = match &self.guest {
            // A guest gets neither tools nor instructions about them
            // (RUN-2).
            Some(_) => {
                let mut guest = (*self.speaker).clone();
                guest.as_guest = true;
                rt.build_agent(&guest).await
            }
            None => Arc::clone(&primary),
        };
        Self {
            guest: self.guest.clone(),
            primary,
            speaker,
        }
    }

    fn as_configured(catalog: &Catalog, request: &RunRequest) -> Result<Self, Error> {
        let own = request.key.agent.as_str();
        // The primary as its own guest is a normal turn (RUN-2).
        let guest = request.guest.clone().filter(|guest| guest != own);
        let primary = Arc::clone(catalog.agent(own)?);
        let (primary, speaker) = match &guest {
            Some(guest) => (primary, with_model(catalog.agent(guest)?, request)),
            None => {
                let speaker = with_model(&primary, request);
                (Arc::clone(&speaker), speaker)
            }
        };
        Ok(Self {
            guest,
            primary,
            speaker,
        })
    }
}

/// The agent with the requested model and without fallbacks.
fn with_model(agent: &Arc<AgentConfig>, request: &RunRequest) -> Arc<AgentConfig> {
    match &request.model {
        None => Arc::clone(agent),
        Some(model) => Arc::new(AgentConfig {
            model: model.clone(),
            fallback: Vec::new(),
            ..(**agent).clone()
        }),
    }
}

/// The user's message as an event.
fn said_event(started_as: &RunRecord, said: &Message) -> AgentEvent {
    AgentEvent::UserMessage {
        // The history has the images.
        content: said.with_notes(|image| Some(image.note())).content,
        guest: started_as.guest.clone(),
        origin: started_as.origin.clone(),
    }
}

/// The records to append at the start of a run.
struct StartRecords {
    started_as: RunRecord,
    /// The interrupted run that this run resumes; this closes it.
    cut: Option<RunRecord>,
}

impl StartRecords {
    fn of(
        request: &RunRequest,
        guest: &Option<String>,
        number: u64,
        cut: Option<RunRecord>,
        at: String,
    ) -> Self {
        let mut started_as = start_record(request, guest, number, at.clone());
        started_as.tries = cut.as_ref().map_or(0, |cut| cut.tries);
        Self {
            started_as,
            cut: cut.map(|cut| interrupted(cut, CUT_OFF.into(), at)),
        }
    }

    fn records(&self, said: Option<&Arc<Message>>) -> Vec<Record> {
        let cut = self.cut.iter().cloned().map(Record::Run);
        let start = std::iter::once(Record::Run(self.started_as.clone()));
        let said = said.cloned().map(Record::Message);
        cut.chain(start).chain(said).collect()
    }

    /// Appends the records and updates the working state.
    async fn keep(
        &self,
        shared: &Shared,
        open: &mut OpenConversation,
        request: &RunRequest,
        facts: &Arc<Facts>,
        said: Option<&Arc<Message>>,
    ) -> Result<StoredStart, Error> {
        let position = shared.append(&self.records(said)).await?;
        let synced = shared.synced(position);
        let injected_at = open.begin_run(shared, request, facts.run, said.cloned());
        let steers = std::mem::take(&mut open.steers);
        shared.live().steers = Some(Steers::new(Arc::clone(facts), steers));
        Ok(StoredStart {
            synced,
            injected_at,
        })
    }

    /// Publishes the start, the message, and an interrupted run.
    fn publish(
        &self,
        publisher: &Publisher,
        (agent, model): (&str, &str),
        said: Option<&Message>,
        interrupted: Option<RunRecord>,
    ) {
        publisher.publish(AgentEvent::Start {
            agent: agent.to_owned(),
            run: self.started_as.id,
            model: model.to_owned(),
            mode: self.started_as.mode,
        });
        if let Some(said) = said {
            publisher.publish(said_event(&self.started_as, said));
        }
        if let Some(cut) = interrupted.as_ref().or(self.cut.as_ref()) {
            publisher.publish(interruption(cut));
        }
    }

    /// Reports the interrupted run that this one resumes; returns the start record.
    async fn tell_of_cut(self, rt: &Inner, shared: &Shared) -> RunRecord {
        if let Some(cut) = self.cut {
            let carried_on_as = Some(self.started_as.id);
            let told = rt.ends.tell_interrupted(&shared.key, &cut, carried_on_as);
            told.await;
        }
        self.started_as
    }
}

/// The appended start of a run.
struct StoredStart {
    /// Resolves when the start is durable.
    synced: Synced,
    /// Index in the history for injected context.
    injected_at: usize,
}

fn start_record(
    request: &RunRequest,
    guest: &Option<String>,
    number: u64,
    at: String,
) -> RunRecord {
    let cwd = request.cwd.as_ref();
    RunRecord {
        id: number,
        phase: RunPhase::Start,
        origin: request.origin.to_string(),
        request_id: request.request_id.clone().unwrap_or_default(),
        guest: guest.clone().unwrap_or_default(),
        mode: request.mode,
        cwd: cwd
            .map(|cwd| cwd.to_string_lossy().into_owned())
            .unwrap_or_default(),
        at,
        ..RunRecord::default()
    }
}

/// The user's message after the hooks rewrote it.
async fn said(rt: &Inner, job: &Job, facts: &Facts) -> Result<Arc<Message>, Error> {
    let content = job.request.content.clone();
    let content = tokio::select! {
        biased;
        () = rt.shutdown.cancelled() => return Err(Error::ShuttingDown),
        () = job.cancel.cancelled() => content,
        content = rt.preprocess(facts, content.clone()) => content?,
    };
    let mut message = Message::user(content).with_images(job.request.images.clone());
    message.at = rt.now();
    Ok(Arc::new(message))
}

impl OpenConversation {
    /// Adds the start of a run to the working state; returns the index for injected
    /// context.
    fn begin_run(
        &mut self,
        shared: &Shared,
        request: &RunRequest,
        number: u64,
        said: Option<Arc<Message>>,
    ) -> usize {
        self.last_run = number;
        self.remember_request(request, number);
        let at = match &said {
            Some(_) => self.history.len(),
            // A resumed run answers the last user message.
            None => self
                .history
                .iter()
                .rposition(|m| m.role == Role::User)
                .unwrap_or(0),
        };
        if let Some(said) = said {
            self.push(shared, said);
        }
        at
    }

    fn remember_request(&mut self, request: &RunRequest, run: u64) {
        let Some(id) = &request.request_id else {
            return;
        };
        self.requests.retain(|(known, _)| known != id);
        self.requests.push_back((id.clone(), run));
        while self.requests.len() > REMEMBERED_REQUESTS {
            self.requests.pop_front();
        }
    }

    /// Adds a message that is on disk to the working history.
    pub(super) fn push(&mut self, shared: &Shared, message: Arc<Message>) {
        self.has_guests |= !message.agent.is_empty();
        self.history.push(message);
        shared.live().message_count = self.message_count();
    }
}
