//! The project of a folder (CONV-11).
//!
//! In a git work tree the sender is `user/NAME`, which keeps conversations of folders
//! apart. NAME is the folder's name, with a number if another folder has it;
//! `state/projects.toml` maps folders to names.
//!
//! Invariants: names are unique and never change; git is not run, since a repository
//! configures what git executes.

use crate::error::Error;
use crate::system;
use crabtalk_config::{Home, write_atomic};
use crabtalk_files as files;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The default sender.
pub(crate) const PERSON: &str = "user";

/// Maximum size of the list.
const MAX_BYTES: u64 = 1 << 20;

/// Maximum size of a `.git` file.
const MAX_LINK_BYTES: u64 = 4096;

/// Maximum characters of a project name; senders have a separate limit.
const MAX_NAME: usize = 100;

const HEAD: &str = "# The folder of each project. crabtalk writes this file; you may change names
# and remove entries.
";

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Project {
    name: String,
    path: PathBuf,
    /// The time when it was added.
    #[serde(default)]
    at: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    #[serde(default)]
    project: Vec<Project>,
}

/// The list of projects.
#[derive(Debug)]
pub(crate) struct Projects {
    file: PathBuf,
    list: List,
}

impl Projects {
    /// Reads the list; a missing file is an empty list.
    ///
    /// # Errors
    /// The file is unreadable or invalid.
    pub(crate) fn read(home: &Home) -> Result<Self, Error> {
        let file = home.state_dir().join("projects.toml");
        let text = files::if_there(files::read_text(&file, MAX_BYTES));
        let text = text.map_err(|e| broken(&file, &e))?.unwrap_or_default();
        let list = toml::from_str(&text).map_err(|e| broken(&file, &e))?;
        Ok(Self { file, list })
    }

    /// The folder of a project's sender, or of one of its topics.
    pub(crate) fn folder_of(&self, sender: &str) -> Option<&Path> {
        let (sender, _) = crate::topic::split(sender);
        let name = sender.strip_prefix(PERSON)?.strip_prefix('/')?;
        let known = self.list.project.iter().find(|known| known.name == name)?;
        Some(&known.path)
    }

    fn name_of(&self, folder: &Path) -> Option<&str> {
        let known = self.list.project.iter().find(|known| known.path == folder);
        known.map(|known| known.name.as_str())
    }

    /// A name for a folder that no other folder has.
    fn free_name(&self, folder: &Path) -> String {
        let name = plain_name(folder);
        // Names are unique ignoring case.
        let is_free = |name: &String| {
            let mut known = self.list.project.iter();
            known.all(|known| known.name.to_lowercase() != name.to_lowercase())
        };
        let numbered = (2_u64..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        names.find(is_free).unwrap_or(name)
    }

    fn write(&self) -> Result<(), Error> {
        let mut text = HEAD.to_owned();
        let list = toml::to_string(&self.list).map_err(|e| broken(&self.file, &e))?;
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{list}");
        Ok(write_atomic(&self.file, &text)?)
    }
}

fn broken(file: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!(
        "{}: {why}: fix or remove it; --project NAME and --project '' work without it",
        file.display()
    ))
}

/// The sender for a folder; `None` outside a work tree. With `keep`, a new project is
/// saved.
///
/// # Errors
/// The list is unreadable or cannot be written.
pub(crate) fn sender_in(home: &Home, folder: &Path, keep: bool) -> Result<Option<String>, Error> {
    let Some(root) = work_tree(folder, home.user_home()) else {
        return Ok(None);
    };
    let projects = Projects::read(home)?;
    let name = match projects.name_of(&root) {
        Some(name) => name.to_owned(),
        None if keep => remember(home, &root)?,
        None => projects.free_name(&root),
    };
    Ok(Some(sender_of(&name)))
}

/// The command line's settings in the configuration.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wishes {
    project: Option<String>,
    pub(crate) theme: Option<String>,
    pub(crate) keys: Option<String>,
}

/// Reads the command line's settings; the daemon reports a broken file.
pub(crate) fn wishes(home: &Home) -> Wishes {
    #[derive(Deserialize)]
    struct Found {
        cli: Option<Wishes>,
    }
    let Ok(text) = files::read_text(&home.config_file(), MAX_BYTES) else {
        return Wishes::default();
    };
    let found = toml::from_str::<Found>(&text).ok();
    found.and_then(|found| found.cli).unwrap_or_default()
}

/// Whether projects are disabled.
pub(crate) fn is_off(home: &Home) -> bool {
    wishes(home).project.is_some_and(|project| project == "off")
}

/// The sender of a project by name.
pub(crate) fn sender_of(name: &str) -> String {
    format!("{PERSON}/{name}")
}

/// Checks a project name from the command line.
///
/// # Errors
/// The name is not a valid segment of a sender.
pub(crate) fn check(name: &str) -> Result<(), Error> {
    if name.contains('/') || name == crate::topic::NO_PROJECT || name.chars().any(char::is_control)
    {
        return Err(Error::Usage(format!(
            "--project {name:?}: expected a name without slashes, as `crabtalk conversations` shows after user/"
        )));
    }
    Ok(())
}

/// Assigns a name to a folder. A lock serializes concurrent commands.
fn remember(home: &Home, folder: &Path) -> Result<String, Error> {
    let home = home.create()?;
    let state = home.state_dir();
    let _lock = system::lock_folder(&state).map_err(|e| Error::io(state.display(), &e))?;
    let mut projects = Projects::read(&home)?;
    if let Some(name) = projects.name_of(folder) {
        return Ok(name.to_owned());
    }
    let name = projects.free_name(folder);
    projects.list.project.push(Project {
        name: name.clone(),
        path: folder.to_owned(),
        at: jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
    });
    projects.write()?;
    Ok(name)
}

/// The top folder of a folder's git work tree. The user's home does not count, since
/// a dotfile repository would make it one project.
fn work_tree(folder: &Path, user_home: Option<&Path>) -> Option<PathBuf> {
    let is_home = |folder: &Path| user_home.is_some_and(|home| home == folder);
    let mut folders = folder.ancestors().filter(|folder| !is_home(folder));
    let root = folders.find(|folder| {
        let git = folder.join(".git");
        // Linked work trees and submodules have a `.git` file.
        git.join("HEAD").is_file()
            || files::read_text(&git, MAX_LINK_BYTES).is_ok_and(|text| text.starts_with("gitdir:"))
    })?;
    Some(root.to_owned())
}

/// Converts a folder's name to one segment of a sender.
fn plain_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replace(|c: char| c.is_control() || c == '/', "-");
    match name.trim() {
        "" | crate::topic::NO_PROJECT => "root".to_owned(),
        name => name.chars().take(MAX_NAME).collect(),
    }
}

#[cfg(test)]
mod tests;
