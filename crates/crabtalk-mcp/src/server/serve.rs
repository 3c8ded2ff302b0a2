//! Serves a connection: sends pings, refetches changed lists of tools, and detects its end.

use super::Phase;
use super::life::{EndReason, ServerTask, refused};
use crate::call::CancelOnDrop;
use crate::link::{Connection, Link};
use crate::loopback;
use crate::program_output::NotOpened;
use crate::settings::Transport;
use rmcp::model::{ClientRequest, PingRequest};
use rmcp::service::{PeerRequestOptions, ServiceError};
use std::sync::Arc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

impl ServerTask {
    /// Serves a connection until it ends.
    pub(super) async fn serve(&self, mut connection: Connection) -> EndReason {
        // The idle time begins after the start.
        self.server.use_now();
        let over = self.watch(&mut connection).await;
        if let EndReason::Died(not) = &over {
            // The error for calls that end with the connection.
            let _ = connection.link.over.set(not.why.clone());
        }
        // Later calls wait for the next connection; earlier requests are satisfied.
        self.server.forget_wishes();
        self.server.change(|now| {
            now.link = None;
            now.phase = Phase::Connecting;
        });
        connection.close().await;
        over
    }

    async fn watch(&self, connection: &mut Connection) -> EndReason {
        let server = &self.server;
        let (changed, doubt) = (
            Arc::clone(&connection.changed),
            Arc::clone(&connection.doubt),
        );
        let link = Arc::clone(&connection.link);
        let mut next_ping = Instant::now() + self.pace.ping;
        let mut next_list = Instant::now();
        loop {
            let announced = async {
                sleep_until(next_list).await;
                changed.notified().await;
            };
            tokio::select! {
                biased;
                () = server.cancel.cancelled() => return EndReason::Cancelled,
                why = connection.ended() => return EndReason::Died(why.into()),
                () = self.at_rest(&link) => return EndReason::Idle,
                () = announced => {
                    self.changed(&link).await;
                    next_list = Instant::now() + self.pace.changes;
                }
                () = async {
                    tokio::select! {
                        () = doubt.notified() => {}
                        () = server.doubt.notified() => {}
                    }
                } => {
                    if let Some(not) = self.gone(&link).await {
                        return EndReason::Died(not);
                    }
                }
                () = sleep_until(next_ping) => {
                    let answers = self.ping(&link).await;
                    if !answers && let Some(not) = self.gone(&link).await {
                        return EndReason::Died(not);
                    }
                    self.answers(answers);
                    let every = if answers { self.pace.ping } else { self.pace.hanging };
                    next_ping = Instant::now() + every;
                }
            }
        }
    }

    /// Resolves when a program has been idle for long enough.
    async fn at_rest(&self, link: &Link) {
        if !self.server.settings.is_lazy() {
            return std::future::pending().await;
        }
        let idle = self.server.settings.idle;
        loop {
            sleep_until(self.server.used() + idle).await;
            if link.calls.count() == 0 && self.server.used().elapsed() >= idle {
                return;
            }
            if link.calls.count() > 0 {
                self.server.use_now();
            }
        }
    }

    /// The reason if a component's port is closed, or the server needs a login.
    async fn gone(&self, link: &Link) -> Option<NotOpened> {
        if let Some(refused) = refused(link) {
            return Some(refused);
        }
        let Transport::Port(port) = &self.server.settings.transport else {
            return None;
        };
        let looked = timeout(self.pace.answer, loopback::connect(port.port)).await;
        match looked {
            Ok(Err(why)) => Some(why.to_string().into()),
            Ok(Ok(_)) | Err(_) => None,
        }
    }

    async fn ping(&self, link: &Link) -> bool {
        let request = ClientRequest::PingRequest(PingRequest::default());
        let (peer, tasks) = (&link.peer, &self.means.tasks);
        let asked = async {
            let options = PeerRequestOptions::no_options();
            let mut sent = peer.send_cancellable_request(request, options).await?;
            // Cancelled on timeout, so that pings do not pile up.
            let mut cancel = CancelOnDrop {
                peer,
                tasks,
                id: Some(sent.id.clone()),
                why: "no answer in time",
            };
            let answer = (&mut sent.rx).await;
            cancel.id = None;
            answer.unwrap_or(Err(ServiceError::TransportClosed))
        };
        match timeout(self.pace.answer, asked).await {
            // An error is also an answer.
            Ok(Ok(_) | Err(ServiceError::McpError(_))) => true,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    fn answers(&self, answers: bool) {
        let server = &self.server;
        let want = if answers {
            Phase::Connected
        } else {
            Phase::Hanging
        };
        let mut is_news = false;
        server.change(|now| {
            is_news = now.phase != want;
            now.phase = want;
            if is_news && answers {
                now.error.clear();
            } else if is_news {
                now.error = "it does not answer pings".into();
            }
        });
        if is_news && answers {
            tracing::info!(server = %server.settings.name, "an MCP server answers again");
            (self.tell)(server, "answers again");
        } else if is_news {
            tracing::warn!(server = %server.settings.name, "an MCP server hangs");
            (self.tell)(server, "hangs: it does not answer pings");
        }
    }

    /// Fetches a changed list of tools.
    async fn changed(&self, link: &Link) {
        match self.learn(link).await {
            Ok(tools) => {
                let count = tools.known.len();
                let mut is_news = false;
                self.server.change(|now| {
                    is_news = !now.tools.same(&tools);
                    now.tools = Arc::new(tools);
                });
                if is_news {
                    (self.tell)(
                        &self.server,
                        &format!("changed its tools; it has {count} now"),
                    );
                }
            }
            // The next ping detects a hanging server; the old list stays valid until then.
            Err(why) => {
                tracing::warn!(server = %self.server.settings.name, %why, "cannot fetch the new list of tools");
                sleep(self.pace.pause.0).await;
            }
        }
    }
}
