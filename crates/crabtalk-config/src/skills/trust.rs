//! The folders and skills that an owner trusts, in `state/trust.toml` (SKILL-2, MEM-4).
//!
//! Invariants: a skill is trusted by the hash of all its files, so that any change ends
//! the trust; an invalid file trusts nothing and is never overwritten.

mod file;
mod hash;

pub use file::{Offer, Trust, TrustFile, TrustedFolder, TrustedSkill};
pub use hash::content_hash;

use crate::skills::format;
use crate::skills::grants::grants;
use crate::skills::skill::{MANIFEST, Skill, SkillSource};
use crate::skills::tools::ToolPattern;

impl Trust {
    /// The tools that a skill pre-approves now: none unless it is in `config/skills`, all its
    /// files are as they were when an owner trusted them, and its `SKILL.md` is the one that
    /// was loaded. The scope and every `deny` still take precedence. Call this for each
    /// tool call, since a file may have changed.
    pub fn preapproved(&self, skill: &Skill) -> Vec<ToolPattern> {
        let summary = &skill.summary;
        if summary.source != SkillSource::Home || skill.allowed_tools.is_empty() {
            return Vec::new();
        }
        let Some(trusted) = self.skill(&summary.folder) else {
            return Vec::new();
        };
        let Ok(hashed) = hash::hash(&summary.folder) else {
            return Vec::new();
        };
        if hashed.sha256 != trusted.sha256 {
            return Vec::new();
        }
        match format::parse(&hashed.manifest, MANIFEST.as_ref()) {
            Ok((document, _))
                if document.allowed_tools == skill.allowed_tools && document.body == skill.body =>
            {
                let files = &skill.files.paths;
                grants(&skill.allowed_tools, &summary.folder, files).rules
            }
            Ok(_) | Err(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
