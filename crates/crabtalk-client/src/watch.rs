//! The events of all runs, over lost connections (WIRE-8).
//!
//! Invariant: each event is returned once, and lost events are counted.

use crate::client::Client;
use crate::follow::{Follow, News, follow};
use crabtalk_proto::{AgentEventKind, AgentEventMsg, ClientMessage, SubscribeEvents};
use std::collections::VecDeque;

/// News of all runs.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchNews {
    /// An event. Its `missed` field counts the events before it that were lost because the client read
    /// too slowly.
    Event(Box<AgentEventMsg>),
    /// The connection is lost; the client tries to reconnect.
    Lost {
        /// The reason.
        why: String,
    },
    /// The client is connected again to the same daemon.
    Back {
        /// The number of lost events.
        missed: u64,
    },
    /// The client is connected to a daemon that started since. It is unknown how many events of the
    /// previous daemon were lost.
    Restarted {
        /// The number of lost events of the new daemon.
        missed: u64,
    },
}

impl Client {
    /// Follows the events of all runs, over lost connections.
    pub fn watch(&self, mut request: SubscribeEvents) -> Watch {
        let known = !request.life.is_empty();
        request.after.get_or_insert(0);
        follow(self.clone(), Watching { request, known })
    }
}

/// News of all runs, from [`Client::watch`]. The stream ends only with an error.
pub type Watch = News<WatchNews>;

struct Watching {
    /// The request, updated with the position to continue from.
    request: SubscribeEvents,
    /// Whether the request has a position, so that the first answer reports a gap.
    known: bool,
}

impl Follow for Watching {
    type Message = AgentEventMsg;
    type News = WatchNews;

    fn request(&self) -> ClientMessage {
        self.request.clone().into()
    }

    fn take(&mut self, event: AgentEventMsg, news: &mut VecDeque<WatchNews>) -> bool {
        if event.kind == i32::from(AgentEventKind::Subscribed) {
            let missed = event.missed;
            let is_same = event.life == self.request.life;
            self.request.after = Some(event.seq);
            self.request.life = event.life;
            if std::mem::replace(&mut self.known, true) {
                news.push_back(match is_same {
                    true => WatchNews::Back { missed },
                    false => WatchNews::Restarted { missed },
                });
            }
            return false;
        }
        if event.seq > 0 {
            self.request.after = Some(event.seq);
        }
        news.push_back(WatchNews::Event(Box::new(event)));
        false
    }

    fn lost(&mut self, why: String) -> WatchNews {
        WatchNews::Lost { why }
    }
}

#[cfg(test)]
mod tests;
