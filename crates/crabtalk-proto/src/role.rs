//! Who may do what (REMOTE-1): the table of operations, and the least role of each.
//!
//! Invariants: every operation has a row, since dispatch is made of the same list;
//! a role may all that the lesser ones may.

use crate::message::client_message;
use crate::operation::operations;
use crate::status::Status;

/// What a connection may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Nobody has shown yet who it is.
    Stranger,
    /// Talks to agents, and reads what was said.
    Talk,
    /// Looks after the daemon: figures, memory, removals, what runs by itself.
    Operate,
    /// Changes what is configured.
    Admin,
}

impl Role {
    /// All of them, from the least on.
    pub const ALL: [Self; 4] = [Self::Stranger, Self::Talk, Self::Operate, Self::Admin];

    /// The word that [`WelcomeMsg`](crate::WelcomeMsg) and the configuration use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stranger => "stranger",
            Self::Talk => "talk",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// Refuses what this role may not (403).
    pub(crate) fn check(self, operation: &str, least: Self) -> Result<(), Status> {
        if self >= least {
            return Ok(());
        }
        Err(Status::forbidden(format!(
            "`{operation}` needs the role {}, and this connection has {}",
            least.name(),
            self.name()
        )))
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether its answer is a stream.
    pub streams: bool,
    /// The least role that may.
    pub role: Role,
}

macro_rules! table {
    (
        one {$($(#[doc = $one_doc:literal])* $one:ident: $one_variant:ident($one_request:ty) -> $one_response:ty, $one_role:ident;)*}
        many {$($(#[doc = $many_doc:literal])* $many:ident: $many_variant:ident($many_request:ty) -> $many_item:ty, $many_role:ident;)*}
    ) => {
        impl Operation {
            /// A request of it that says nothing.
            pub fn empty(&self) -> client_message::Msg {
                $(if self.name == stringify!($one) {
                    return client_message::Msg::$one_variant(Default::default());
                })*
                $(if self.name == stringify!($many) {
                    return client_message::Msg::$many_variant(Default::default());
                })*
                // Operations are made by the table alone.
                unreachable!("there is no operation {}", self.name)
            }
        }

        /// Every operation, in the order of the trait's methods.
        pub const OPERATIONS: &[Operation] = &[
            $(Operation {
                name: stringify!($one),
                about: concat!($($one_doc),*),
                streams: false,
                role: Role::$one_role,
            },)*
            $(Operation {
                name: stringify!($many),
                about: concat!($($many_doc),*),
                streams: true,
                role: Role::$many_role,
            },)*
        ];
    };
}
operations!(table);

#[cfg(test)]
mod tests;
