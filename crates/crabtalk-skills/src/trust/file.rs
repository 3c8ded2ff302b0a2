//! `state/trust.toml`, read and changed.

use super::content_hash;
use crate::Error;
use crate::disk::canonical_folder;
use crate::grants::{Grants, grants};
use crate::system;
use crabtalk_files::{Error as FileError, Existing};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};

/// Largest trust file: thousands of entries.
const MAX_BYTES: u64 = 1024 * 1024;

/// Entries of each kind, so that the file stays below its size.
const MAX_ENTRIES: usize = 2_000;

/// A folder that an owner has trusted, for its project instructions (MEM-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedFolder {
    /// The folder, canonical.
    pub path: PathBuf,
    /// The time of trust (RFC 3339).
    pub at: String,
    /// The sender who trusted it.
    pub by: String,
}

/// A skill that an owner trusted, by content (SKILL-2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedSkill {
    /// Its folder, canonical.
    pub path: PathBuf,
    /// The hash of its content.
    pub sha256: String,
    /// The time of trust (RFC 3339).
    pub at: String,
    /// The sender who trusted it.
    pub by: String,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trust {
    /// `[[folder]]`
    pub folders: Vec<TrustedFolder>,
    /// `[[skill]]`
    pub skills: Vec<TrustedSkill>,
}

/// A skill that may be trusted, and what that would mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Its folder, canonical.
    pub path: PathBuf,
    /// The hash of its content.
    pub sha256: String,
    /// What its runs may then do without asking, if it lies in `config/skills`.
    pub grants: Grants,
}

