//! `diff` and `undo`: show and revert file changes of runs.

use super::Context;
use crate::args::Undo;
use crate::changes::{about, headline, stayed, told};
use crate::error::Error;
use crate::json;
use crate::text::counted;
use crabtalk_proto::{ListChangesMsg, UndoMsg};

pub(super) async fn diff(context: &mut Context, run: Option<u64>) -> Result<(), Error> {
    let request = ListChangesMsg {
        agent: context.agent(),
        sender: context.sender(),
        run,
        limit: 1,
        diffs: true,
    };
    let found = context.call(request).await?;
    if context.for_scripts(&found.runs)? {
        return Ok(());
    }
    let screen = &mut context.console.screen;
    let Some(run) = found.runs.first() else {
        return Ok(screen.note("no recorded changes in this folder")?);
    };
    screen.line(&headline(run))?;
    for file in &run.files {
        screen.line("")?;
        screen.line(&about(file))?;
        for line in file.diff.lines() {
            screen.line(line)?;
        }
    }
    for note in &run.notes {
        screen.note(note)?;
    }
    Ok(())
}

pub(super) async fn undo(context: &mut Context, args: Undo) -> Result<(), Error> {
    let request = UndoMsg {
        agent: context.agent(),
        sender: context.sender(),
        run: args.run,
        dry_run: args.dry_run,
        partly: args.partly,
    };
    let report = context.call(request).await?;
    let screen = &mut context.console.screen;
    if context.global.json {
        screen.json(&json::of(&report))?;
    } else {
        for line in told(&report, args.dry_run) {
            screen.line(&line)?;
        }
        for note in report.changes.iter().flat_map(|changes| &changes.notes) {
            screen.note(note)?;
        }
    }
    let left = stayed(&report);
    match left > 0 && !args.dry_run {
        true if report.done => Err(Error::Failed(format!(
            "{} not reverted",
            counted(left, "file")
        ))),
        true => Err(Error::Failed(
            "nothing was reverted; --partly reverts the other files".to_owned(),
        )),
        false => Ok(()),
    }
}
