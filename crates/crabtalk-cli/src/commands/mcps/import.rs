//! `mcps import`: imports MCP servers from the configuration of other programs.
//!
//! Invariants: existing servers are not replaced; nothing is imported without consent;
//! every server is reported; possible credentials are not shown.

mod files;
mod shown;

use super::{Context, set};
use crate::commands::asks::confirmed;
use crate::error::Error;
use crabtalk_proto::ListMcpsMsg;
use files::{Candidate, Fate, Taken};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

pub(super) async fn run(
    context: &mut Context,
    file: Option<&Path>,
    yes: bool,
) -> Result<(), Error> {
    let mut candidates = match file {
        Some(file) => files::read(file)?
            .ok_or_else(|| Error::Failed(format!("{}: no `mcpServers` found", file.display())))?,
        None => look_around(context)?,
    };
    let listed = context.call(ListMcpsMsg {}).await?;
    let known = listed.mcps.into_iter().map(|mcp| mcp.name);
    skip_existing(&mut candidates, known.collect());
    let waits = |one: &&Candidate| matches!(one.fate, Fate::Take(_));
    let count = candidates.iter().filter(waits).count();
    let takes = count > 0 && (yes || agreed(context, &candidates, count).await?);
    let mut rows = Vec::new();
    let mut refused = 0;
    for Candidate { name, fate, file } in candidates {
        let said = match fate {
            Fate::Leave(why) => format!("skipped: {why}"),
            Fate::Take(taken) if !takes => outcome("not imported", &taken),
            Fate::Take(taken) => match set(context, &name, &taken.table).await {
                Ok(()) => outcome("imported", &taken),
                Err(error) => {
                    refused += 1;
                    format!("refused: {error}")
                }
            },
        };
        rows.push((name, said, file));
    }
    report(context, rows)?;
    match (count, takes) {
        (_, true) if refused > 0 => Err(Error::Failed(format!(
            "{refused} of {count} servers were refused"
        ))),
        (0, _) | (_, true) => Ok(()),
        (_, false) => Err(Error::Failed(
            "nothing was imported; `--yes` imports without asking".to_owned(),
        )),
    }
}

/// Describes the outcome, with the keys that were not imported.
fn outcome(what: &str, taken: &Taken) -> String {
    match taken.without.is_empty() {
        true => what.to_owned(),
        false => format!("{what} without {}", taken.without.join(", ")),
    }
}

fn report(context: &mut Context, rows: Vec<(String, String, PathBuf)>) -> Result<(), Error> {
    let objects = rows.iter().map(
        |(name, said, file)| json!({"name": name, "outcome": said, "file": file.to_string_lossy()}),
    );
    if context.for_scripts(objects)? {
        return Ok(());
    }
    let rows = rows
        .into_iter()
        .map(|(name, said, file)| vec![name, said, file.display().to_string()]);
    let none = "crabtalk: no file with `mcpServers` found; name one";
    context.print_table(&["server", "outcome", "file"], rows, none)
}

/// Asks for consent at the terminal; without a terminal the answer is no.
async fn agreed(
    context: &mut Context,
    candidates: &[Candidate],
    count: usize,
) -> Result<bool, Error> {
    // A script provides the input of a pipe.
    if context.global.json || !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    let Some(terminal) = context.console.terminal.as_mut() else {
        return Ok(false);
    };
    let offered = candidates.iter().filter_map(|one| match &one.fate {
        Fate::Take(taken) => {
            let (name, file) = (&one.name, one.file.display());
            let shown = shown::table(&taken.table);
            Some(format!("{name}: {shown}\n  from {file}\n"))
        }
        Fate::Leave(_) => None,
    });
    let question = match count {
        1 => "Import this server? [y]es, [n]o > ".to_owned(),
        _ => format!("Import these {count} servers? [y]es, [n]o > "),
    };
    let offered: String = offered.collect();
    confirmed(&mut **terminal, &offered, &question).await
}

/// Skips servers whose name exists, and later ones of the same name.
fn skip_existing(candidates: &mut [Candidate], mut known: Vec<String>) {
    for one in candidates {
        let Candidate { name, fate, .. } = one;
        if matches!(fate, Fate::Leave(_)) {
            continue;
        }
        if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            *fate = Fate::Leave("the name exists already".to_owned());
        }
        known.push(name.clone());
    }
}

/// Reads the usual files; reports unreadable ones.
fn look_around(context: &mut Context) -> Result<Vec<Candidate>, Error> {
    let mut candidates = Vec::new();
    let home = context.home.user_home().map(Path::to_owned);
    for path in files::usual_places(home.as_deref(), std::env::current_dir().ok().as_deref()) {
        match files::read(&path) {
            // Most of these files have no servers.
            Ok(found) => candidates.extend(found.unwrap_or_default()),
            Err(why) => {
                let said = format!("crabtalk: skipped {why}");
                context.note(&said)?;
            }
        }
    }
    Ok(candidates)
}
