//! `audit`: the record of who did what.
//!
//! Invariant: it is read and checked without the daemon, whose word on its own
//! record would prove little; of a daemon elsewhere it is asked for.

use super::Context;
use crate::args::Audit;
use crate::error::Error;
use crabtalk_audit::{AuditEntry, Check, Line, Page};
use crabtalk_proto::{ListAuditMsg, visible};
use serde_json::{Value, json};

pub(super) async fn run(context: &mut Context, command: Audit) -> Result<(), Error> {
    match command {
        Audit::List { limit } => {
            let page = latest(context, limit).await?;
            show(context, &page)
        }
        Audit::Verify => {
            let check = check(context).await?;
            told(context, &check)
        }
        Audit::NewChain => new_chain(context),
    }
}

/// Changes happen again once the record has a beginning that fits. Not of a daemon
/// elsewhere: who may do this may read the files first.
fn new_chain(context: &mut Context) -> Result<(), Error> {
    if !is_here(context) {
        return Err(Error::Failed(
            "run this where the daemon runs, as its user".into(),
        ));
    }
    let folder = context.home.state_dir();
    let problem = match crabtalk_audit::check(&folder) {
        Ok(Check { problem: None, .. }) => {
            return Err(Error::Failed(
                "all entries of the audit fit: nothing was changed".into(),
            ));
        }
        Ok(Check { problem, .. }) => problem.unwrap_or_default(),
        Err(error) => error.to_string(),
    };
    let at = jiff::Timestamp::now().strftime("%FT%TZ").to_string();
    let entry = AuditEntry::new(at, "new-chain", "local").with("problem", problem);
    let aside = crabtalk_audit::begin_anew(&folder, entry).map_err(failed)?;
    let aside = aside.display().to_string();
    let said = format!("crabtalk: a new chain has begun; the earlier files are in {aside}");
    context.done(json!({"before": aside}), &said)
}

fn failed(error: crabtalk_audit::Error) -> Error {
    Error::Failed(error.to_string())
}

fn is_here(context: &Context) -> bool {
    context.known_client().endpoint().is_local()
}

async fn latest(context: &mut Context, limit: u32) -> Result<Page, Error> {
    if is_here(context) {
        let folder = context.home.state_dir();
        return crabtalk_audit::latest(&folder, None, limit as usize).map_err(failed);
    }
    let request = ListAuditMsg {
        limit,
        ..ListAuditMsg::default()
    };
    let page = context.call(request).await?;
    Ok(Page {
        lines: page.lines,
        more: page.more,
    })
}

async fn check(context: &mut Context) -> Result<Check, Error> {
    if is_here(context) {
        return crabtalk_audit::check(&context.home.state_dir()).map_err(failed);
    }
    let request = ListAuditMsg {
        limit: 1,
        verify: true,
        ..ListAuditMsg::default()
    };
    let page = context.call(request).await?;
    Ok(Check {
        lines: page.checked,
        problem: Some(page.problem).filter(|problem| !problem.is_empty()),
    })
}

fn told(context: &mut Context, check: &Check) -> Result<(), Error> {
    match &check.problem {
        Some(problem) => Err(Error::Failed(format!(
            "the audit does not fit after {} entries: {problem}; `crabtalk audit new-chain` moves its \
             files aside and begins a new one",
            check.lines
        ))),
        None => {
            let said = match check.lines {
                1 => "crabtalk: 1 entry, and it fits".to_owned(),
                lines => format!("crabtalk: {lines} entries, and all of them fit"),
            };
            context.done(json!({"entries": check.lines, "fits": true}), &said)
        }
    }
}

fn show(context: &mut Context, page: &Page) -> Result<(), Error> {
    let object = |line: &String| match serde_json::from_str::<Value>(line) {
        Ok(value) => value,
        Err(_) => json!({"broken": line}),
    };
    if context.for_scripts(page.lines.iter().map(object))? {
        return Ok(());
    }
    if page.lines.is_empty() {
        return context.note("nothing was recorded yet");
    }
    for line in &page.lines {
        let text = match serde_json::from_str::<Line>(line) {
            Ok(line) => row(context, &line),
            Err(_) => format!("(no entry) {}", visible(line)),
        };
        context.line(&text)?;
    }
    if page.more {
        let note = "older ones: `crabtalk audit list -n NUMBER`";
        context.note(note)?;
    }
    Ok(())
}

/// An entry on one line. What was shown is in the file, and in --json, whole.
fn row(context: &Context, line: &Line) -> String {
    let when = context.when(&line.entry.at);
    let mut text = format!("{}  {when}  {}", line.n, visible(&line.entry.what));
    for (before, value) in [("by", &line.entry.by), ("from", &line.entry.from)] {
        if !value.is_empty() {
            text.push_str(&format!("  {before} {}", visible(value)));
        }
    }
    for (key, value) in &line.entry.about {
        let value = match value.as_str() {
            Some(value) => crate::text::summary(value),
            None => value.to_string(),
        };
        text.push_str(&format!("  {key}={}", visible(&value)));
    }
    text
}
