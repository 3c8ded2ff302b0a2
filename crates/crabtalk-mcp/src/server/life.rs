//! The task of one server: it connects, serves the connection, and reconnects with
//! growing delays.
//!
//! Invariants: only this task changes the server's state; connection and program end
//! before the task does.

use super::{Pace, Phase, Server};
use crate::declarations::Declarations;
use crate::link::{Connection, Link, Means};
use crate::list::Tools;
use crate::listed;
use crate::program_output::NotOpened;
use crate::settings::Transport;
use std::sync::Arc;
use tokio::time::{Instant, sleep_until, timeout};

/// Publishes an event about a server.
pub(crate) type Tell = dyn Fn(&Server, &str) + Send + Sync;

/// The resources of a server's task.
pub(crate) struct ServerTask {
    pub(crate) server: Arc<Server>,
    pub(crate) means: Arc<Means>,
    pub(crate) seen: Arc<Declarations>,
    pub(crate) pace: Pace,
    /// Receives events.
    pub(crate) tell: Arc<Tell>,
}

/// The error if the server refused the last request for lack of a login.
pub(super) fn refused(link: &Link) -> Option<NotOpened> {
    let tokens = link.tokens.as_ref()?;
    tokens.is_refused().then(|| NotOpened {
        why: tokens.wanted(),
        wants_login: true,
        stderr: String::new(),
    })
}

/// The reason why a connection ended.
pub(super) enum EndReason {
    Cancelled,
    Idle,
    Died(NotOpened),
}

impl ServerTask {
    /// Runs until the server is cancelled.
    pub(crate) async fn run(self) {
        let server = &self.server;
        if !server.settings.enabled || !server.settings.unusable.is_empty() {
            return server.cancel.cancelled().await;
        }
        let (first, longest) = self.pace.pause;
        let mut pause = first;
        let mut ready_at = Instant::now();
        loop {
            if !self.is_wanted(ready_at).await {
                return;
            }
            let opened = tokio::select! {
                () = server.cancel.cancelled() => return,
                opened = self.open() => opened,
            };
            let connection = match opened {
                Ok(connection) => connection,
                Err(not) => {
                    self.failed(&not);
                    ready_at = Instant::now() + pause;
                    pause = (pause * 2).min(longest);
                    continue;
                }
            };
            let begun = Instant::now();
            match self.serve(connection).await {
                EndReason::Cancelled => return,
                EndReason::Idle => {
                    ready_at = Instant::now();
                    server.change(|now| {
                        now.phase = Phase::Idle;
                        now.link = None;
                    });
                }
                EndReason::Died(not) => {
                    // A connection that lasted resets the delay.
                    if begun.elapsed() > longest {
                        pause = first;
                    }
                    ready_at = Instant::now() + pause;
                    pause = (pause * 2).min(longest);
                    if !self.died(&not) {
                        return server.cancel.cancelled().await;
                    }
                }
            }
        }
    }

    /// Waits until a connection is due; `false` when the server is cancelled.
    async fn is_wanted(&self, ready_at: Instant) -> bool {
        let server = &self.server;
        let wait = async {
            sleep_until(ready_at).await;
            if server.settings.is_lazy() {
                server.wanted.notified().await;
            }
        };
        tokio::select! {
            () = server.cancel.cancelled() => false,
            () = wait => true,
        }
    }

    /// Connects and lists the tools.
    async fn open(&self) -> Result<Connection, NotOpened> {
        let (server, settings) = (&self.server, &self.server.settings);
        server.change(|now| now.phase = Phase::Connecting);
        let within = match settings.transport {
            Transport::Program { .. } => self.pace.start,
            Transport::Url { .. } | Transport::Port(_) => self.pace.connect,
        };
        let mut connection = Connection::open(&self.means, settings, within).await?;
        match self.learn(&connection.link).await {
            Ok(tools) => {
                self.connected(&connection, tools);
                Ok(connection)
            }
            Err(why) => {
                // Some servers need a login only after the handshake.
                let refused = refused(&connection.link);
                let why = connection.ended_soon().await.unwrap_or(why);
                connection.close().await;
                Err(refused.unwrap_or_else(|| why.into()))
            }
        }
    }

    pub(super) async fn learn(&self, link: &Link) -> Result<Tools, String> {
        let listed = timeout(self.pace.list, listed::fetch(link)).await;
        let late = || format!("no list of tools within {} s", self.pace.list.as_secs());
        let listed = listed.map_err(|_| late())??;
        let settings = &self.server.settings;
        if settings.is_lazy() {
            let (seen, name, print) = (
                Arc::clone(&self.seen),
                settings.name.clone(),
                settings.print(),
            );
            let all = listed.tools.clone();
            let kept = tokio::task::spawn_blocking(move || {
                if seen.note_tools(&name, &print, all) {
                    seen.save();
                }
            });
            // Without the saved file, the program is started once more to list its tools.
            let _ = kept.await;
        }
        let tools = Tools::new(settings, listed);
        for left_out in &tools.left_out {
            tracing::warn!(server = %settings.name, tool = %left_out, "skipped a tool");
        }
        Ok(tools)
    }

    fn connected(&self, connection: &Connection, tools: Tools) {
        let server = &self.server;
        let count = tools.known.len();
        let mut is_news = false;
        server.change(|now| {
            is_news =
                !server.settings.is_lazy() || !now.tools.same(&tools) || !now.error.is_empty();
            now.phase = Phase::Connected;
            now.error.clear();
            now.wants_login = false;
            now.link = Some(Arc::clone(&connection.link));
            now.server.clone_from(&connection.link.server);
            now.protocol.clone_from(&connection.link.protocol);
            now.connected += 1;
            now.tried += 1;
            now.tools = Arc::new(tools);
        });
        tracing::info!(server = %server.settings.name, tools = count, "connected to an MCP server");
        if is_news {
            (self.tell)(server, &format!("is connected, with {count} tools"));
        }
    }

    /// Records a failed attempt to connect.
    fn failed(&self, not: &NotOpened) {
        let (server, why) = (&self.server, not.why.as_str());
        let mut is_news = false;
        server.change(|now| {
            is_news = now.error != why;
            now.phase = Phase::Failed;
            why.clone_into(&mut now.error);
            now.wants_login = not.wants_login;
            now.link = None;
            now.tried += 1;
            if !server.settings.is_lazy() {
                now.tools = Arc::default();
            }
        });
        if is_news {
            tracing::warn!(server = %server.settings.name, %why, "cannot connect to an MCP server");
            (self.tell)(server, &format!("cannot be connected: {why}"));
        }
    }

    /// Records the end of a connection; returns whether to reconnect.
    fn died(&self, not: &NotOpened) -> bool {
        let (server, why) = (&self.server, not.why.as_str());
        let again = server.settings.auto_restart;
        server.change(|now| {
            now.phase = match (again, server.settings.is_lazy()) {
                (true, true) => Phase::Idle,
                (true, false) | (false, _) => Phase::Failed,
            };
            why.clone_into(&mut now.error);
            now.wants_login = not.wants_login;
            now.link = None;
            if !again || !server.settings.is_lazy() {
                now.tools = Arc::default();
            }
        });
        tracing::warn!(server = %server.settings.name, %why, "lost the connection to an MCP server");
        (self.tell)(server, &format!("disconnected: {why}"));
        again
    }
}
