//! Skills of CrabTalk: folders with a `SKILL.md` in the agentskills.io format,
//! parsed, checked, discovered, rendered, trusted and imported (SKILL-1,
//! SKILL-2).
//!
//! ```text
//! format    the text of a SKILL.md: frontmatter and prompt
//! skill     one folder: its SKILL.md and its files
//! check     the strict check, for authors
//! library   the list of skills: order, duplicates, hot reload, scope
//! block     `<skill>` blocks and arguments for the model
//! trust     content hashes, state/trust.toml, pre-approved tools
//! import    copies of other agents' skills
//! ```
//!
//! Invariants: every file is opened without following a link out of its skill's
//! folder and read within a limit; YAML has a budget; findings name
//! file and line. The caller's scope is checked with a skill's real name (GATE-1).
//!
//! All functions block on the disk: call them off the reactor.

mod error;
mod finding;
mod name;

mod disk;
mod system;

mod format;
mod tools;

mod grants;

mod skill;

mod check;
mod scan;

mod library;

mod block;

mod trust;

mod import;

pub use block::render_list;
pub use check::{Report, check};
pub use disk::{MAX_FILE_BYTES, MAX_FILES, MAX_TOTAL_BYTES};
pub use error::Error;
pub use finding::{Finding, Level};
pub use format::{MAX_FRONTMATTER_BYTES, MAX_SKILL_BYTES};
pub use grants::Grants;
pub use import::{Copied, ImportReport, NotCopied, import};
pub use library::{Folder, Library, Listing, Lookup, Slash};
pub use name::is_name;
pub use skill::{Files, Skill, SkillSource, SkillSummary, load};
pub use tools::ToolPattern;
pub use trust::{Offer, Trust, TrustFile, TrustedFolder, TrustedSkill, content_hash};

#[cfg(test)]
mod tests;
