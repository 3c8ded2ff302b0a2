//! Visibility of entries and archives (MEM-2).

use crate::entries::Slot;
use crabtalk_domain::{ConversationKey, Origin, Sender};
use std::borrow::Cow;

/// Decides which senders have an owner's authority under the current configuration.
pub trait Owners: Send + Sync {
    /// Whether the configuration names this sender as an owner.
    fn is_owner(&self, sender: &str) -> bool;
}

impl<F: Fn(&str) -> bool + Send + Sync> Owners for F {
    fn is_owner(&self, sender: &str) -> bool {
        self(sender)
    }
}

/// On whose behalf memory is read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Viewer {
    /// The conversation, whose archives are visible.
    pub conversation: ConversationKey,
    /// The sender on whose authority the run acts.
    pub sender: Sender,
    /// Whether the sender is an owner.
    pub is_owner: bool,
}

impl Viewer {
    /// Returns the viewer of a run: for a delegate the sender of the root run, who sees the
    /// results; for a run of a cron entry the maker of the entry.
    pub fn of(key: &ConversationKey, origin: &Origin, owners: &dyn Owners) -> Self {
        let sender = match origin {
            Origin::Delegate { root, .. } => Cow::Borrowed(&root.sender),
            Origin::Cron { by, .. } => match Sender::new(by) {
                Ok(by) => Cow::Owned(by),
                Err(_) => Cow::Borrowed(&key.sender),
            },
            Origin::Client { .. } | Origin::Event { .. } => Cow::Borrowed(&key.sender),
        };
        // A token may use any of its senders, and is an owner only if it requests
        // that and may.
        let is_token = origin.principal().is_some_and(|by| !by.may_be_owner());
        Self {
            conversation: key.clone(),
            is_owner: !is_token && owners.is_owner(sender.as_str()),
            sender: sender.into_owned(),
        }
    }

    /// Whether an entry may be recalled to this viewer.
    pub(crate) fn sees(&self, slot: &Slot, owners: &dyn Owners) -> bool {
        self.is_owner
            || slot.sender == self.sender.as_str()
            || (slot.shared && of_owner(slot, owners))
    }
}

/// Whether an owner caused the entry. An entry without a sender is a file that a person
/// wrote, and counts as an owner's.
pub(crate) fn of_owner(slot: &Slot, owners: &dyn Owners) -> bool {
    slot.sender.is_empty() || owners.is_owner(&slot.sender)
}
