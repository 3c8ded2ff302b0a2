//! Agent files: YAML frontmatter and the body as system prompt.
//!
//! Invariant: the frontmatter is unchanged, including comments.

mod folder;
mod settings;

pub use folder::{AgentEntry, load_agents};
pub use settings::{AgentSettings, CompactThreshold};

use crate::error::{Diagnostic, Error, Warning};
use crate::file::read_limited;
use crate::tree::{self, Position};
use crabtalk_files::Frontmatter;
use std::path::Path;

/// Largest agent file: a longer prompt exceeds every model's context window.
const MAX_AGENT_BYTES: u64 = 1024 * 1024;

/// Largest frontmatter; real ones have less than a kilobyte.
const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;

/// The position of a file's beginning.
const BEGIN: Position = Position { line: 1, column: 1 };

/// An agent file.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    /// The settings of the frontmatter.
    pub settings: AgentSettings,
    /// The frontmatter as written, without its fences.
    pub frontmatter: String,
    /// The body.
    pub prompt: String,
}

impl AgentFile {
    /// Parses the text of an agent file. Messages name `file`.
    pub fn parse(text: &str, file: &Path) -> Result<(Self, Vec<Warning>), Error> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        check_whole(text, file)?;
        let (frontmatter, prompt) = split(text, file)?;
        check_size(frontmatter, file)?;
        let tree = tree::from_yaml(frontmatter, file, 1)?;
        let (settings, warnings) = AgentSettings::read(&tree, file)?;
        let file = Self {
            settings,
            frontmatter: frontmatter.to_owned(),
            prompt: prompt.trim().to_owned(),
        };
        Ok((file, warnings))
    }

    /// Creates a file from the frontmatter of a protocol message and a prompt.
    pub fn of(frontmatter: &str, prompt: &str) -> Result<(Self, Vec<Warning>), Error> {
        let file = Path::new("config");
        let made = Self {
            settings: AgentSettings::default(),
            frontmatter: frontmatter.trim_matches('\n').to_owned(),
            prompt: prompt.trim().to_owned(),
        };
        let (read, warnings) = Self::parse(&made.to_text(), file)?;
        if read.frontmatter.trim_end() != made.frontmatter.trim_end() || read.prompt != made.prompt
        {
            let message = "a line `---` would end the frontmatter: remove it";
            return Err(Error::Invalid(Diagnostic::of_whole(file, message)));
        }
        Ok((read, warnings))
    }

    /// Reads an agent file; `None` if it does not exist.
    pub fn load(file: &Path) -> Result<Option<(Self, Vec<Warning>)>, Error> {
        match read_limited(file, MAX_AGENT_BYTES)? {
            Some(text) => Self::parse(&text, file).map(Some),
            None => Ok(None),
        }
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let frontmatter = self.frontmatter.trim_end();
        let newline = if frontmatter.is_empty() { "" } else { "\n" };
        format!("---\n{frontmatter}{newline}---\n{}\n", self.prompt.trim())
    }
}

/// Refuses a file that a crash or a full disk truncated. Without its rules an agent could
/// do what its author denied.
fn check_whole(text: &str, file: &Path) -> Result<(), Error> {
    let message = if text.trim().is_empty() {
        "the file is empty: write what the agent is, or remove the file"
    } else if text.contains('\0') {
        "the file contains NUL bytes, perhaps after a crash: write it again, or remove it"
    } else {
        return Ok(());
    };
    Err(Error::Invalid(Diagnostic::of_whole(file, message)))
}

fn check_size(frontmatter: &str, file: &Path) -> Result<(), Error> {
    if frontmatter.len() <= MAX_FRONTMATTER_BYTES {
        return Ok(());
    }
    let message = format!(
        "the frontmatter has {} bytes, the limit is {MAX_FRONTMATTER_BYTES}",
        frontmatter.len()
    );
    Err(Error::Invalid(Diagnostic::new(file, BEGIN, message)))
}

/// Splits a text into frontmatter and body. Without a fence at the beginning, all of it is
/// the body.
fn split<'a>(text: &'a str, file: &Path) -> Result<(&'a str, &'a str), Error> {
    match Frontmatter::of(text) {
        Frontmatter::Missing => Ok(("", text)),
        Frontmatter::Found { front, body } => Ok((front, body)),
        Frontmatter::Unended => {
            let message = "the frontmatter that begins here has no end: close it with a line `---`";
            Err(Error::Invalid(Diagnostic::new(file, BEGIN, message)))
        }
    }
}

#[cfg(test)]
mod tests;