impl Offer {
    /// Looks at the skill in a folder.
    pub fn of(folder: &Path) -> Result<Self, Error> {
        let path = canonical_folder(folder)?;
        let before = content_hash(&path)?;
        let skill = crate::load(&path, crate::SkillSource::Home)?;
        let sha256 = content_hash(&path)?;
        if sha256 != before {
            let error = io::Error::other("it changes while it is checked");
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
    /// Whether exactly this folder is trusted; those below it are not.
    pub fn trusts_folder(&self, folder: &Path) -> bool {
        folder
            .canonicalize()
            .is_ok_and(|real| self.folders.iter().any(|f| f.path == real))
    }

    /// Whether this folder or one above it is trusted: trust in a
    /// folder speaks for what is in it.
    pub fn reaches(&self, folder: &Path) -> bool {
        folder.ancestors().any(|above| self.trusts_folder(above))
    }

    /// The entry of the skill in a folder, for any content.
    pub fn skill(&self, folder: &Path) -> Option<&TrustedSkill> {
        let real = folder.canonicalize().ok()?;
        self.skills.iter().find(|skill| skill.path == real)
    }
}

/// The file. Changes from several processes come one after the other.
#[derive(Debug, Clone)]
pub struct TrustFile {
    path: PathBuf,
}

impl TrustFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file at this path; it need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The present content.
    pub fn load(&self) -> Result<Trust, Error> {
        self.trust_of(&self.document()?)
    }

    /// Trusts a folder; an entry it had is replaced.
    pub fn add_folder(&self, folder: &Path, at: &str, by: &str) -> Result<TrustedFolder, Error> {
        let path = canonical_folder(folder)?;
        let mut table = Table::new();
        table["path"] = value(text_of(&path)?);
        table["at"] = value(at);
        table["by"] = value(by);
        self.change(|file, document| {
            remove(file.tables(document, "folder")?, &path);
            file.push(document, "folder", table)
        })?;
        Ok(TrustedFolder {
            path,
            at: at.to_owned(),
            by: by.to_owned(),
        })
    }

    /// Trusts a skill by its checked content, replacing an earlier entry.
    pub fn add_skill(&self, offer: Offer, at: &str, by: &str) -> Result<TrustedSkill, Error> {
        let Offer { path, sha256, .. } = offer;
        let mut table = Table::new();
        table["path"] = value(text_of(&path)?);
        table["sha256"] = value(&sha256);
        table["at"] = value(at);
        table["by"] = value(by);
        self.change(|file, document| {
            remove(file.tables(document, "skill")?, &path);
            file.push(document, "skill", table)
        })?;
        Ok(TrustedSkill {
            path,
            sha256,
            at: at.to_owned(),
            by: by.to_owned(),
        })
    }

    /// Ends the trust in a folder; whether there was any. The folder need not
    /// be there any more.
    pub fn remove_folder(&self, folder: &Path) -> Result<bool, Error> {
        self.remove("folder", folder)
    }

    /// Ends the trust in a skill; whether there was any. Its folder need not be
    /// there any more.
    pub fn remove_skill(&self, folder: &Path) -> Result<bool, Error> {
        self.remove("skill", folder)
    }

    fn remove(&self, kind: &'static str, folder: &Path) -> Result<bool, Error> {
        let path = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        self.change(|file, document| Ok(remove(file.tables(document, kind)?, &path)))
    }

    fn trust_of(&self, document: &DocumentMut) -> Result<Trust, Error> {
        let mut trust = Trust::default();
        for table in self.entries(document, "folder")? {
            trust.folders.push(TrustedFolder {
                path: self.field(table, "folder", "path")?.into(),
                at: self.field(table, "folder", "at")?,
                by: self.field(table, "folder", "by")?,
            });
        }
        for table in self.entries(document, "skill")? {
            trust.skills.push(TrustedSkill {
                path: self.field(table, "skill", "path")?.into(),
                sha256: self.field(table, "skill", "sha256")?,
                at: self.field(table, "skill", "at")?,
                by: self.field(table, "skill", "by")?,
            });
        }
        Ok(trust)
    }

    fn entries<'a>(&self, document: &'a DocumentMut, kind: &str) -> Result<Vec<&'a Table>, Error> {
        match document.get(kind) {
            None => Ok(Vec::new()),
            Some(item) => item
                .as_array_of_tables()
                .map(|tables| tables.iter().collect())
                .ok_or_else(|| self.broken(format!("has a `{kind}` that is not `[[{kind}]]`"))),
        }
    }

    fn field(&self, table: &Table, kind: &str, key: &str) -> Result<String, Error> {
        let item = table.get(key);
        let text = item.and_then(Item::as_str).map(str::to_owned);
        let text = text.or_else(|| item.and_then(Item::as_datetime).map(ToString::to_string));
        text.ok_or_else(|| self.broken(format!("has a `[[{kind}]]` without a text `{key}`")))
    }

    fn tables<'a>(
        &self,
        document: &'a mut DocumentMut,
        kind: &str,
    ) -> Result<&'a mut ArrayOfTables, Error> {
        document
            .entry(kind)
            .or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()))
            .as_array_of_tables_mut()
            .ok_or_else(|| self.broken(format!("has a `{kind}` that is not `[[{kind}]]`")))
    }

    fn push(&self, document: &mut DocumentMut, kind: &str, table: Table) -> Result<(), Error> {
        let tables = self.tables(document, kind)?;
        if tables.len() >= MAX_ENTRIES {
            return Err(self.broken(format!(
                "has {MAX_ENTRIES} `[[{kind}]]`, which is the limit"
            )));
        }
        tables.push(table);
        Ok(())
    }

    fn document(&self) -> Result<DocumentMut, Error> {
        let read = crabtalk_files::if_there(crabtalk_files::read_text(&self.path, MAX_BYTES));
        let text = match read {
            Ok(text) => text.unwrap_or_default(),
            Err(FileError::Io(e)) => return Err(Error::io("read", &self.path, e)),
            Err(error) => return Err(self.broken(error.to_string())),
        };
        text.parse::<DocumentMut>()
            .map_err(|e| self.broken(format!("is not valid TOML: {}", e.message())))
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&Self, &mut DocumentMut) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            Some(_) | None => Path::new("."),
        };
        let io = |action, e| Error::io(action, &self.path, e);
        crabtalk_files::create_folder(folder).map_err(|e| io("write", e))?;
        let lock =
            system::open_lock(&self.path.with_extension("lock")).map_err(|e| io("lock", e))?;
        // Held for one small write; closing the file ends it.
        lock.lock().map_err(|e| io("lock", e))?;
        let mut document = self.document()?;
        // A file that is only half understood is not changed either.
        self.trust_of(&document)?;
        let result = change(self, &mut document)?;
        let text = document.to_string();
        crabtalk_files::write(&self.path, text.as_bytes(), Existing::Replace)
            .map_err(|e| io("write", e))?;
        Ok(result)
    }

    fn broken(&self, reason: String) -> Error {
        Error::Broken {
            file: self.path.clone(),
            reason: format!("{reason}; mend it or remove it, nothing was changed"),
        }
    }
}

fn remove(tables: &mut ArrayOfTables, path: &Path) -> bool {
    let before = tables.len();
    tables.retain(|table| table.get("path").and_then(Item::as_str).map(Path::new) != Some(path));
    tables.len() != before
}

fn text_of(path: &Path) -> Result<&str, Error> {
    path.to_str().ok_or_else(|| {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8");
        Error::io("trust", path, error)
    })
}
