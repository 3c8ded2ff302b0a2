//! `mcps import`: servers that other programs have in their configuration.
//!
//! Invariants: nothing that is there already is replaced; nothing is taken that
//! nobody said yes to; every server is accounted for; no value that may be a
//! credential is shown.

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
            .ok_or_else(|| Error::Failed(format!("{}: it has no `mcpServers`", file.display())))?,
        None => look_around(context)?,
    };
    let listed = context.call(ListMcpsMsg {}).await?;
    let known = listed.mcps.into_iter().map(|mcp| mcp.name);
    leave_what_is_there(&mut candidates, known.collect());
    let waits = |one: &&Candidate| matches!(one.fate, Fate::Take(_));
    let count = candidates.iter().filter(waits).count();
    let takes = count > 0 && (yes || agreed(context, &candidates, count).await?);
    let mut rows = Vec::new();
    let mut refused = 0;
    for Candidate { name, fate, file } in candidates {
        let said = match fate {
            Fate::Leave(why) => format!("left out: {why}"),
            Fate::Take(taken) if !takes => outcome("would be taken", &taken),
            Fate::Take(taken) => match set(context, &name, &taken.table).await {
                Ok(()) => outcome("taken", &taken),
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
            "{refused} of {count} could not be taken"
        ))),
        (0, _) | (_, true) => Ok(()),
        (_, false) => Err(Error::Failed(
            "nothing was changed; `--yes` takes what would be taken without asking".to_owned(),
        )),
    }
}

/// What becomes of it, and what of it was left behind.
fn outcome(what: &str, taken: &Taken) -> String {
    match taken.without.is_empty() {
        true => what.to_owned(),
        false => format!("{what}, without its {}", taken.without.join(", ")),
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
    let none = "crabtalk: no file with `mcpServers` was found; name one";
    context.print_table(&["server", "outcome", "file"], rows, none)
}

/// Whether a person at the terminal wants what is offered. Without a terminal
/// nobody does.
async fn agreed(
    context: &mut Context,
    candidates: &[Candidate],
    count: usize,
) -> Result<bool, Error> {
    // Whoever pipes something in is a script, wherever it was started.
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
            Some(format!("{name}: {shown}\n  of {file}\n"))
        }
        Fate::Leave(_) => None,
    });
    let question = match count {
        1 => "Take it? [y]es, [n]o > ".to_owned(),
        _ => format!("Take these {count}? [y]es, [n]o > "),
    };
    let offered: String = offered.collect();
    confirmed(&mut **terminal, &offered, &question).await
}

/// What is there already is not replaced, and of two of a name the first is taken.
fn leave_what_is_there(candidates: &mut [Candidate], mut known: Vec<String>) {
    for one in candidates {
        let Candidate { name, fate, .. } = one;
        if matches!(fate, Fate::Leave(_)) {
            continue;
        }
        if known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            *fate = Fate::Leave("there is one of that name already".to_owned());
        }
        known.push(name.clone());
    }
}

/// What the usual places have. One that cannot be read is told, and stops nothing.
fn look_around(context: &mut Context) -> Result<Vec<Candidate>, Error> {
    let mut candidates = Vec::new();
    let home = context.home.user_home().map(Path::to_owned);
    for path in files::usual_places(home.as_deref(), std::env::current_dir().ok().as_deref()) {
        match files::read(&path) {
            // Most of these files are there for something else.
            Ok(found) => candidates.extend(found.unwrap_or_default()),
            Err(why) => {
                let said = format!("crabtalk: left out: {why}");
                context.note(&said)?;
            }
        }
    }
    Ok(candidates)
}
