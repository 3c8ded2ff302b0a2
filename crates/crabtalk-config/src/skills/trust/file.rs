//! Reads and changes `state/trust.toml`.

use super::content_hash;
use crate::skills::Error;
use crate::skills::disk::canonical_folder;
use crate::skills::grants::{Grants, grants};
use crate::skills::system;
use crabtalk_files::{Error as FileError, Existing};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Largest trust file: thousands of entries.
const MAX_BYTES: u64 = 1024 * 1024;

/// A folder that an owner trusts, for its project instructions (MEM-4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedFolder {
    /// The canonical folder.
    pub path: PathBuf,
    /// RFC 3339 instant of the decision.
    pub at: String,
    /// The sender who trusted it.
    pub by: String,
}

/// A skill that an owner trusts, by content (SKILL-2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedSkill {
    /// The canonical folder.
    pub path: PathBuf,
    /// The hash of its content.
    pub sha256: String,
    /// RFC 3339 instant of the decision.
    pub at: String,
    /// The sender who trusted it.
    pub by: String,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// `[[folder]]`
    #[serde(default, rename = "folder", skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<TrustedFolder>,
    /// `[[skill]]`
    #[serde(default, rename = "skill", skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<TrustedSkill>,
}

/// A skill to trust, and the consequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The canonical folder.
    pub path: PathBuf,
    /// The hash of its content.
    pub sha256: String,
    /// The calls that its runs may then make without asking, if it is in `config/skills`.
    pub grants: Grants,
}

impl Offer {
    /// Reads the skill in a folder.
    pub fn of(folder: &Path) -> Result<Self, Error> {
        let path = canonical_folder(folder)?;
        let before = content_hash(&path)?;
        let skill = crate::skills::load(&path, crate::skills::SkillSource::Home)?;
        let sha256 = content_hash(&path)?;
        if sha256 != before {
            let error = io::Error::other("it changed during the check");
            return Err(Error::io("trust", &path, error));
        }
        let grants = grants(&skill.allowed_tools, &path, &skill.files.paths);
        Ok(Self {
            path,
            sha256,
            grants,
        })
    }
}

impl Trust {
    /// Whether exactly this folder is trusted, regardless of those above it.
    pub fn trusts_folder(&self, folder: &Path) -> bool {
        folder
            .canonicalize()
            .is_ok_and(|real| self.folders.iter().any(|f| f.path == real))
    }

    /// Whether this folder or one above it is trusted.
    pub fn reaches(&self, folder: &Path) -> bool {
        folder.ancestors().any(|above| self.trusts_folder(above))
    }

    /// The entry of the skill in a folder, for any content.
    pub fn skill(&self, folder: &Path) -> Option<&TrustedSkill> {
        let real = folder.canonicalize().ok()?;
        self.skills.iter().find(|skill| skill.path == real)
    }
}

/// The file. Changes from several processes are serialised.
#[derive(Debug, Clone)]
pub struct TrustFile {
    path: PathBuf,
}

impl TrustFile {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a handle; the file need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Reads the current content.
    pub fn load(&self) -> Result<Trust, Error> {
        let read = crabtalk_files::if_there(crabtalk_files::read_text(&self.path, MAX_BYTES));
        let text = match read {
            Ok(text) => text.unwrap_or_default(),
            Err(FileError::Io(e)) => return Err(Error::io("read", &self.path, e)),
            Err(error) => return Err(self.broken(error.to_string())),
        };
        toml::from_str(&text)
            .map_err(|e| self.broken(format!("is not a valid trust file: {}", e.message())))
    }

    /// Trusts a folder, replacing an earlier entry.
    pub fn add_folder(&self, folder: &Path, at: &str, by: &str) -> Result<TrustedFolder, Error> {
        let folder = TrustedFolder {
            path: canonical_folder(folder)?,
            at: at.to_owned(),
            by: by.to_owned(),
        };
        self.change(|trust| {
            trust.folders.retain(|known| known.path != folder.path);
            trust.folders.push(folder.clone());
        })?;
        Ok(folder)
    }

    /// Trusts a skill by its checked content, replacing an earlier entry.
    pub fn add_skill(&self, offer: Offer, at: &str, by: &str) -> Result<TrustedSkill, Error> {
        let skill = TrustedSkill {
            path: offer.path,
            sha256: offer.sha256,
            at: at.to_owned(),
            by: by.to_owned(),
        };
        self.change(|trust| {
            trust.skills.retain(|known| known.path != skill.path);
            trust.skills.push(skill.clone());
        })?;
        Ok(skill)
    }

    /// Removes the trust in a folder, which need not exist; returns whether there was any.
    pub fn remove_folder(&self, folder: &Path) -> Result<bool, Error> {
        let path = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        self.change(|trust| {
            let before = trust.folders.len();
            trust.folders.retain(|known| known.path != path);
            trust.folders.len() != before
        })
    }

    /// Removes the trust in a skill, whose folder need not exist; returns whether there was
    /// any.
    pub fn remove_skill(&self, folder: &Path) -> Result<bool, Error> {
        let path = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        self.change(|trust| {
            let before = trust.skills.len();
            trust.skills.retain(|known| known.path != path);
            trust.skills.len() != before
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Trust) -> T) -> Result<T, Error> {
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            Some(_) | None => Path::new("."),
        };
        let io = |action, e| Error::io(action, &self.path, e);
        crabtalk_files::create_folder(folder).map_err(|e| io("write", e))?;
        let lock =
            system::open_lock(&self.path.with_extension("lock")).map_err(|e| io("lock", e))?;
        // Held for one small write; closing the file releases it.
        lock.lock().map_err(|e| io("lock", e))?;
        let mut trust = self.load()?;
        let result = change(&mut trust);
        // A path that is not UTF-8 cannot be written.
        let text = toml::to_string(&trust).map_err(|e| io("write", io::Error::other(e)))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(self.broken(format!("would have more than {MAX_BYTES} bytes")));
        }
        crabtalk_files::write(&self.path, text.as_bytes(), Existing::Replace)
            .map_err(|e| io("write", e))?;
        Ok(result)
    }

    fn broken(&self, reason: String) -> Error {
        Error::Broken {
            file: self.path.clone(),
            reason: format!("{reason}; fix or remove it, nothing was changed"),
        }
    }
}
