//! The folders of conversations and projects.

use crabtalk_domain::ConversationKey;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The folder of a conversation's output files. Its name is a hash, since senders are arbitrary
/// texts of any length.
pub fn outputs_of(outputs: &Path, key: &ConversationKey) -> PathBuf {
    let mut hash = Sha256::new();
    // Agent names are unique ignoring case (CONV-2) and have no NUL.
    hash.update(key.agent.as_str().to_ascii_lowercase());
    hash.update([0]);
    hash.update(key.sender.as_str());
    outputs.join(name_of(hash))
}

/// The folder of the toolchain caches that sandboxed commands of one project
/// share. It may be removed while no command runs.
pub(crate) fn caches_of(home: &Path, project: &Path) -> PathBuf {
    let hash = Sha256::new_with_prefix(project.as_os_str().as_encoded_bytes());
    home.join("state/caches").join(name_of(hash))
}

fn name_of(hash: Sha256) -> String {
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}
