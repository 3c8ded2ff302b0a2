//! The service that waits for due times, starts runs and records their ends.

use super::{Cron, end_of, request_id, unstarted};
use crate::notify::{Notice, Notifier};
use crate::starter::{DISK_AGAIN, Starter};
use crate::tables::TableFile;
use crabtalk_domain::{BoxFuture, ConversationKey, Origin, RunOutcome};
use crabtalk_gate::Standing;
use crabtalk_runtime::{Error, RunAnswer, RunRequest};
use crabtalk_triggers::cron::{Asks, Ended, Fire, Fired, Notify, Outcome, Tick, Usage};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest result in a notice.
const MAX_TOLD: usize = 4000;

/// The result of a task of the service.
enum Over {
    Run {
        fire: Fire,
        ended: Ended,
        text: String,
    },
    /// The fate of a run whose end the last daemon did not record.
    Cut(Fired, Cut),
}

/// The fate of such a run, from its conversation's log.
enum Cut {
    /// It ended before the crash, or was resumed since.
    Ended(Ended),
    /// It is absent: it waited for room on the disk or in the queue.
    Unbegun,
    /// It was interrupted, or the log cannot be read.
    Unknown,
}

/// Fires due entries until the daemon ends.
pub(crate) async fn work(cron: Cron, starter: Starter) -> anyhow::Result<()> {
    let mut tasks: FuturesUnordered<BoxFuture<'_, Over>> = FuturesUnordered::new();
    cron.0.running().clear();
    // Opens the books, which everything below needs.
    let (orphans, cut) = cron.left().await?;
    for fire in orphans {
        cron.0
            .running()
            .insert(fire.entry.key.clone(), Arc::clone(&fire.entry));
        tasks.push(Box::pin(orphan(&cron, &starter, fire)));
    }
    for fired in cut {
        tasks.push(Box::pin(cut_off(&starter, fired)));
    }
    cron.remove_spent().await;
    loop {
        let tick = cron.tick().await?;
        for fire in tick.fires {
            cron.0
                .running()
                .insert(fire.entry.key.clone(), Arc::clone(&fire.entry));
            tasks.push(Box::pin(run(&cron, &starter, fire)));
        }
        let nap = async {
            match tick.wake {
                Some(wake) => tokio::time::sleep(wake).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = nap => {}
            () = cron.0.wake.notified() => {}
            Some(over) = tasks.next(), if !tasks.is_empty() => match over {
                Over::Run { fire, ended, text } => {
                    cron.0.running().remove(&fire.entry.key);
                    cron.end(&fire, ended, text, &starter.notifier).await;
                }
                Over::Cut(fired, cut) => {
                    if let Some(fire) = cron.settle(fired, cut).await {
                        cron.0
                            .running()
                            .insert(fire.entry.key.clone(), Arc::clone(&fire.entry));
                        tasks.push(Box::pin(run(&cron, &starter, fire)));
                    }
                    cron.remove_spent().await;
                }
            },
        }
    }
}

/// Follows a run that a failed life of the service had started, or starts it if its
/// conversation's log lacks it.
async fn orphan(cron: &Cron, starter: &Starter, fire: Fire) -> Over {
    let id = request_id(fire.seq, fire.at);
    let ended = match starter.runtime.outcome(&fire.entry.key, &id).await {
        Ok(Some(outcome)) => of_outcome(fire.entry.id, fire.seq, outcome),
        Ok(None) => return run(cron, starter, fire).await,
        Err(error) => unstarted(&fire, error.code(), error.to_string()),
    };
    let text = String::new();
    Over::Run { fire, ended, text }
}

/// Looks up a run that was open when the last daemon ended, by its request id in the
/// conversation's log.
async fn cut_off(starter: &Starter, fired: Fired) -> Over {
    let Ok(key) = ConversationKey::new(&fired.agent, &fired.sender) else {
        return Over::Cut(fired, Cut::Unknown);
    };
    let id = request_id(fired.seq, fired.at);
    let cut = loop {
        match starter.runtime.outcome(&key, &id).await {
            Ok(Some(outcome)) if !outcome.interrupted => {
                break Cut::Ended(of_outcome(fired.id, fired.seq, outcome));
            }
            Ok(Some(_)) => break Cut::Unknown,
            Ok(None) => break Cut::Unbegun,
            // Opening a log may append a line to it.
            Err(error) if error.is_full_disk() => tokio::time::sleep(DISK_AGAIN).await,
            Err(_) => break Cut::Unknown,
        }
    };
    Over::Cut(fired, cut)
}

fn of_outcome(id: u64, seq: u64, outcome: RunOutcome) -> Ended {
    let word = match outcome.interrupted {
        true => Outcome::Interrupted,
        false => of_code(outcome.code),
    };
    Ended {
        ms: outcome.duration.unwrap_or_default().as_millis() as u64,
        usage: Usage {
            tokens: outcome.usage.unwrap_or_default().total_tokens(),
            money: None,
        },
        run: Some(outcome.run),
        ..end_of(id, seq, word, outcome.code, outcome.error)
    }
}

/// The end of a run that never began.
fn never_begun(fired: &Fired) -> Ended {
    let why = "the daemon ended before the run began, and its entry was paused, changed, removed or \
               due again since";
    Ended {
        unstarted: true,
        ..end_of(fired.id, fired.seq, Outcome::Interrupted, 0, why.into())
    }
}

fn of_code(code: u32) -> Outcome {
    match code {
        0 => Outcome::Ok,
        499 => Outcome::Killed,
        // The daemon is shutting down.
        503 => Outcome::Interrupted,
        _ => Outcome::Failed,
    }
}

impl Cron {
    /// Returns runs of a failed life of the service, and those of an earlier daemon.
    async fn left(&self) -> anyhow::Result<(Vec<Fire>, Vec<Fired>)> {
        let left = self.0.with(|_, state| {
            // Requested runs that did not begin are among the running ones.
            let wanted = std::mem::take(&mut state.wanted);
            let mut going = state.opened().engine.running();
            going.retain(|fire| wanted.iter().all(|wanted| wanted.seq != fire.seq));
            state.wanted = wanted;
            Ok((going, state.cut.clone()))
        });
        Ok(left.await?)
    }

    /// Whether an entry exists and is not paused.
    async fn wants(&self, id: u64) -> bool {
        let wants = self.0.with(move |_, state| {
            let known = state.opened().engine.entry(id);
            Ok(known.is_some_and(|(_, account, _)| !account.paused))
        });
        wants.await.unwrap_or(false)
    }

    /// Records the end of an interrupted run. Returns a run that must begin: a due run that
    /// waited for room on the disk survives a restart.
    async fn settle(&self, fired: Fired, cut: Cut) -> Option<Fire> {
        let id = fired.id;
        let settled = self.0.with(move |_, state| {
            state.cut.retain(|other| other.seq != fired.seq);
            let open = state.opened_mut();
            let (line, fire) = match cut {
                Cut::Ended(ended) => (open.engine.corrected(ended), None),
                Cut::Unknown => (None, None),
                Cut::Unbegun => match open.engine.begin_again(&fired) {
                    Some((line, fire)) => (Some(line), Some(fire)),
                    None => (open.engine.corrected(never_begun(&fired)), None),
                },
            };
            open.write(line.into_iter().collect());
            Ok(fire)
        });
        match settled.await {
            Ok(fire) => {
                if fire.is_some() {
                    tracing::info!(
                        cron = id,
                        "a run that waited when the last daemon ended begins"
                    );
                }
                fire
            }
            Err(error) => {
                tracing::warn!(cron = id, %error, "the end of an interrupted run could not be recorded");
                None
            }
        }
    }

    async fn tick(&self) -> anyhow::Result<Tick> {
        let tick = self.0.with(|inner, state| state.tick(inner)).await?;
        if let Some(jump) = tick.jump {
            tracing::warn!(
                seconds = jump.as_secs(),
                "the clock was set, or the machine slept"
            );
        }
        Ok(tick)
    }

    async fn end(&self, fire: &Fire, ended: Ended, text: String, notifier: &Notifier) {
        let (id, told) = (fire.entry.id, ended.clone());
        let paused = self
            .0
            .with(move |_, state| Ok(state.opened_mut().end(ended)))
            .await;
        let paused = paused.unwrap_or_default();
        tracing::info!(
            cron = id,
            outcome = told.outcome.as_str(),
            code = told.code,
            error = told.error,
            refused = told.refused.len(),
            "a run of a cron entry ended"
        );
        notify(notifier, fire, &told, text, paused);
        if paused {
            tracing::error!(cron = id, "the entry failed repeatedly and is paused");
            if let Err(error) = self.pause(id, true).await {
                tracing::warn!(
                    cron = id,
                    %error,
                    "the pause could not be written to crons.toml"
                );
                // The books have the pause until a restart reads the file.
            }
        }
        self.remove_spent().await;
    }

    /// Removes used entries from the file.
    async fn remove_spent(&self) {
        let spent = self.0.with(|_, state| Ok(state.spent())).await;
        if spent.is_ok_and(|spent| spent.is_empty()) {
            return;
        }
        let removed = self.change(|inner, state| {
            let mut file = state.edit(inner)?;
            for id in state.spent() {
                file.remove(id);
            }
            state.save(inner, file, Timestamp::now())
        });
        if let Err(error) = removed.await {
            // The books record that they were used.
            tracing::warn!(
                %error,
                "used entries could not be removed from crons.toml"
            );
        }
    }
}

/// Sends the notices that the entry's settings request.
fn notify(notifier: &Notifier, fire: &Fire, ended: &Ended, text: String, paused: bool) {
    let well = matches!(ended.outcome, Outcome::Ok | Outcome::Killed);
    let wanted = match fire.entry.notify {
        Notify::Nothing => paused,
        Notify::Failures => !well || paused,
        Notify::Results => true,
    };
    if !wanted {
        return;
    }
    let words: String = fire.entry.words().chars().take(60).collect();
    let id = fire.entry.id;
    let (kind, title, mut text) = match ended.outcome {
        _ if paused => (
            "paused",
            format!("cron {id} failed again and is paused: {words}"),
            ended.error.clone(),
        ),
        Outcome::Ok | Outcome::Killed => ("result", format!("cron {id}: {words}"), text),
        Outcome::Failed | Outcome::Interrupted => (
            "failed",
            format!("cron {id} {}: {words}", ended.outcome.as_str()),
            ended.error.clone(),
        ),
    };
    text.truncate(text.floor_char_boundary(MAX_TOLD));
    notifier.notify(Notice {
        kind,
        title,
        text,
        cron: Some(id),
        agent: fire.entry.key.agent.to_string(),
        sender: fire.entry.key.sender.to_string(),
        run: ended.run.unwrap_or_default(),
        ask_id: String::new(),
    });
}

/// Runs an entry until the run ends.
async fn run(cron: &Cron, starter: &Starter, fire: Fire) -> Over {
    let began = Instant::now();
    let mut has_waited = false;
    let answered = loop {
        let request = match request(starter, &fire).await {
            Ok(request) => request,
            Err(error) => break Err((400, error)),
        };
        match start(starter, request).await {
            Ok(answer) => break Ok(answer),
            // The run begins once there is room, unless the entry is removed or paused.
            Err(error) if error.is_full_disk() && cron.wants(fire.entry.id).await => {
                if !std::mem::replace(&mut has_waited, true) {
                    let cron = fire.entry.id;
                    tracing::warn!(cron, %error, "a run of a cron entry waits for room on the disk");
                }
                tokio::time::sleep(DISK_AGAIN).await;
            }
            Err(error) => break Err((error.code(), error.to_string())),
        }
    };
    let (ended, text) = match answered {
        Ok(answer) => (ended(&fire, &answer, began.elapsed()), answer.text),
        Err((code, error)) => (unstarted(&fire, code, error), String::new()),
    };
    Over::Run { fire, ended, text }
}

async fn start(starter: &Starter, request: RunRequest) -> Result<RunAnswer, Arc<Error>> {
    let run = starter.start(request).await.map_err(Arc::new)?;
    run.answer().await
}

/// Creates the request of a run. Resolves folder, agent and skill when the entry fires.
async fn request(starter: &Starter, fire: &Fire) -> Result<RunRequest, String> {
    let entry = &fire.entry;
    let cwd = match entry.draft.cwd.as_str() {
        "" => None,
        cwd => {
            let path = starter.home.expand_tilde(cwd);
            // The folder may be on a hanging disk.
            let at = path.clone();
            let looked = starter
                .files
                .look(&at.to_string_lossy(), move || folder(path))
                .await;
            Some(looked.map_err(|why| format!("the cwd {cwd}: {why}"))??)
        }
    };
    let asks = Standing {
        is_owner: false,
        unattended: false,
    };
    Ok(RunRequest {
        cwd,
        origin: Origin::Cron {
            id: entry.id,
            by: entry.draft.by.clone(),
        },
        root: (entry.asks == Asks::Inbox).then_some(asks),
        request_id: Some(request_id(fire.seq, fire.at)),
        ..RunRequest::new(entry.key.clone(), entry.words())
    })
}

fn folder(path: PathBuf) -> Result<PathBuf, String> {
    let settled = path.canonicalize();
    let settled = settled.map_err(|error| format!("the cwd {}: {error}", path.display()))?;
    if settled.is_dir() {
        Ok(settled)
    } else {
        Err(format!("the cwd {} is not a folder", path.display()))
    }
}

fn ended(fire: &Fire, answer: &RunAnswer, took: Duration) -> Ended {
    let end = &answer.end;
    let (outcome, error) = match answer.refusal.clone().filter(|_| end.code == 0) {
        Some(refusal) => (Outcome::Failed, refusal),
        None => (of_code(end.code), end.error.clone()),
    };
    let usage = end.usage.unwrap_or_default();
    Ended {
        ms: took.as_millis() as u64,
        usage: Usage {
            tokens: usage.total_tokens(),
            money: end.cost.money,
        },
        run: Some(answer.run),
        refused: answer.denied.clone(),
        ..end_of(fire.entry.id, fire.seq, outcome, end.code, error)
    }
}
