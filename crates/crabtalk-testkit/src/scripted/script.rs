//! Scripts as data.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The provider format whose rules apply to requests.
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

/// An action of the server on the connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Sends status and headers. With `content-length` the body is sent
    /// unchanged, with `connection: close` the end of the connection ends it, otherwise
    /// it is chunked. A reply without a head is a 200 with an event stream.
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
    /// Sends these bytes of the body, such as half a character.
    Bytes(Vec<u8>),
    /// Sends this piece of the body one byte at a time.
    Dribble(String),
    /// Sends this piece of the body repeatedly, as fast as the client
    /// reads, until the client closes.
    Flood(String),
    /// Sends this piece of the body repeatedly until released.
    FloodHeld(String),
    /// Sends this without framing.
    Raw(String),
    /// Sends this without framing, repeatedly, until the client closes.
    RawFlood(String),
    /// Waits for this many milliseconds.
    SleepMs(u64),
    /// Waits until released, or until the client closes.
    Stall,
    /// Closes the connection at once.
    Cut,
}

/// The answer to one request. Unless it is cut, the body is ended
/// regularly after the last action.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// The actions, in order.
    pub actions: Vec<Action>,
}

impl Reply {
    /// Creates a reply with these actions.
    pub fn new(actions: impl IntoIterator<Item = Action>) -> Self {
        Self {
            actions: actions.into_iter().collect(),
        }
    }

    /// An event stream with these data, unchanged.
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

    /// A page with a status, headers and a body.
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

    /// An error in the providers' format.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let error = serde_json::json!({"message": message, "type": code, "code": code});
        Self::json(status, &serde_json::json!({ "error": error }))
    }

    /// A 429 with a `Retry-After` header.
    pub fn rate_limited(retry_after: &str) -> Self {
        let body = r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
        Self::page(429, &[("retry-after", retry_after)], body)
    }

    /// Adds actions at the end.
    #[must_use]
    pub fn then(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.actions.extend(actions);
        self
    }

    /// Keeps only the first actions, and cuts the connection after them.
    #[must_use]
    pub fn cut_after(mut self, actions: usize) -> Self {
        self.actions.truncate(actions);
        self.actions.push(Action::Cut);
        self
    }

    /// Waits after the first actions until released, and continues.
    #[must_use]
    pub fn held_after(mut self, actions: usize) -> Self {
        self.actions.insert(actions, Action::Stall);
        self
    }

    /// Keeps only the first actions, and stalls after them.
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
    /// The replies, one per request.
    pub replies: Vec<Reply>,
    /// Replies that take precedence over `replies`, for requests whose last
    /// message contains a text, such as the request for a summary.
    #[serde(default)]
    pub rules: Vec<(String, Reply)>,
    /// Whether to begin again after the last reply.
    #[serde(default)]
    pub repeat: bool,
    /// The answers to GET by path; other paths are 404.
    #[serde(default)]
    pub pages: BTreeMap<String, String>,
}

impl Script {
    /// A script with replies in OpenAI's format.
    pub fn openai(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A script with replies in Anthropic's format.
    pub fn anthropic(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            format: Format::Anthropic,
            ..Self::openai(replies)
        }
    }

    /// A script with replies in a format.
    pub fn new(format: Format, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            format,
            ..Self::openai(replies)
        }
    }

    /// Repeats the replies.
    #[must_use]
    pub fn repeating(mut self) -> Self {
        self.repeat = true;
        self
    }

    /// Answers requests whose last message contains a text.
    #[must_use]
    pub fn when(mut self, text: &str, reply: Reply) -> Self {
        self.rules.push((text.into(), reply));
        self
    }

    /// The reply by a rule, which depends only on a request's last message.
    pub(super) fn rule(&self, body: &Value) -> Option<&Reply> {
        let messages = body["messages"]
            .as_array()
            .or_else(|| body["input"].as_array());
        let last = messages?.last()?.to_string();
        let mut rules = self.rules.iter();
        let (_, reply) = rules.find(|(text, _)| last.contains(text))?;
        Some(reply)
    }

    /// Sets the answer to GET of a path.
    #[must_use]
    pub fn page(mut self, path: &str, body: impl Into<String>) -> Self {
        self.pages.insert(path.into(), body.into());
        self
    }
}
