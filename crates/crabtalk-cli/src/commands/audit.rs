//! `audit`: shows and verifies the audit.

use super::Context;
use crate::args::Audit;
use crate::error::Error;
use crabtalk_proto::{AuditPage, ListAuditMsg, NewAuditChainMsg, visible};
use serde_json::{Value, json};

pub(super) async fn run(context: &mut Context, command: Audit) -> Result<(), Error> {
    match command {
        Audit::List { limit } => {
            let request = ListAuditMsg {
                limit,
                ..ListAuditMsg::default()
            };
            let page = context.call(request).await?;
            show(context, &page)
        }
        Audit::Verify => {
            let request = ListAuditMsg {
                limit: 1,
                verify: true,
                ..ListAuditMsg::default()
            };
            let page = context.call(request).await?;
            verified(context, &page)
        }
        Audit::NewChain => {
            context.call(NewAuditChainMsg {}).await?;
            let said = "crabtalk: a new chain has begun; the earlier entries are kept";
            context.done(json!({"begun": true}), said)
        }
    }
}

fn verified(context: &mut Context, page: &AuditPage) -> Result<(), Error> {
    if !page.problem.is_empty() {
        return Err(Error::Failed(format!(
            "the audit chain breaks after {} entries: {}; `crabtalk audit new-chain` keeps the \
             entries and begins a new chain",
            page.checked, page.problem
        )));
    }
    let said = match page.checked {
        1 => "crabtalk: 1 entry verified".to_owned(),
        entries => format!("crabtalk: {entries} entries verified"),
    };
    context.done(json!({"entries": page.checked, "fits": true}), &said)
}

fn show(context: &mut Context, page: &AuditPage) -> Result<(), Error> {
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
        let text = row(context, &object(line));
        context.line(&text)?;
    }
    if page.more {
        let note = "older ones: `crabtalk audit list -n NUMBER`";
        context.note(note)?;
    }
    Ok(())
}

/// An entry on one line; `--json` prints long texts in full.
fn row(context: &Context, entry: &Value) -> String {
    let of = |key: &str| entry[key].as_str().unwrap_or_default();
    let when = context.when(of("at"));
    let mut text = format!("{}  {when}  {}", entry["n"], visible(of("what")));
    for key in ["by", "from", "broken"] {
        if !of(key).is_empty() {
            text.push_str(&format!("  {key} {}", visible(of(key))));
        }
    }
    for (key, value) in entry["about"].as_object().into_iter().flatten() {
        let value = match value.as_str() {
            Some(value) => crate::text::summary(value),
            None => value.to_string(),
        };
        text.push_str(&format!("  {key}={}", visible(&value)));
    }
    text
}
