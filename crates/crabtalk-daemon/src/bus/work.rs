//! The service that starts the runs of events.

use super::{Bus, unrecorded};
use crate::notify::Notice;
use crate::starter::{DISK_AGAIN, Starter};
use crate::tables::{TableFile, wait};
use crabtalk_domain::records::Event;
use crabtalk_domain::{BoxFuture, ConversationKey, Origin};
use crabtalk_runtime::{Error, RunRequest};
use crabtalk_triggers::bus::Subscription;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Maximum concurrent runs of events, so that models and machine have room for people.
const AT_ONCE: usize = 16;

/// An event, a subscription, and the number of failed starts.
type Wanted = (Arc<Event>, u64, u32);

/// An event that is being fired.
struct Open {
    /// Subscriptions whose runs have not ended.
    left: usize,
    /// Whether a run is repeated after the next start of the daemon.
    again: bool,
}

/// The result of one subscription's run.
struct Fired {
    event: u64,
    /// The `once` subscription that this run claimed.
    claim: Option<u64>,
    /// Whether the daemon stops, so that the run is repeated after the next start.
    again: bool,
    /// Set if the disk was full: the run is repeated after a pause.
    waits: Option<Wanted>,
}

/// Starts the runs of published events until the daemon ends.
pub(crate) async fn work(bus: Bus, starter: Starter) -> anyhow::Result<()> {
    bus.begin().await?;
    let mut waiting: VecDeque<Wanted> = VecDeque::new();
    let mut resting: FuturesUnordered<BoxFuture<'_, Wanted>> = FuturesUnordered::new();
    let mut open: HashMap<u64, Open> = HashMap::new();
    // `once` subscriptions whose run has started.
    let mut claimed: HashSet<u64> = HashSet::new();
    let mut firing: FuturesUnordered<BoxFuture<'_, Fired>> = FuturesUnordered::new();
    let mut published = true;
    loop {
        if std::mem::take(&mut published) {
            for event in bus.fresh().await? {
                let left = event.fires.len();
                open.insert(event.id, Open { left, again: false });
                let fires = event.fires.iter();
                waiting.extend(fires.map(|id| (Arc::clone(&event), *id, 0)));
            }
        }
        while firing.len() < AT_ONCE
            && let Some((event, id, tries)) = waiting.pop_front()
        {
            // A removed or claimed subscription fires nothing.
            let known = bus.0.known();
            let subscription = known.iter().find(|one| one.id == id).cloned();
            let free = subscription.filter(|one| !one.once || claimed.insert(id));
            firing.push(Box::pin(fire(&bus, &starter, event, free, tries)));
        }
        tokio::select! {
            () = bus.0.wake.notified() => published = true,
            Some(wanted) = resting.next(), if !resting.is_empty() => waiting.push_back(wanted),
            Some(fired) = firing.next(), if !firing.is_empty() => {
                if let Some(claim) = fired.claim {
                    claimed.remove(&claim);
                }
                if let Some(wanted) = fired.waits {
                    resting.push(Box::pin(async move {
                        tokio::time::sleep(DISK_AGAIN).await;
                        wanted
                    }));
                    continue;
                }
                let Some(event) = open.get_mut(&fired.event) else { continue };
                event.left -= 1;
                event.again |= fired.again;
                if event.left == 0 {
                    let again = event.again;
                    open.remove(&fired.event);
                    if !again {
                        bus.done(fired.event).await;
                    }
                }
            }
        }
    }
}

async fn fire(
    bus: &Bus,
    starter: &Starter,
    event: Arc<Event>,
    subscription: Option<Subscription>,
    tries: u32,
) -> Fired {
    let (mut again, mut claim, mut waits) = (false, None, None);
    if let Some(subscription) = subscription {
        let id = subscription.id;
        claim = subscription.once.then_some(id);
        let ran = run(bus, starter, &event, &subscription).await;
        again = matches!(&ran, Err(error) if matches!(**error, Error::ShuttingDown));
        let (failed, last) = match &ran {
            Ok(error) if error.is_empty() => (false, "ok".to_owned()),
            Ok(error) => (true, error.clone()),
            Err(error) => (true, error.to_string()),
        };
        let full_disk = matches!(&ran, Err(error) if error.is_full_disk());
        if full_disk {
            waits = Some((Arc::clone(&event), id, tries.saturating_add(1)));
            if tries == 0 {
                let source = &event.source;
                tracing::warn!(
                    source,
                    error = last,
                    "a run of an event waits for room on the disk"
                );
            }
        } else if failed && !again {
            tracing::warn!(
                subscription = id,
                source = event.source,
                agent = %subscription.agent,
                error = last,
                "a run of an event failed"
            );
            starter
                .notifier
                .notify(failure(&event, &subscription, &last));
        }
        bus.0.count(id, |count| {
            count.failed += u64::from(failed && !again && !full_disk);
            count.last = last;
        });
    }
    Fired {
        event: event.id,
        claim,
        again,
        waits,
    }
}

