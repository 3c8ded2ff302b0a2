//! `search` and `memory recall`: search entries and archives.

use super::Context;
use crate::args::Search;
use crate::error::Error;
use crate::text::{clean, summary};
use crabtalk_proto::{SearchHit, SearchMsg};

pub(super) async fn search(context: &mut Context, args: Search) -> Result<(), Error> {
    let request = SearchMsg {
        query: args.query.join(" "),
        agent: context.agent(),
        sender: context.sender(),
        limit: args.limit,
    };
    let results = context.call(request).await?;
    let found = results.hits;
    if results.incomplete {
        context.problem(
            "crabtalk: some archives were not searched: they are still being indexed, or cannot \
             be read (see `crabtalk daemon logs`)",
        )?;
    }
    if context.for_scripts(&found)? {
        return Ok(());
    }
    if found.is_empty() && results.only_common_words {
        return context.note("these words are too common to search for; add names, things or days");
    }
    if found.is_empty() {
        return context.note("no matches");
    }
    let screen = &mut context.console.screen;
    for hit in &found {
        screen.line(&heading(hit))?;
        for line in clean(hit.snippet.trim()).lines() {
            screen.line(&format!("    {line}"))?;
        }
    }
    Ok(())
}

/// The source of a hit, and its date.
fn heading(hit: &SearchHit) -> String {
    let day = hit.at.get(..10).unwrap_or_default();
    let parts = [summary(&hit.title), summary(&hit.source), summary(day)];
    let parts = parts.iter().filter(|part| !part.is_empty());
    parts.map(String::as_str).collect::<Vec<_>>().join(" | ")
}
