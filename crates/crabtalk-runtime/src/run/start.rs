//! From a request to a started run: what was said is on disk, then Start.

use super::repeats::Repeats;
use super::{Announcer, Publisher, Run, RunRequest, Work};
use crate::catalog::Catalog;
use crate::compaction::Budget;
use crate::conversation::{Job, Open, interruption};
use crate::gate::scope::Kind;
use crate::gate::{Violation, standing};
use crate::registry::Shared;
use crate::runtime::Inner;
use crate::spending::Tally;
use crate::{Error, framing};
use crabtalk_domain::storage::{Record, RunPhase, RunRecord};
use crabtalk_domain::{AgentConfig, AgentEvent, Message, Role, RunContext, Usage};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) async fn start<'a>(
    rt: &'a Arc<Inner>,
    shared: &'a Arc<Shared>,
    open: &'a mut Open,
    work: Work,
) -> Result<Run<'a>, Error> {
    let Work { job, cut } = work;
    let Job {
        request,
        log,
        audience,
        ..
    } = job;
    let catalog = rt.catalog.load_full();
    let key = &request.key;
    let Speakers {
        guest,
        primary,
        speaker,
    } = speakers(rt, &catalog, &request).await?;
    let number = open.last_run + 1;
    let cwd = run_cwd(shared, &request, catalog.user_home.as_deref());
    let standing = standing(&request.origin, &key.sender, &catalog.owners, request.root);
    let context = RunContext {
        key,
        origin: &request.origin,
        agent: &speaker,
        cwd: &cwd,
        run: number,
        for_owner: standing.is_owner && !standing.unattended,
        has_archives: open.has_archives(),
    };
    let started_as = start_record(&request, &guest, number, rt.now());
    let mut records = vec![Record::Run(started_as.clone())];
    let carried_on = cut.is_some();
    let said = match &cut {
        Some(_) => None,
        None => Some(said(rt, &request, &context).await?),
    };
    records.extend(said.iter().cloned().map(Record::Message));
    let position = shared.append(&records)?;
    let synced = shared.synced(position);
    let injected_at = open.begin_run(shared, &request, number, said.clone());

    log.set_store(Arc::clone(&rt.storage), Arc::clone(&shared.key));
    let publisher = Arc::new(Publisher::new(
        Arc::clone(rt),
        Arc::clone(&shared.key),
        number,
        log,
    ));
    let model = match speaker.model.as_str() {
        "" => rt.model.active_model(),
        model => model.to_owned(),
    };
    let cut = cut.or_else(|| open.interrupted.take());
    publish_start(
        &publisher,
        &speaker,
        &model,
        &started_as,
        said.as_deref(),
        cut,
    );
    let mut announcer = Announcer::new(Arc::clone(&publisher));
    announcer.after(synced, Vec::new());

    let name = key.agent.as_str();
    let system = framing::system_prompt(&speaker.prompt, guest.as_deref(), name, open.has_guests);
    let system = rt.alike.system(&speaker.name, system);
    Ok(Run {
        cwd,
        standing,
        carried_on,
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
        usage: Usage::default(),
        tally: Tally::default(),
        provider: String::new(),
        model,
        started: tokio::time::Instant::now(),
    })
}

/// Tells of a run that begins: that it does, what it answers, and of one that a
/// crash cut off.
fn publish_start(
    publisher: &Publisher,
    speaker: &AgentConfig,
    model: &str,
    started_as: &RunRecord,
    said: Option<&Message>,
    cut: Option<RunRecord>,
) {
    publisher.publish(AgentEvent::Start {
        agent: speaker.name.to_string(),
        run: started_as.id,
        model: model.to_owned(),
    });
    if let Some(said) = said {
        publisher.publish(said_event(started_as, said));
    }
    if let Some(cut) = cut {
        publisher.publish(interruption(cut.id));
    }
}

/// Who takes part in a turn.
struct Speakers {
    guest: Option<String>,
    /// The conversation's own agent.
    primary: Arc<AgentConfig>,
    /// Who answers: the guest, or the primary.
    speaker: Arc<AgentConfig>,
}

