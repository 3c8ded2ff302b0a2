//! The steps that install or remove a service.

use anyhow::{Context, bail};
use std::fmt;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Steps that can be shown before they are executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan(pub(super) Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Creates a private folder.
    Folder(PathBuf),
    Write(PathBuf, Vec<u8>),
    /// Removes a file, if it exists.
    Remove(PathBuf),
    /// Runs a command that must succeed.
    Run(Vec<String>),
    /// Runs a command that may fail, since there may be nothing to do.
    Try(Vec<String>),
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Folder(path) => writeln!(f, "# create the folder {}", path.display())?,
                Step::Write(path, contents) => {
                    writeln!(f, "# write {}", path.display())?;
                    writeln!(f, "{}", shown(contents).trim_end())?;
                }
                Step::Remove(path) => writeln!(f, "# remove {}", path.display())?,
                Step::Run(command) | Step::Try(command) => {
                    writeln!(f, "# run {}", command.join(" "))?;
                }
            }
        }
        Ok(())
    }
}

/// The text of a file in UTF-8, or in UTF-16 with a byte order mark.
fn shown(contents: &[u8]) -> String {
    match contents.strip_prefix(&[0xff, 0xfe]) {
        Some(wide) => {
            let units = wide
                .as_chunks()
                .0
                .iter()
                .map(|pair| u16::from_le_bytes(*pair));
            char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        None => String::from_utf8_lossy(contents).into_owned(),
    }
}

impl Plan {
    /// Executes and prints the steps, up to the first that fails.
    pub fn carry_out(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        for step in &self.0 {
            match step {
                Step::Folder(path) => make(path)?,
                Step::Write(path, contents) => {
                    write_whole(path, contents)?;
                    writeln!(out, "wrote {}", path.display())?;
                }
                Step::Remove(path) => match std::fs::remove_file(path) {
                    Ok(()) => writeln!(out, "removed {}", path.display())?,
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => {
                        return Err(e).with_context(|| format!("cannot remove {}", path.display()));
                    }
                },
                Step::Run(command) => run(command)?,
                Step::Try(command) => {
                    if let Err(e) = run(command) {
                        tracing::debug!(error = %e, "nothing to do");
                    }
                }
            }
        }
        Ok(())
    }
}

fn make(folder: &Path) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    let made = crate::system::private(builder.recursive(true)).create(folder);
    made.with_context(|| format!("cannot create {}", folder.display()))
}

fn write_whole(path: &Path, contents: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    make(folder)?;
    let context = || format!("cannot write {}", path.display());
    let mut file = tempfile::Builder::new()
        .prefix(".tmp")
        .tempfile_in(folder)
        .with_context(context)?;
    file.write_all(contents).with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(())
}

fn run(command: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().context("the command is empty")?;
    let output = match Command::new(program).args(arguments).output() {
        Ok(output) => output,
        Err(e) if e.kind() == ErrorKind::NotFound => bail!(
            "`{program}` is not installed, so services cannot be managed; run the program with \
             `serve` under this machine's service manager"
        ),
        Err(e) => return Err(e).with_context(|| format!("cannot run `{program}`")),
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("`{}` failed: {}", command.join(" "), said.trim())
}
