//! `diff` and `undo`: what runs changed among files, and putting it back.

use super::Context;
use crate::args::Undo;
use crate::error::Error;
use crate::json;
use crabtalk_proto::{Client, FileChange, ListChangesMsg, RunChanges, UndoMsg, UndoReport};

pub(super) async fn diff(context: &mut Context, run: Option<u64>) -> Result<(), Error> {
    let request = ListChangesMsg {
        agent: context.agent(),
        sender: context.sender(),
        run,
        limit: 1,
        diffs: true,
    };
    let found = context.connection().await?.list_changes(request).await?;
    let screen = &mut context.console.screen;
    if context.global.json {
        for run in &found.runs {
            screen.json(&json::of(run))?;
        }
        return Ok(());
    }
    let Some(run) = found.runs.first() else {
        return Ok(screen.note("no run changed files here, as far as is known")?);
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
    let report = context.connection().await?.undo(request).await?;
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
        true if report.done => Err(Error::Failed(format!("{left} files stayed as they are"))),
        true => Err(Error::Failed(
            "nothing was done; --partly puts back the others".to_owned(),
        )),
        false => Ok(()),
    }
}

/// What a run is, in a line.
pub(crate) fn headline(run: &RunChanges) -> String {
    let files = match run.files.len() {
        0 => "no files that could be put back".to_owned(),
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    match run.undone {
        true => format!("run {} was put back", run.run),
        false => format!("run {} changed {files}", run.run),
    }
}

/// What became of a file, in a line.
pub(crate) fn about(file: &FileChange) -> String {
    match file.problem.as_str() {
        "" => format!("{} {}", file.kind, file.path),
        problem => format!("{} {} ({problem})", file.kind, file.path),
    }
}

/// Files that were not put back.
pub(crate) fn stayed(report: &UndoReport) -> usize {
    let files = report.changes.iter().flat_map(|changes| &changes.files);
    files.filter(|file| !file.problem.is_empty()).count()
}

/// What was done, or would be, in lines.
pub(crate) fn told(report: &UndoReport, dry_run: bool) -> Vec<String> {
    let Some(changes) = &report.changes else {
        return Vec::new();
    };
    let left = stayed(report);
    let first = match (report.done, dry_run, left) {
        (true, _, 0) => format!("run {} is put back:", changes.run),
        (true, _, _) => format!("run {} is put back in part:", changes.run),
        (false, true, 0) => format!("run {} would be put back:", changes.run),
        (false, ..) => format!(
            "run {} cannot be put back, since of {} files {left} cannot:",
            changes.run,
            changes.files.len()
        ),
    };
    let file = |file: &FileChange| {
        let would = if report.done { "" } else { "would be " };
        let what = match (file.problem.as_str(), file.kind.as_str()) {
            ("", "created") => format!("{would}removed"),
            ("", _) => format!("{would}put back"),
            (problem, _) => format!("stays: {problem}"),
        };
        format!("  {}: {what}", file.path)
    };
    std::iter::once(first)
        .chain(changes.files.iter().map(file))
        .collect()
}
