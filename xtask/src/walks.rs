//! `cargo xtask walks`: the walks of CONTRIBUTING.md, walked; then that of the guide.
//!
//! A block of `diff` changes a copy of the sources, a block of `console` is run there.
//! Invariants: nothing is changed but the copy; the lines around a change are
//! in their file once, or the walk is refused, so that a page that is no
//! longer true fails.

use anyhow::{Context, bail, ensure};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The page, from the root of the workspace.
const PAGE: &str = "CONTRIBUTING.md";

/// Where the copy lies below the target folder. Dependencies are compiled once for
/// it and the sources.
const COPY: &str = "walks";

/// A file and what becomes of it.
#[derive(Debug, PartialEq, Eq)]
struct Change<'a> {
    path: &'a str,
    /// Runs of lines, each with its mark in front.
    hunks: Vec<Vec<&'a str>>,
}

pub(crate) fn walk() -> anyhow::Result<()> {
    let root = root()?;
    let page = fs::read_to_string(root.join(PAGE))?;
    let target = target(&root);
    let copy = target.join(COPY);
    copy_sources(&root, &copy)?;
    for change in changes(&page) {
        let path = copy.join(change.path);
        let text = fs::read_to_string(&path).unwrap_or_default();
        fs::write(&path, changed(&text, &change)?)?;
    }
    cargo(&copy, &target, &["build", "--locked"])?;
    let home = tempfile::tempdir()?;
    let shell = Shell {
        copy: &copy,
        target: &target,
        home: home.path(),
    };
    let walked = commands(&page)
        .into_iter()
        .try_for_each(|(line, shown)| shell.check(line, &shown));
    shell.command("crabtalk daemon stop").output()?;
    walked?;
    // The program lies where that of the sources does.
    fs::remove_dir_all(&copy)?;
    cargo(&root, &target, &["build", "--locked"])?;
    writeln!(std::io::stdout(), "every walk was walked")?;
    Ok(())
}

/// What runs the commands of the page.
struct Shell<'a> {
    copy: &'a Path,
    target: &'a Path,
    home: &'a Path,
}

impl Shell<'_> {
    /// Runs a line and looks for what it prints, in its order.
    fn check(&self, line: &str, shown: &[&str]) -> anyhow::Result<()> {
        writeln!(std::io::stdout(), "$ {line}")?;
        let output = self.command(line).output()?;
        let printed = [output.stderr, output.stdout].concat();
        let printed = String::from_utf8_lossy(&printed);
        for wanted in shown {
            ensure!(
                printed.contains(wanted),
                "`{line}` of {PAGE} does not print {wanted:?}, but:\n{printed}"
            );
        }
        Ok(())
    }

    fn command(&self, line: &str) -> Command {
        let programs = self.target.join("debug");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(programs).chain(std::env::split_paths(&path));
        let mut command = Command::new("sh");
        // Whoever runs it may have a daemon, keys and models of their own.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CRABTALK_") {
                command.env_remove(name);
            }
        }
        command
            .args(["-c", line])
            .current_dir(self.copy)
            .env("PATH", std::env::join_paths(path).unwrap_or_default())
            .env("CARGO_TARGET_DIR", self.target)
            .env("CRABTALK_HOME", self.home)
            .env("CRABTALK_DETECT", "0");
        command
    }
}

/// What blocks of `diff` say, in their order; a file may come again.
fn changes(page: &str) -> Vec<Change<'_>> {
    let mut found: Vec<Change<'_>> = Vec::new();
    for line in blocks(page, "diff").into_iter().flatten() {
        if let Some(path) = line.strip_prefix("+++ ") {
            found.push(Change {
                path,
                hunks: vec![Vec::new()],
            });
        } else if let Some(change) = found.last_mut() {
            match (line, change.hunks.last_mut()) {
                ("@@", _) => change.hunks.push(Vec::new()),
                (line, Some(hunk)) => hunk.push(line),
                (_, None) => {}
            }
        }
    }
    found
}

