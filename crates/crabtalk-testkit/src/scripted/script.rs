//! Scripts as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Which provider's rules requests are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// Chat completions.
    #[default]
    OpenAi,
    /// Messages.
    Anthropic,
    /// `streamGenerateContent`.
    Google,
    /// `ConverseStream`.
    Bedrock,
}

/// One thing that the server does with the connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Sends status and headers. With `content-length` the body is written as
    /// it is, with `connection: close` it ends with the connection, otherwise
    /// it is chunked. A reply without a head is 200 and an event stream.
    Head {
        /// The status.
        status: u16,
        /// The headers.
        headers: Vec<(String, String)>,
    },
    /// Sends an event with this data.
    Event(String),
    /// Sends this piece of the body.
    Body(String),
    /// Sends these bytes of the body, for instance half a character.
    Bytes(Vec<u8>),
    /// Sends this piece of the body one byte at a time.
    Dribble(String),
    /// Sends this piece of the body again and again, as fast as the client
    /// takes it, until the client goes.
    Flood(String),
    /// The same until it is released.
    FloodHeld(String),
    /// Sends this past all framing.
    Raw(String),
    /// The same again and again, until the client goes.
    RawFlood(String),
    /// Waits for so many milliseconds.
    SleepMs(u64),
    /// Waits to be released, or for the client to go.
    Stall,
    /// Closes the connection at once.
    Cut,
}

/// What one request is answered with. Unless it is cut, the body is ended
/// properly after the last action.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// In order.
    pub actions: Vec<Action>,
}

impl Reply {
    /// A reply of these actions.
    pub fn new(actions: impl IntoIterator<Item = Action>) -> Self {
        Self {
            actions: actions.into_iter().collect(),
        }
    }

    /// An event stream of these data, unchanged.
    pub fn events<T: Into<String>>(events: impl IntoIterator<Item = T>) -> Self {
        Self::new(events.into_iter().map(|data| Action::Event(data.into())))
    }

    /// A JSON document with a status.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::page(
            status,
            &[("content-type", "application/json")],
            &body.to_string(),
        )
    }

    /// A whole answer with a status, headers and a body.
    pub fn page(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let mut all: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        all.push(("content-length".into(), body.len().to_string()));
        Self::new([
            Action::Head {
                status,
                headers: all,
            },
            Action::Body(body.into()),
        ])
    }

    /// An error as the providers write it.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let error = serde_json::json!({"message": message, "type": code, "code": code});
        Self::json(status, &serde_json::json!({ "error": error }))
    }

    /// 429 that asks to wait.
    pub fn rate_limited(retry_after: &str) -> Self {
        let body = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
        Self::page(429, &[("retry-after", retry_after)], body)
    }

    /// Does this after the rest.
    #[must_use]
    pub fn then(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.actions.extend(actions);
        self
    }

    /// Keeps the first actions only, and cuts the connection after them.
    #[must_use]
    pub fn cut_after(mut self, actions: usize) -> Self {
        self.actions.truncate(actions);
        self.actions.push(Action::Cut);
        self
    }

    /// Waits behind the first actions until it is released, and goes on.
    #[must_use]
    pub fn held_after(mut self, actions: usize) -> Self {
        self.actions.insert(actions, Action::Stall);
        self
    }

    /// Keeps the first actions only, and says nothing more.
    #[must_use]
    pub fn stall_after(mut self, actions: usize) -> Self {
        self.actions.truncate(actions);
        self.actions.push(Action::Stall);
        self
    }

    /// Sends every event and piece in chunks of one byte.
    #[must_use]
    pub fn dribbled(self) -> Self {
        let dribble = |action| match action {
            Action::Event(data) => vec![Action::Dribble(format!("data: {data}\n\n"))],
            Action::Body(text) => vec![Action::Dribble(text)],
            Action::Bytes(bytes) => bytes.into_iter().map(|b| Action::Bytes(vec![b])).collect(),
            Action::Head { .. }
            | Action::Dribble(_)
            | Action::Flood(_)
            | Action::FloodHeld(_)
            | Action::Raw(_)
            | Action::RawFlood(_)
            | Action::SleepMs(_)
            | Action::Stall
            | Action::Cut => vec![action],
        };
        Self {
            actions: self.actions.into_iter().flat_map(dribble).collect(),
        }
    }
}

/// The reactions of a server to its requests.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Script {
    /// The rules for requests.
    #[serde(default)]
    pub format: Format,
    /// One per request.
    pub replies: Vec<Reply>,
    /// Comes before `replies`: what a request is answered with whose last
    /// message contains a text, for instance the order to summarise.
    #[serde(default)]
    pub rules: Vec<(String, Reply)>,
    /// Begins again after the last one.
    #[serde(default)]
    pub repeat: bool,
    /// What GET answers, by path; anything else is 404.
    #[serde(default)]
    pub pages: BTreeMap<String, String>,
}

impl Script {
    /// Replies in OpenAI's format.
    pub fn openai(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Replies in Anthropic's format.
    pub fn anthropic(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            format: Format::Anthropic,
            ..Self::openai(replies)
        }
    }

    /// Replies in a format.
    pub fn new(format: Format, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            format,
            ..Self::openai(replies)
        }
    }

    /// The same replies over and over.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        self.repeat = true;
        self
    }

    /// Answers every request whose last message contains a text.
    #[must_use]
    pub fn when(mut self, text: &str, reply: Reply) -> Self {
        self.rules.push((text.into(), reply));
        self
    }

    /// Answers that depend on the last message of a request only.
    pub(super) fn rule(&self, body: &Value) -> Option<&Reply> {
        let messages = body["messages"]
            .as_array()
            .or_else(|| body["input"].as_array());
        let last = messages?.last()?.to_string();
        let mut rules = self.rules.iter();
        let (_, reply) = rules.find(|(text, _)| last.contains(text))?;
        Some(reply)
    }

    /// Answers GET of a path.
    #[must_use]
    pub fn page(mut self, path: &str, body: impl Into<String>) -> Self {
        self.pages.insert(path.into(), body.into());
        self
    }
}