async fn speakers(rt: &Inner, catalog: &Catalog, request: &RunRequest) -> Result<Speakers, Error> {
    let own = request.key.agent.as_str();
    // The primary as its own guest is a normal turn (RUN-2).
    let guest = request.guest.clone().filter(|guest| guest != own);
    let primary = rt.build_agent(catalog.agent(own)?).await;
    let speaker = match &guest {
        Some(guest) => rt.build_agent(catalog.agent(guest)?).await,
        None => Arc::clone(&primary),
    };
    Ok(Speakers {
        guest,
        primary,
        speaker,
    })
}

/// What other clients are told of the message that a run answers.
fn said_event(started_as: &RunRecord, said: &Message) -> AgentEvent {
    AgentEvent::UserMessage {
        content: said.content.clone(),
        guest: started_as.guest.clone(),
        origin: started_as.origin.clone(),
    }
}

/// What the log says of a run that begins.
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
        cwd: cwd
            .map(|cwd| cwd.to_string_lossy().into_owned())
            .unwrap_or_default(),
        code: 0,
        at,
    }
}

/// What the sender says, as hooks rewrite it.
async fn said(
    rt: &Inner,
    request: &RunRequest,
    context: &RunContext<'_>,
) -> Result<Arc<Message>, Error> {
    let content = rt.hook.preprocess(*context, request.content.clone()).await;
    let content = content.inspect_err(|refusal| {
        // The way in of slash commands: what is out of scope is refused so.
        if refusal.code == 403 {
            let violation = Violation {
                agent: context.agent.name.clone(),
                sender: request.key.sender.clone(),
                kind: Kind::Skill,
                name: first_word(&request.content).to_owned(),
            };
            rt.violation(&violation, &request.origin);
        }
    });
    let mut message = Message::user(content.map_err(Error::Refused)?);
    message.at = rt.now();
    Ok(Arc::new(message))
}

/// The command of a slash command, for the log.
fn first_word(content: &str) -> &str {
    content.split_whitespace().next().unwrap_or_default()
}

/// CONV-6: the message's, else the conversation's, else the user's home.
fn run_cwd(shared: &Shared, request: &RunRequest, user_home: Option<&std::path::Path>) -> PathBuf {
    let of_conversation = || {
        let cwd = shared.live().meta.cwd.clone();
        (!cwd.is_empty()).then(|| PathBuf::from(cwd))
    };
    request
        .cwd
        .clone()
        .or_else(of_conversation)
        .or_else(|| user_home.map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/"))
}

impl Open {
    /// Takes a run's beginning into the working state, and answers with the
    /// index at which context for it is injected.
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
            // A run that is carried on answers the last thing that was said.
            None => self
                .history
                .iter()
                .rposition(|m| m.role == Role::User)
                .unwrap_or(0),
        };
        self.runs.push((number, at));
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
        while self.requests.len() > crate::conversation::REMEMBERED_REQUESTS {
            self.requests.pop_front();
        }
    }

    /// Begins the working history with a summary and what is kept.
    pub(crate) fn begin_anew(&mut self, summary: &str, keep: usize) {
        let archived = self.history.len() - keep;
        // An earlier summary is no message of its own.
        self.archived_messages += (archived - usize::from(self.has_summary)) as u64;
        let kept = self.history[archived..].iter().cloned();
        let summary = Arc::new(Message::user(summary));
        self.history = std::iter::once(summary).chain(kept).collect();
        self.has_summary = true;
        self.has_guests = framing::has_guests(&self.history);
    }

    /// Whether it began anew at least once.
    pub(super) fn has_archives(&self) -> bool {
        self.has_summary || self.archived_messages > 0
    }

    /// Messages, archived ones included.
    pub(crate) fn message_count(&self) -> u64 {
        self.archived_messages + (self.history.len() - usize::from(self.has_summary)) as u64
    }

    /// Takes a message that is on disk into the working history.
    pub(super) fn push(&mut self, shared: &Shared, message: Arc<Message>) {
        self.has_guests |= !message.agent.is_empty();
        self.history.push(message);
        shared.live().message_count = self.message_count();
    }
}
