//! `crabtalk-search`, and the component.

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use crabtalk_component::{Action, Home, run_action};
use crabtalk_search::{Search, Server, Settings};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Finds words in folders that you name.
#[derive(Debug, Parser)]
#[command(name = "crabtalk-search", version, color = clap::ColorChoice::Never, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Adds a folder and indexes it.
    Add {
        /// The folder.
        folder: PathBuf,
    },
    /// Lists the folders, with the number of files in each.
    List,
    /// Removes a folder.
    Rm {
        /// The folder.
        folder: PathBuf,
    },
    /// Finds words; "words in quotes" are a phrase.
    Search {
        /// The words.
        #[arg(required = true)]
        words: Vec<String>,
        /// Maximum number of hits.
        #[arg(short = 'n', long, default_value_t = 10)]
        limit: usize,
        /// Prints a JSON object for each hit.
        #[arg(long)]
        json: bool,
    },
    /// Shows lines of a file.
    Open {
        /// The file.
        file: PathBuf,
        /// The first line.
        #[arg(short, long, default_value_t = 1)]
        line: usize,
        /// Number of lines.
        #[arg(short = 'n', long, default_value_t = 40)]
        lines: usize,
    },
    /// Updates the whole index.
    Update,
    #[command(flatten)]
    Component(Action),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Component(action) = cli.command {
        return run_action(Server::new(), action);
    }
    match run(cli.command) {
        Ok(code) => code,
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "crabtalk-search: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    let home = Home::of_environment()?;
    let search = Search::of_home(home.clone());
    let mut out = std::io::stdout().lock();
    match command {
        Command::Add { folder } => {
            let folder = named(&folder, &search)?;
            home.make(&home.path().join("config"))?;
            if !Settings::change(&search.settings_file(), &folder, true)? {
                writeln!(out, "{} was added already", folder.display())?;
            }
            update(&search, &mut out)?;
        }
        Command::Rm { folder } => {
            // A deleted folder has no canonical path and is removed by name.
            let folder = folder
                .canonicalize()
                .or_else(|_| std::path::absolute(&folder))?;
            if !Settings::change(&search.settings_file(), &folder, false)? {
                bail!(
                    "{} is not a searched folder; see `crabtalk-search list`",
                    folder.display()
                );
            }
            update(&search, &mut out)?;
        }
        Command::List => {
            let index = search.index()?;
            for folder in search.settings()?.folders {
                let files = index.files_in(&folder)?;
                writeln!(out, "{}\t{files} files", folder.display())?;
            }
        }
        Command::Search { words, limit, json } => {
            let settings = search.settings()?;
            if settings.folders.is_empty() {
                bail!("there is no folder to search; add one with `crabtalk-search add FOLDER`");
            }
            let mut index = search.index()?;
            report(&index.update(&settings, &search.except(), None)?);
            let hits = index.search(&settings, &words.join(" "), limit)?;
            for hit in &hits {
                if json {
                    writeln!(out, "{}", serde_json::to_string(hit)?)?;
                } else {
                    writeln!(out, "{}:{}", hit.path.display(), hit.line)?;
                    for line in hit.text.lines() {
                        writeln!(out, "    {}", shown(line))?;
                    }
                }
            }
            // Same exit status as grep.
            return Ok(ExitCode::from(u8::from(hits.is_empty())));
        }
        Command::Open { file, line, lines } => {
            let settings = search.settings()?;
            let file = std::path::absolute(&file)?;
            let found = search.index()?.show(&settings, &file, line, lines)?;
            for line in found.lines {
                writeln!(out, "{}", shown(&line))?;
            }
        }
        Command::Update => update(&search, &mut out)?,
        Command::Component(_) => unreachable!("it was done before"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The canonical path of a folder.
fn named(folder: &Path, search: &Search) -> anyhow::Result<PathBuf> {
    let failed = || format!("cannot search {}", folder.display());
    let path = folder.canonicalize().with_context(failed)?;
    if !path.is_dir() {
        bail!("{} is not a folder", path.display());
    }
    if path.parent().is_none() {
        bail!("cannot search the root folder; name the folders to search");
    }
    if path.starts_with(search.except()) {
        bail!("cannot search the home of CrabTalk");
    }
    Ok(path)
}

fn update(search: &Search, out: &mut impl Write) -> anyhow::Result<()> {
    let mut index = search.index()?;
    let updated = index.update(&search.settings()?, &search.except(), None)?;
    report(&updated);
    writeln!(
        out,
        "{} files read, {} removed, {} in total",
        updated.read,
        updated.removed,
        index.files()?
    )?;
    Ok(())
}

fn report(updated: &crabtalk_search::Updated) {
    for failed in &updated.failed {
        let _ = writeln!(std::io::stderr(), "crabtalk-search: cannot read {failed}");
    }
}

/// The text of a file without control characters.
fn shown(line: &str) -> String {
    line.chars()
        .filter(|c| !c.is_control() || *c == '\t')
        .collect()
}
