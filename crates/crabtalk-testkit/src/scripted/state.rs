//! The requests and the next answers of a scripted server.

use super::check;
use super::{Reply, Script};
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};

/// A received request.
#[derive(Debug, Clone, Serialize)]
pub struct Received {
    /// The target, including the query.
    pub path: String,
    /// Headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as received.
    pub text: String,
    /// The body as JSON; null if it is not JSON.
    pub body: Value,
    /// Problems for which a provider would have refused it.
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

/// Counters that tests may wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Connections so far.
    pub connections: usize,
    /// Requests so far.
    pub requests: usize,
    /// Answers that reached a stall so far.
    pub stalled: usize,
    /// Clients that disconnected during an answer so far.
    pub closed_early: usize,
}

pub(super) struct Book {
    next: usize,
    pub(super) script: Script,
    pub(super) requests: Vec<Received>,
}

impl Book {
    /// The answer to the last request.
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

/// State shared by all connections.
pub(super) struct State {
    book: Mutex<Book>,
    pub(super) release: Semaphore,
    progress: watch::Sender<ServerCounters>,
}

impl State {
    pub(super) fn new(script: Script) -> Arc<Self> {
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

    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters, for waiting.
    pub(super) fn progress(&self) -> watch::Receiver<ServerCounters> {
        self.progress.subscribe()
    }

    pub(super) fn advance(&self, change: impl FnOnce(&mut ServerCounters)) {
        self.progress.send_modify(change);
    }

    /// The answer to a GET.
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

    /// Checks and records a call, and returns its reply.
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
