//! The server, in the test's process or in a separate one.

use super::connection::Connection;
use super::state::{Received, ServerCounters, State};
use super::{Reply, Script};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                state.advance(|progress| progress.connections += 1);
                connections.spawn(Connection::new(stream, state.clone()).serve());
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves a script until dropped.
pub async fn serve(listener: TcpListener, script: Script) {
    accept(listener, State::new(script)).await;
}

/// A server in the test's process; ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    _task: JoinSet<()>,
}

impl Server {
    /// Starts a server on a free loopback port.
    pub async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let state = State::new(script);
        let mut task = JoinSet::new();
        task.spawn(accept(listener, state.clone()));
        Self {
            address,
            state,
            _task: task,
        }
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The listening address as a `base_url` of any kind.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The listening address with the path that most kinds use.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every recorded request.
    pub fn requests(&self) -> Vec<Received> {
        self.state.book().requests.clone()
    }

    /// The problems of the requests so far.
    pub fn problems(&self) -> Vec<String> {
        self.requests()
            .into_iter()
            .flat_map(|request| request.problems)
            .collect()
    }

    /// Continues the answer that stalled first.
    pub fn release(&self) {
        self.state.release.add_permits(1);
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, reply: Reply) {
        self.state.book().script.replies.push(reply);
    }

    /// The current counters.
    pub fn progress(&self) -> ServerCounters {
        *self.state.progress().borrow()
    }

    /// Waits for a state, for instance `|p| p.closed_early == 1`.
    pub async fn until(&self, reached: impl FnMut(&ServerCounters) -> bool) {
        let mut progress = self.state.progress();
        progress
            .wait_for(reached)
            .await
            .expect("the sender lives in self");
    }
}
