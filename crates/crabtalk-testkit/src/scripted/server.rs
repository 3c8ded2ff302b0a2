//! The server and what it saw.

use super::check;
use super::connection::Connection;
use super::{Reply, Script};
use serde::Serialize;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// A request as it came.
#[derive(Debug, Clone, Serialize)]
pub struct Received {
    /// The target, query included.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub text: String,
    /// The body; null where it is no JSON.
    pub body: Value,
    /// What a provider would have refused.
    pub problems: Vec<String>,
}

impl Received {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// What tests may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Connections so far.
    pub connections: usize,
    /// Requests so far.
    pub requests: usize,
    /// Answers that reached a stall so far.
    pub stalled: usize,
    /// Clients that went away in mid-answer so far.
    pub closed_early: usize,
}

struct Book {
    next: usize,
    script: Script,
    requests: Vec<Received>,
}

impl Book {
    /// What the request that came last is answered with.
    fn reply(&mut self) -> Reply {
        let last = self.requests.last();
        if let Some(reply) = last.and_then(|request| self.script.rule(&request.body)) {
            return reply.clone();
        }
        let mut at = self.next;
        self.next += 1;
        let replies = &self.script.replies;
        if self.script.repeat {
            at %= replies.len().max(1);
        }
        replies.get(at).cloned().unwrap_or_else(|| {
            Reply::error(400, "invalid_request_error", "the script has no reply left")
        })
    }
}

/// What all connections share.
pub(super) struct State {
    book: Mutex<Book>,
    pub(super) release: Semaphore,
    progress: watch::Sender<Progress>,
}

impl State {
    fn new(script: Script) -> Arc<Self> {
        Arc::new(Self {
            book: Mutex::new(Book {
                next: 0,
                script,
                requests: Vec::new(),
            }),
            release: Semaphore::new(0),
            progress: watch::Sender::default(),
        })
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn advance(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }

    /// What a GET is answered with.
    pub(super) fn page(&self, path: &str) -> Reply {
        let book = self.book();
        if path == "/requests" {
            let all = serde_json::to_value(&book.requests).expect("plain data");
            return Reply::json(200, &all);
        }
        match book.script.pages.get(path) {
            Some(page) => Reply::page(200, &[("content-type", "application/json")], page),
            None => Reply::page(404, &[], "no such page"),
        }
    }

    /// Checks and records a call, and says what it is answered with.
    pub(super) fn call(&self, path: String, headers: Vec<(String, String)>, body: &[u8]) -> Reply {
        let json = serde_json::from_slice(body).unwrap_or(Value::Null);
        let mut book = self.book();
        let problems = check::problems(book.script.format, &path, &json);
        let text = String::from_utf8_lossy(body).into_owned();
        let refusal = problems.join("; ");
        book.requests.push(Received {
            path,
            headers,
            text,
            body: json,
            problems,
        });
        let reply = if refusal.is_empty() {
            book.reply()
        } else {
            let message = format!("the scripted server refuses: {refusal}");
            Reply::error(400, "invalid_request_error", &message)
        };
        drop(book);
        self.advance(|progress| progress.requests += 1);
        reply
    }
}

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

/// Serves until it is dropped.
pub async fn serve(listener: TcpListener, script: Script) {
    accept(listener, State::new(script)).await;
}

/// A server within the test's process; ends when it is dropped.
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    _task: JoinSet<()>,
}

impl Server {
    /// Starts one on a free port of loopback.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as a `base_url` of any kind.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same with the path that most kinds have.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Every call so far.
    pub fn requests(&self) -> Vec<Received> {
        self.state.book().requests.clone()
    }

    /// What was wrong with the calls so far.
    pub fn problems(&self) -> Vec<String> {
        self.requests()
            .into_iter()
            .flat_map(|request| request.problems)
            .collect()
    }

    /// Lets the answer that stalled first go on.
    pub fn release(&self) {
        self.state.release.add_permits(1);
    }

    /// Adds a reply at the end of the script.
    pub fn push(&self, reply: Reply) {
        self.state.book().script.replies.push(reply);
    }

    /// Where it stands now.
    pub fn progress(&self) -> Progress {
        *self.state.progress.borrow()
    }

    /// Waits for a state, for instance `|p| p.closed_early == 1`.
    pub async fn until(&self, reached: impl FnMut(&Progress) -> bool) {
        let mut progress = self.state.progress.subscribe();
        progress
            .wait_for(reached)
            .await
            .expect("the sender lives in self");
    }
}
