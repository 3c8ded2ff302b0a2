//! What an owner decided to trust: `state/trust.toml`.
//!
//! Invariant: a file that cannot be read trusts nothing and is not written
//! over.

use crate::Error;
use crate::disk::{self, Existing};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Largest file: thousands of decisions.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// A trusted folder; whatever lies below it is trusted too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFolder {
    /// Absolute, without links.
    pub path: PathBuf,
    /// RFC 3339 instant of the decision.
    pub at: String,
    /// Who decided.
    pub by: String,
}

/// A skill whose content is trusted as it is (SKILL-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedSkill {
    /// Its folder.
    pub path: PathBuf,
    /// Hash of its content, in hexadecimal.
    pub sha256: String,
    /// RFC 3339 instant of the decision.
    pub at: String,
    /// Who decided.
    pub by: String,
}

/// The decisions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Trust {
    /// Folders, in the order of the decisions.
    #[serde(rename = "folder", skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<TrustedFolder>,
    /// Skills, likewise.
    #[serde(rename = "skill", skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<TrustedSkill>,
}

impl Trust {
    /// Reads the file; none is no decision.
    pub fn load(file: &Path) -> Result<Self, Error> {
        let broken = |reason: String| Error::Broken {
            file: file.to_owned(),
            reason,
        };
        let text = disk::read_if_there(file, MAX_FILE_BYTES).map_err(broken)?;
        toml::from_str(&text.unwrap_or_default())
            .map_err(|e| broken(format!("is not valid: {}", e.message())))
    }

    /// Replaces the file, whole.
    pub fn save(&self, file: &Path) -> Result<(), Error> {
        let text = toml::to_string(self).map_err(|e| Error::Broken {
            file: file.to_owned(),
            reason: format!("cannot hold this: {e}"),
        })?;
        disk::write(file, &text, Existing::Replace).map_err(|source| Error::Io {
            action: "write",
            file: file.to_owned(),
            source,
        })
    }

    /// Whether the folder or one above it is trusted. The path is absolute and
    /// without links.
    pub fn trusts_folder(&self, folder: &Path) -> bool {
        self.folders
            .iter()
            .any(|trusted| folder.starts_with(&trusted.path))
    }

    /// Whether the skill is trusted with exactly this content.
    pub fn trusts_skill(&self, path: &Path, sha256: &str) -> bool {
        self.skills
            .iter()
            .any(|skill| skill.path == path && skill.sha256.eq_ignore_ascii_case(sha256))
    }

    /// Trusts a folder. A second decision replaces the first.
    pub fn add_folder(&mut self, path: &Path, at: &str, by: &str) {
        self.remove_folder(path);
        self.folders.push(TrustedFolder {
            path: path.into(),
            at: at.into(),
            by: by.into(),
        });
    }

    /// Takes it back; tells whether there was anything to take.
    pub fn remove_folder(&mut self, path: &Path) -> bool {
        let before = self.folders.len();
        self.folders.retain(|folder| folder.path != path);
        self.folders.len() < before
    }

    /// Trusts a skill's content in the place of any earlier one.
    pub fn add_skill(&mut self, path: &Path, sha256: &str, at: &str, by: &str) {
        self.remove_skill(path);
        self.skills.push(TrustedSkill {
            path: path.into(),
            sha256: sha256.into(),
            at: at.into(),
            by: by.into(),
        });
    }

    /// Takes it back; tells whether there was anything to take.
    pub fn remove_skill(&mut self, path: &Path) -> bool {
        let before = self.skills.len();
        self.skills.retain(|skill| skill.path != path);
        self.skills.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn decisions_last() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("state/trust.toml");
        let mut trust = Trust::load(&file).unwrap();
        assert_eq!(trust, Trust::default());
        trust.add_folder(Path::new("/work/app"), "2026-03-01T12:00:00Z", "user");
        trust.add_folder(Path::new("/work/app"), "2026-03-02T12:00:00Z", "user");
        trust.add_skill(
            Path::new("/skills/a"),
            "ab12",
            "2026-03-01T12:00:00Z",
            "user",
        );
        trust.save(&file).unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "[[folder]]\npath = \"/work/app\"\nat = \"2026-03-02T12:00:00Z\"\nby = \"user\"\n\n\
             [[skill]]\npath = \"/skills/a\"\nsha256 = \"ab12\"\nat = \"2026-03-01T12:00:00Z\"\n\
             by = \"user\"\n"
        );
        assert_eq!(Trust::load(&file).unwrap(), trust);
    }

    #[test]
    fn trust_reaches_down_and_no_further() {
        let mut trust = Trust::default();
        trust.add_folder(Path::new("/work/app"), "", "");
        for (path, want) in [
            ("/work/app", true),
            ("/work/app/src", true),
            ("/work", false),
            ("/work/apple", false),
        ] {
            assert_eq!(trust.trusts_folder(Path::new(path)), want, "{path}");
        }
        assert!(trust.remove_folder(Path::new("/work/app")));
        assert!(!trust.remove_folder(Path::new("/work/app")));
        assert!(!trust.trusts_folder(Path::new("/work/app")));
    }

    #[test]
    fn a_skill_that_changed_is_not_trusted() {
        let mut trust = Trust::default();
        let path = Path::new("/skills/a");
        trust.add_skill(path, "ab12", "", "");
        assert!(trust.trusts_skill(path, "AB12"));
        assert!(!trust.trusts_skill(path, "ab13"));
        assert!(!trust.trusts_skill(Path::new("/skills/b"), "ab12"));
        trust.add_skill(path, "ab13", "", "");
        assert!(!trust.trusts_skill(path, "ab12") && trust.remove_skill(path));
    }

    #[test]
    fn a_broken_file_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("trust.toml");
        fs::write(&file, "[[folder]]\npath = 3").unwrap();
        let error = Trust::load(&file).unwrap_err().to_string();
        assert!(error.contains("trust.toml is not valid"), "{error}");
    }
}
