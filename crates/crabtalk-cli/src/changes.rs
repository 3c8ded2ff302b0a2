//! Descriptions of file changes.

use crabtalk_proto::{FileChange, RunChanges, UndoReport};

/// Describes a run in one line.
pub(crate) fn headline(run: &RunChanges) -> String {
    let files = match run.files.len() {
        0 => "no files to revert".to_owned(),
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    };
    match run.undone {
        true => format!("run {} was reverted", run.run),
        false => format!("run {} changed {files}", run.run),
    }
}

/// Describes a changed file in one line.
pub(crate) fn about(file: &FileChange) -> String {
    match file.problem.as_str() {
        "" => format!("{} {}", file.kind, file.path),
        problem => format!("{} {} ({problem})", file.kind, file.path),
    }
}

/// Counts the files that were not reverted.
pub(crate) fn stayed(report: &UndoReport) -> usize {
    let files = report.changes.iter().flat_map(|changes| &changes.files);
    files.filter(|file| !file.problem.is_empty()).count()
}

/// Describes an undo report, one line per file.
pub(crate) fn told(report: &UndoReport, dry_run: bool) -> Vec<String> {
    let Some(changes) = &report.changes else {
        return Vec::new();
    };
    let left = stayed(report);
    let first = match (report.done, dry_run, left) {
        (true, _, 0) => format!("run {} reverted:", changes.run),
        (true, _, _) => format!("run {} partly reverted:", changes.run),
        (false, true, 0) => format!("run {} would be reverted:", changes.run),
        (false, ..) => format!(
            "run {} not reverted: {left} of its {} files cannot be reverted:",
            changes.run,
            changes.files.len()
        ),
    };
    let file = |file: &FileChange| {
        let would = if report.done { "" } else { "would be " };
        let what = match (file.problem.as_str(), file.kind.as_str()) {
            ("", "created") => format!("{would}removed"),
            ("", _) => format!("{would}restored"),
            (problem, _) => format!("kept: {problem}"),
        };
        format!("  {}: {what}", file.path)
    };
    std::iter::once(first)
        .chain(changes.files.iter().map(file))
        .collect()
}
