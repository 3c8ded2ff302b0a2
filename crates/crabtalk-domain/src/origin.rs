//! Where a run comes from (CONV-10).

use crate::{ConversationKey, Principal};
use std::fmt;

/// Who caused a run, as the daemon saw it. Permissions read this, never the
/// text of the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A client connection.
    Client {
        /// The principal that its connection proved.
        principal: Principal,
    },
    /// A cron entry.
    Cron {
        /// The entry's id.
        id: u64,
        /// The sender who made it, whose memory it sees; empty if that is not
        /// known.
        by: String,
    },
    /// A published event.
    Event {
        /// The event's source.
        source: String,
        /// How many runs the chain of events has with this one: 1 where a client
        /// published, more where the end of a run did.
        depth: u32,
    },
    /// Another run's `delegate` call.
    Delegate {
        /// The conversation of the run that people see, at the top.
        root: ConversationKey,
        /// The conversation of the run that delegated.
        parent: ConversationKey,
        /// The parent's run number.
        run: u64,
        /// How many delegations lie above, the first being 1.
        depth: u32,
        /// Who caused the run at the top, if that was a client.
        principal: Option<Principal>,
    },
}

impl Origin {
    /// Reads what `Display` wrote; `None` for a delegate, whose parent the
    /// text does not describe, and for anything else.
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

    /// The client behind it; `None` where the daemon itself began, as for cron.
    pub fn principal(&self) -> Option<&Principal> {
        match self {
            Self::Client { principal } => Some(principal),
            Self::Delegate { principal, .. } => principal.as_ref(),
            Self::Cron { .. } | Self::Event { .. } => None,
        }
    }

    /// The origin of a run that the owner caused, over the local socket.
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
