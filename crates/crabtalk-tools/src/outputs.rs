//! The folders of conversations and projects.

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
    outputs.join(name_of(hash))
}

/// The folder of the private caches of toolchains that sandboxed commands of
/// one project share. It may be removed while no command runs.
pub(crate) fn caches_of(home: &Path, project: &Path) -> PathBuf {
    let hash = Sha256::new_with_prefix(project.as_os_str().as_encoded_bytes());
    home.join("state/caches").join(name_of(hash))
}

fn name_of(hash: Sha256) -> String {
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
