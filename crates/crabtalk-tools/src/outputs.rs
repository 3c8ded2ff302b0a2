//! Where a conversation has a folder of its own among those of all.

use crabtalk_domain::ConversationKey;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The folder of a conversation's whole outputs. A hash, since senders are any
/// text of any length and must not share one.
pub fn outputs_of(outputs: &Path, key: &ConversationKey) -> PathBuf {
    let mut hash = Sha256::new();
    // Agents' names are unique ignoring case (CONV-2), and hold no NUL.
    hash.update(key.agent.as_str().to_ascii_lowercase());
    hash.update([0]);
    hash.update(key.sender.as_str());
    let name: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    outputs.join(name)
}
