//! `trust`: manages the folders whose instructions agents follow, and the skills that may act
//! without asking (MEM-4, SKILL-2).
//!
//! Edits `state/trust.toml` directly: the owner of this machine decides about trust, and
//! the daemon reads the file at each use.

use super::Context;
use super::skills::failed;
use crate::args::Trust;
use crate::error::Error;
use crate::text::clean;
use crabtalk_config::skills::{Offer, TrustFile, content_hash};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The recorded origin of an entry.
const BY: &str = "cli";

/// Both accepted names of the file that makes a folder a skill.
const MANIFESTS: [&str; 2] = ["SKILL.md", "skill.md"];

pub(super) fn run(context: &mut Context, command: Trust) -> Result<(), Error> {
    match command {
        Trust::List => list(context),
        Trust::Add { path } => add(context, &path),
        Trust::Rm { path } => remove(context, &path),
    }
}

fn list(context: &mut Context) -> Result<(), Error> {
    let trust = TrustFile::new(context.home.trust_file());
    let trust = trust.load().map_err(failed)?;
    let state = |path: &Path, sha256: &str| match content_hash(path) {
        Ok(hash) if hash == sha256 => "",
        Ok(_) => "changed since: not trusted",
        Err(_) => "cannot be read: not trusted",
    };
    let skills = trust.skills.iter();
    let skills = skills.map(|s| ("skill", &s.path, &s.at, &s.by, state(&s.path, &s.sha256)));
    let folders = trust.folders.iter();
    let folders = folders.map(|f| ("folder", &f.path, &f.at, &f.by, ""));
    let all: Vec<_> = folders.chain(skills).collect();
    let objects = all.iter().map(|(kind, path, at, by, state)| {
        let holds = state.is_empty();
        json!({"kind": kind, "path": path, "at": at, "by": by, "holds": holds})
    });
    if context.for_scripts(objects)? {
        return Ok(());
    }
    let rows = all.into_iter().map(|(kind, path, at, by, state)| {
        let day = at.get(..10).unwrap_or(at).to_owned();
        vec![
            kind.to_owned(),
            path.display().to_string(),
            day,
            by.clone(),
            state.to_owned(),
        ]
    });
    context.print_table(
        &["kind", "path", "since", "by", "state"],
        rows,
        "nothing is trusted; see `crabtalk trust add --help`",
    )
}

fn add(context: &mut Context, path: &Path) -> Result<(), Error> {
    let home = context.home.create()?;
    let file = TrustFile::new(home.trust_file());
    let at = format!("{:.3}", jiff::Timestamp::now());
    let is_skill = MANIFESTS.iter().any(|name| path.join(name).is_file());
    if !is_skill {
        let trusted = file.add_folder(path, &at, BY).map_err(failed)?;
        let said = format!(
            "crabtalk: agents follow the instructions in {} and below it",
            trusted.path.display()
        );
        return context.done(json!({"kind": "folder", "path": trusted.path}), &said);
    }
    let offer = Offer::of(path).map_err(failed)?;
    let installed = home.skills_dir().canonicalize();
    let installed = installed.is_ok_and(|folder| offer.path.starts_with(folder));
    let grants = tell(context, &offer, installed)?;
    let trusted = file.add_skill(offer, &at, BY).map_err(failed)?;
    let said = format!(
        "crabtalk: trusted the current version of the skill in {}",
        trusted.path.display()
    );
    let value =
        json!({"kind": "skill", "path": trusted.path, "sha256": trusted.sha256, "allows": grants});
    context.done(value, &said)
}

/// Shows what trust would allow a skill to do, before it is saved.
fn tell(context: &mut Context, offer: &Offer, installed: bool) -> Result<Vec<String>, Error> {
    let screen = &mut context.console.screen;
    if !installed {
        screen.note(
            "crabtalk: only skills in config/skills may act without asking; \
             `crabtalk skills import` copies one there",
        )?;
        return Ok(Vec::new());
    }
    let rules = offer.grants.rules.iter();
    let rules: Vec<String> = rules
        .map(|rule| clean(&rule.to_string()).into_owned())
        .collect();
    if rules.is_empty() {
        screen.note("crabtalk: it needs no permissions")?;
    } else {
        screen.note("crabtalk: while an owner's run uses it, these need no approval:")?;
    }
    for rule in &rules {
        screen.note(&format!("  {rule}"))?;
    }
    for entry in &offer.grants.ignored {
        let entry = clean(entry);
        screen.note(&format!(
            "crabtalk: `{entry}` allows nothing: name a file of the skill, or a command"
        ))?;
    }
    Ok(rules)
}

fn remove(context: &mut Context, path: &Path) -> Result<(), Error> {
    let file = TrustFile::new(context.home.trust_file());
    // A missing path keeps its absolute form.
    let path: PathBuf = std::path::absolute(path).map_err(|e| Error::io("find the folder", &e))?;
    let folder = file.remove_folder(&path).map_err(failed)?;
    let skill = file.remove_skill(&path).map_err(failed)?;
    if !folder && !skill {
        return Err(Error::Failed(format!(
            "{} is not trusted; see `crabtalk trust`",
            path.display()
        )));
    }
    let said = format!("crabtalk: {} is no longer trusted", path.display());
    context.done(json!({"removed": path}), &said)
}
