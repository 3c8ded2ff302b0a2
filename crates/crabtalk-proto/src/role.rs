//! The table of operations with the least role of each (REMOTE-1).
//!
//! Invariants: every operation has a row, because dispatch is generated from the same list;
//! a role includes the lesser ones.

use crate::message::client_message;
use crate::operation::operations;
use crate::status::Status;

/// The role of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Not authenticated.
    Stranger,
    /// Talks to agents and reads conversations.
    Talk,
    /// Operates the daemon: statistics, memory, removals, cron and subscriptions.
    Operate,
    /// Changes the configuration.
    Admin,
}

impl Role {
    /// All roles in ascending order.
    pub const ALL: [Self; 4] = [Self::Stranger, Self::Talk, Self::Operate, Self::Admin];

    /// The name in [`WelcomeMsg`](crate::WelcomeMsg) and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stranger => "stranger",
            Self::Talk => "talk",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }

    /// Returns 403 if this role is below `least`.
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

/// A row of the table of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Whether its answer is a stream.
    pub streams: bool,
    /// The least role.
    pub role: Role,
}

macro_rules! table {
    (
        one {$($(#[doc = $one_doc:literal])* $one:ident: $one_variant:ident($one_request:ty) -> $one_response:ty, $one_role:ident;)*}
        many {$($(#[doc = $many_doc:literal])* $many:ident: $many_variant:ident($many_request:ty) -> $many_item:ty, $many_role:ident;)*}
    ) => {
        impl Operation {
            /// An empty request for the operation.
            pub fn empty(&self) -> client_message::Msg {
                $(if self.name == stringify!($one) {
                    return client_message::Msg::$one_variant(Default::default());
                })*
                $(if self.name == stringify!($many) {
                    return client_message::Msg::$many_variant(Default::default());
                })*
                unreachable!("unknown operation {}", self.name)
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
