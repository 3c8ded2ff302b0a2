//! Where a run comes from (CONV-10).

use crate::ConversationKey;
use std::fmt;

/// Who caused a run, as the daemon saw it. Permissions read this, never the
/// text of the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A client connection; the principal is what the transport proved.
    Client {
        /// `local` for the owner's Unix socket, else the token's name.
        principal: String,
    },
    /// A cron entry.
    Cron {
        /// The entry's id.
        id: u64,
    },
    /// A published event.
    Event {
        /// The event's source.
        source: String,
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
    },
}

impl Origin {
    /// Reads what `Display` wrote; `None` for a delegate, whose parent the
    /// text does not describe, and for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "client" => Some(Self::Client {
                principal: rest.into(),
            }),
            "cron" => Some(Self::Cron {
                id: rest.parse().ok()?,
            }),
            "event" => Some(Self::Event {
                source: rest.into(),
            }),
            _ => None,
        }
    }

    /// The origin of a run that came over the local socket.
    pub fn local() -> Self {
        Self::Client {
            principal: "local".into(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client { principal } => write!(f, "client:{principal}"),
            Self::Cron { id } => write!(f, "cron:{id}"),
            Self::Event { source } => write!(f, "event:{source}"),
            Self::Delegate { parent, run, .. } => {
                write!(f, "delegate:{}/{}#{run}", parent.agent, parent.sender)
            }
        }
    }
}