/// Each command of the blocks of `console`, with what is shown behind it.
fn commands(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in blocks(page, "console").into_iter().flatten() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command, Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => {}
        }
    }
    found
}

/// The lines of each block of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("```") == Some(language) {
            found.push(lines.by_ref().take_while(|line| *line != "```").collect());
        }
    }
    found
}

/// A file's text after a change. Lines are compared without their indentation,
/// so that the page may be narrower than the code.
fn changed(text: &str, change: &Change<'_>) -> anyhow::Result<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for hunk in &change.hunks {
        let before: Vec<&str> = hunk
            .iter()
            .filter(|line| !line.starts_with('+'))
            .map(|line| line.get(1..).unwrap_or_default().trim())
            .collect();
        let mut at = place(&lines, &before, change.path)?;
        for line in hunk {
            match line.split_at_checked(1) {
                Some(("+", added)) => lines.insert(at, added.to_owned()),
                Some(("-", _)) => {
                    lines.remove(at);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// Where these lines begin, which are there once; no lines are at the end.
fn place(lines: &[String], before: &[&str], path: &str) -> anyhow::Result<usize> {
    if before.is_empty() {
        return Ok(lines.len());
    }
    let windows = lines.windows(before.len()).enumerate();
    let same = |window: &[String]| {
        window
            .iter()
            .map(|line| line.trim())
            .eq(before.iter().copied())
    };
    let found: Vec<usize> = windows
        .filter(|(_, window)| same(window))
        .map(|(at, _)| at)
        .collect();
    let [at] = found[..] else {
        let times = found.len();
        bail!("{PAGE} changes {path} at these lines, which are there {times} times: {before:#?}");
    };
    Ok(at)
}

/// Copies what compiling and the tests of the walks need.
fn copy_sources(root: &Path, copy: &Path) -> anyhow::Result<()> {
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    for top in ["Cargo.toml", "Cargo.lock", "crates", "xtask", "docs"] {
        copy_all(&root.join(top), &copy.join(top))?;
    }
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> anyhow::Result<()> {
    if from.is_file() {
        let parent = to.parent().context("every file lies in a folder")?;
        fs::create_dir_all(parent)?;
        fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
        return Ok(());
    }
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        copy_all(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}

fn cargo(folder: &Path, target: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(arguments)
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .status()?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

pub(crate) fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(root.context("xtask lies in the workspace")?.to_owned())
}

pub(crate) fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_the_walks_fits_the_sources() {
        let root = root().unwrap();
        let page = fs::read_to_string(root.join(PAGE)).unwrap();
        let mut texts = std::collections::BTreeMap::new();
        for change in changes(&page) {
            let text = texts
                .remove(change.path)
                .unwrap_or_else(|| fs::read_to_string(root.join(change.path)).unwrap_or_default());
            texts.insert(change.path, changed(&text, &change).unwrap());
        }
        assert!(texts.len() > 10, "{:?}", texts.keys());
        assert!(commands(&page).len() > 4);
    }

    #[test]
    fn lines_are_added_and_removed_where_the_page_says() {
        let text = "a {\n    b\n    c\n}\n";
        for (hunks, after) in [
            (
                &[vec![" b", "+    x"]][..],
                Some("a {\n    b\n    x\n    c\n}\n"),
            ),
            (
                &[vec!["-b", "+    x", " c"]],
                Some("a {\n    x\n    c\n}\n"),
            ),
            (&[vec!["-b"], vec!["-c"]], Some("a {\n}\n")),
            (&[vec!["+end"]], Some("a {\n    b\n    c\n}\nend\n")),
            (&[vec![" absent", "+x"]], None),
        ] {
            let change = Change {
                path: "f",
                hunks: hunks.to_vec(),
            };
            assert_eq!(changed(text, &change).ok().as_deref(), after, "{hunks:?}");
        }
        let twice = Change {
            path: "f",
            hunks: vec![vec![" b", "+x"]],
        };
        let error = changed("b\nb\n", &twice).unwrap_err();
        assert!(error.to_string().contains("there 2 times"), "{error}");
    }
}
