//! The origins of runs (CONV-10).

use crate::{ConversationKey, Principal};
use std::fmt;

/// The cause of a run, as the daemon verified it. Permissions depend on it, never on
/// the sender's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A client connection.
    Client {
        /// The principal that the connection proved.
        principal: Principal,
    },
    /// A cron entry.
    Cron {
        /// The entry's id.
        id: u64,
        /// The sender who created the entry, whose memory the run can use; empty if
        /// unknown.
        by: String,
    },
    /// A published event.
    Event {
        /// The event's source.
        source: String,
        /// Position in the chain of events: 1 unless the event reports the end of a run
        /// that an event fired.
        depth: u32,
    },
    /// Another run's `delegate` call.
    Delegate {
        /// The conversation of the root run, whose stream people read.
        root: ConversationKey,
        /// The conversation of the run that delegated.
        parent: ConversationKey,
        /// The parent's run number.
        run: u64,
        /// Depth of the delegation, 1 for a member of the root run.
        depth: u32,
        /// The principal behind the root run, if a client caused it.
        principal: Option<Principal>,
    },
}

impl Origin {
    /// Parses the output of `Display`; returns `None` for a delegate, whose parent the
    /// text does not contain, and for invalid text.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "client" => Some(Self::Client {
                principal: Principal::parse(rest)?,
            }),
            "cron" => {
                let (id, by) = rest.split_once(':').unwrap_or((rest, ""));
                Some(Self::Cron {
                    id: id.parse().ok()?,
                    by: by.into(),
                })
            }
            "event" => Some(Self::Event {
                source: rest.into(),
                depth: 1,
            }),
            _ => Some(Self::Event {
                source: rest.into(),
                depth: kind.strip_prefix("event#")?.parse().ok()?,
            }),
        }
    }

    /// The principal behind the run; `None` if the daemon began it, as for cron.
    pub fn principal(&self) -> Option<&Principal> {
        match self {
            Self::Client { principal } => Some(principal),
            Self::Delegate { principal, .. } => principal.as_ref(),
            Self::Cron { .. } | Self::Event { .. } => None,
        }
    }

    /// The origin of a run that the owner caused over the local socket.
    pub fn local() -> Self {
        Self::Client {
            principal: Principal::Owner,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client { principal } => write!(f, "client:{principal}"),
            Self::Cron { id, by } if by.is_empty() => write!(f, "cron:{id}"),
            Self::Cron { id, by } => write!(f, "cron:{id}:{by}"),
            Self::Event { source, depth: 1 } => write!(f, "event:{source}"),
            Self::Event { source, depth } => write!(f, "event#{depth}:{source}"),
            Self::Delegate { parent, run, .. } => {
                write!(f, "delegate:{}/{}#{run}", parent.agent, parent.sender)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_parse_as_written() {
        for text in [
            "client:local",
            "client:token/laptop",
            "cron:7",
            "cron:7:tg:1",
            "event:a:b",
            "event#3:agent:crab:done",
        ] {
            let origin = Origin::parse(text).expect("it is one");
            assert_eq!(origin.to_string(), text);
        }
        for text in [
            "cron:x",
            "cron:x:user",
            "client:laptop",
            "client:",
            "delegate:a/b#1",
            "event#x:a",
            "events:a",
            "",
            "x",
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }
}