/// The notice of a failed run.
fn failure(event: &Event, subscription: &Subscription, why: &str) -> Notice {
    Notice {
        kind: "failed",
        title: format!("{} could not answer {}", subscription.agent, event.source),
        text: why.to_owned(),
        cron: None,
        agent: subscription.agent.to_string(),
        sender: sender(event),
        run: 0,
        ask_id: String::new(),
    }
}

/// The sender of an event's conversation.
fn sender(event: &Event) -> String {
    format!("event:{}", event.source)
}

/// Runs an agent. Returns the reason for a failed run, empty on success; an error if
/// the run did not start.
async fn run(
    bus: &Bus,
    starter: &Starter,
    event: &Event,
    subscription: &Subscription,
) -> Result<String, Arc<Error>> {
    let key = ConversationKey::new(subscription.agent.as_str(), &sender(event));
    let key = key.map_err(|error| Arc::new(Error::from(error)))?;
    let content = content(event, subscription);
    let request = RunRequest {
        origin: Origin::Event {
            source: event.source.clone(),
            depth: event.depth,
        },
        request_id: Some(request_id(event, subscription)),
        ..RunRequest::new(key, &*content)
    };
    let mut run = starter.start(request).await.map_err(Arc::new)?;
    run.next().await?;
    bus.0.count(subscription.id, |count| count.fired += 1);
    if subscription.once {
        bus.use_up(subscription.id).await;
    }
    let answer = run.answer().await?;
    Ok(match answer.end.code {
        0 => answer.refusal.unwrap_or_default(),
        code if answer.end.error.is_empty() => format!("code {code}"),
        _ => answer.end.error,
    })
}

/// The message to the agent. An empty payload becomes the source, since messages must
/// not be empty.
fn content<'a>(event: &'a Event, subscription: &'a Subscription) -> Cow<'a, str> {
    let payload = match event.payload.trim() {
        "" => &event.source,
        _ => &event.payload,
    };
    match subscription.prompt.trim() {
        "" => Cow::Borrowed(payload),
        prompt => Cow::Owned(format!("{prompt}\n\nEvent {}:\n\n{payload}", event.source)),
    }
}

/// The id of a run's request, so that an event fires a subscription only once (CONV-9).
fn request_id(event: &Event, subscription: &Subscription) -> String {
    /// Enough of a digest to distinguish the runs of a node.
    const DIGEST_BYTES: usize = 16;
    match event.about.as_str() {
        "" => format!("event:{}:{}", event.id, subscription.id),
        about => {
            // The source may be longer than an id.
            let digest = Sha256::digest(about.as_bytes());
            let digest: String = digest[..DIGEST_BYTES]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("event:{digest}:{}", subscription.id)
        }
    }
}

impl Bus {
    /// Marks all waiting events as not being fired.
    async fn begin(&self) -> anyhow::Result<()> {
        let begun = self.0.with(|_, state| {
            state.firing.clear();
            Ok(())
        });
        Ok(begun.await?)
    }

    /// Waiting events that are not being fired, in order; marks them as being fired.
    async fn fresh(&self) -> anyhow::Result<Vec<Arc<Event>>> {
        let fresh = self.0.with(|inner, state| {
            let pending: Vec<Arc<Event>> = state.pending(inner)?.iter().cloned().collect();
            let fresh = pending.into_iter();
            Ok(fresh
                .filter(|event| state.firing.insert(event.id))
                .collect())
        });
        Ok(fresh.await?)
    }

    /// Removes an event whose runs have ended.
    async fn done(&self, id: u64) {
        let done = self.0.with(move |inner, state| {
            state.firing.remove(&id);
            match state.pending(inner)?.remove(id) {
                true => wait(inner.records.done(id)).map_err(|error| unrecorded(&error)),
                false => Ok(()),
            }
        });
        if let Err(error) = done.await {
            // The event is repeated after a restart, but its request ids prevent second runs.
            tracing::warn!(
                event = id,
                %error,
                "a finished event could not be removed from the records"
            );
        }
    }

    /// Removes a `once` subscription from the file after its run began.
    async fn use_up(&self, id: u64) {
        let removed = self.0.with(move |inner, state| {
            let mut file = state.edit(inner)?;
            file.remove(id);
            state.save(inner, file)
        });
        if let Err(error) = removed.await {
            tracing::warn!(
                subscription = id,
                %error,
                "a used subscription could not be removed from subscriptions.toml"
            );
            // Remove it from memory for this life.
            let known = self.0.known();
            let left = known.iter().filter(|one| one.id != id).cloned();
            self.0.known.store(Some(Arc::new(left.collect())));
        }
    }
}
