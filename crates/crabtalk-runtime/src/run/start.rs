//! From a request to a started run: what was said is on disk, then Start.

use super::{Announcer, Publisher, Run, RunRequest};
use crate::conversation::{Open, interruption};
use crate::events::RunLog;
use crate::gate::standing;
use crate::registry::Shared;
use crate::runtime::Inner;
use crate::{Error, framing};
use crabtalk_domain::storage::{Record, RunPhase, RunRecord};
use crabtalk_domain::{AgentEvent, Message, Usage};
use std::path::PathBuf;
use std::sync::Arc;

pub(super) async fn start<'a>(
    rt: &'a Arc<Inner>,
    shared: &'a Arc<Shared>,
    open: &'a mut Open,
    request: RunRequest,
    log: &Arc<RunLog>,
) -> Result<Run<'a>, Error> {
    let catalog = rt.catalog.load_full();
    let key = &request.key;
    let primary = catalog.agent(key.agent.as_str())?;
    // The primary as its own guest is a normal turn (RUN-2).
    let guest = request
        .guest
        .clone()
        .filter(|guest| *guest != key.agent.as_str());
    let speaker = match &guest {
        Some(guest) => catalog.agent(guest)?,
        None => primary,
    };
    let speaker = rt.hook.on_build_agent((**speaker).clone()).await;
    let content = rt
        .hook
        .preprocess(key, &request.origin, request.content.clone())
        .await;
    let content = content.map_err(Error::Refused)?;
    let number = open.last_run + 1;
    let cwd = run_cwd(shared, &request, catalog.user_home.as_deref());
    let standing = standing(&request.origin, &key.sender, &catalog.owners, request.root);

    let mut message = Message::user(content.clone());
    message.at = rt.now();
    let message = Arc::new(message);
    let started = RunRecord {
        id: number,
        phase: RunPhase::Start,
        origin: request.origin.to_string(),
        request_id: request.request_id.clone().unwrap_or_default(),
        code: 0,
        at: message.at.clone(),
    };
    let said = shared.append(&[Record::Run(started), Record::Message(Arc::clone(&message))])?;
    let synced = shared.synced(said);
    open.last_run = number;
    open.remember_request(&request, number);
    let injected_at = open.history.len();
    open.push(shared, message);

    let publisher = Arc::new(Publisher::new(
        Arc::clone(rt),
        Arc::clone(&shared.key),
        number,
        Arc::clone(log),
    ));
    let model = match speaker.model.as_str() {
        "" => rt.model.active_model(),
        model => model.to_owned(),
    };
    publisher.publish(AgentEvent::Start {
        agent: speaker.name.to_string(),
        run: number,
        model: model.clone(),
    });
    publisher.publish(AgentEvent::UserMessage {
        content,
        guest: guest.clone().unwrap_or_default(),
        origin: request.origin.to_string(),
    });
    if let Some(cut) = open.interrupted.take() {
        publisher.publish(interruption(cut));
    }
    let mut announcer = Announcer::new(Arc::clone(&publisher));
    announcer.after(synced, Vec::new());

    let mut injected = rt
        .hook
        .on_before_run(key, &request.origin, &open.history)
        .await;
    for message in &mut injected {
        message.auto_injected = true;
    }
    let system = framing::system_prompt(
        &speaker.prompt,
        guest.as_deref(),
        key.agent.as_str(),
        open.has_guests,
    );
    Ok(Run {
        rt,
        shared,
        open,
        request: RunRequest { guest, ..request },
        speaker: Arc::new(speaker),
        number,
        cwd,
        standing,
        publisher,
        announcer,
        system: system.into(),
        injected: Arc::new(injected),
        injected_at,
        calls: None,
        has_text: false,
        usage: Usage::default(),
        provider: String::new(),
        model,
        started: tokio::time::Instant::now(),
    })
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
    fn remember_request(&mut self, request: &RunRequest, run: u64) {
        let Some(id) = &request.request_id else {
            return;
        };
        self.requests.push_back((id.clone(), run));
        while self.requests.len() > crate::conversation::REMEMBERED_REQUESTS {
            self.requests.pop_front();
        }
    }

    /// Takes a message that is on disk into the working history.
    pub(super) fn push(&mut self, shared: &Shared, message: Arc<Message>) {
        self.has_guests |= !message.agent.is_empty();
        Arc::make_mut(&mut self.history).push(message);
        shared.live().message_count = self.archived_messages + self.history.len() as u64;
    }
}
