//! `skills`: manages the daemon's skills, and imports skill folders.

use super::{Context, switch};
use crate::args::{Named, Skills};
use crate::error::Error;
use crate::text::counted;
use crabtalk_config::skills::{Finding, ImportReport, Level, Skill, SkillSource};
use crabtalk_proto::{ListSkillsMsg, ResourceKind, SkillInfo, SkillList, SkillTrust, SourceKind};
use serde_json::{Value, json};
use std::path::Path;

pub(super) async fn run(context: &mut Context, command: Skills) -> Result<(), Error> {
    match command {
        Skills::List => list(context).await,
        Skills::Show(Named { name }) => show(context, &name).await,
        Skills::Enable(Named { name }) => {
            switch(context, ResourceKind::Skill, "skill", name, true).await
        }
        Skills::Disable(Named { name }) => {
            switch(context, ResourceKind::Skill, "skill", name, false).await
        }
        Skills::Check { folder } => check(context, &folder),
        Skills::Import { folder, replace } => import(context, &folder, replace),
    }
}

/// Converts an error of the skills crate.
pub(super) fn failed(error: crabtalk_config::skills::Error) -> Error {
    Error::Failed(error.to_string())
}

async fn known(context: &mut Context) -> Result<SkillList, Error> {
    let cwd = context.cwd()?;
    context.call(ListSkillsMsg { cwd }).await
}

/// The kind of folder of a skill, from the daemon's name for it.
fn source(skill: &SkillInfo) -> SkillSource {
    match skill.source_kind() {
        SourceKind::External => SkillSource::External,
        SourceKind::Project => SkillSource::Project,
        SourceKind::Unknown | SourceKind::Local | SourceKind::Plugin => SkillSource::Home,
    }
}

fn kind(source: SkillSource) -> &'static str {
    match source {
        SkillSource::Home => "installed",
        SkillSource::External => "external",
        SkillSource::Project => "project",
    }
}

fn trusted(trust: SkillTrust) -> &'static str {
    match trust {
        SkillTrust::Unknown => "",
        SkillTrust::None => "no",
        SkillTrust::Trusted => "yes",
        SkillTrust::Changed => "changed since",
    }
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let SkillList { skills, warnings } = known(context).await?;
    for warning in warnings {
        context.problem(&format!("crabtalk: {warning}"))?;
    }
    let objects = skills.iter().map(|skill| {
        json!({
            "name": skill.name, "enabled": skill.enabled, "source": skill.source,
            "external": source(skill) == SkillSource::External, "kind": kind(source(skill)),
            "trusted": trusted(skill.trust()),
        })
    });
    if context.for_scripts(objects)? {
        return Ok(());
    }
    let rows = skills.into_iter().map(|skill| {
        let state = if skill.enabled { "on" } else { "off" };
        let (kind, trusted) = (kind(source(&skill)), trusted(skill.trust()));
        vec![
            skill.name,
            state.into(),
            kind.into(),
            trusted.into(),
            skill.source,
        ]
    });
    let none = "no skills; `crabtalk skills import DIR` copies some";
    context.print_table(&["name", "state", "kind", "trusted", "folder"], rows, none)
}

async fn show(context: &mut Context, name: &str) -> Result<(), Error> {
    let skills = known(context).await?.skills;
    let found = skills.iter().find(|s| s.name.eq_ignore_ascii_case(name));
    let Some(info) = found else {
        return Err(Error::Failed(format!(
            "unknown skill {name}; see `crabtalk skills`"
        )));
    };
    let skill =
        crabtalk_config::skills::load(Path::new(&info.source), source(info)).map_err(failed)?;
    let trusted = trusted(info.trust());
    let screen = &mut context.console.screen;
    if context.global.json {
        return Ok(screen.json(&skill_json(&skill, info.enabled, trusted))?);
    }
    let some = |text: &Option<String>| text.clone().unwrap_or_default();
    let rows = [
        ("name", skill.summary.name.clone()),
        ("folder", skill.summary.folder.display().to_string()),
        ("license", some(&skill.license)),
        ("needs", some(&skill.compatibility)),
        ("wants without asking", skill.allowed_tools.join(", ")),
        ("trusted", trusted.to_owned()),
        ("files", skill.files.paths.join(", ")),
    ];
    screen.line(&crate::table::pairs(&rows))?;
    screen.line("")?;
    screen.line(&skill.summary.description)?;
    screen.line("")?;
    screen.line(skill.body.trim())?;
    for warning in &skill.warnings {
        screen.problem(&format!("crabtalk: {warning}"))?;
    }
    Ok(())
}

fn skill_json(skill: &Skill, enabled: bool, trusted: &str) -> Value {
    let warnings = skill.warnings.iter().map(ToString::to_string);
    json!({
        "name": skill.summary.name, "description": skill.summary.description,
        "folder": skill.summary.folder, "enabled": enabled, "license": skill.license,
        "compatibility": skill.compatibility, "metadata": skill.metadata,
        "allowed_tools": skill.allowed_tools, "trusted": trusted, "files": skill.files.paths,
        "warnings": warnings.collect::<Vec<_>>(), "body": skill.body,
    })
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "level": level(finding.level), "file": finding.file, "line": finding.line,
        "what": finding.what, "right": finding.right,
    })
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Advice => "advice",
        Level::Wrong => "wrong",
        Level::Refused => "refused",
    }
}

fn check(context: &mut Context, folder: &Path) -> Result<(), Error> {
    let report = crabtalk_config::skills::check(folder).map_err(failed)?;
    let screen = &mut context.console.screen;
    for finding in &report.findings {
        if context.global.json {
            screen.json(&finding_json(finding))?;
        } else {
            screen.line(&format!("{}: {finding}", level(finding.level)))?;
        }
    }
    let skills = report.skills.len();
    if report.passed() {
        let said = match skills {
            1 => "crabtalk: the skill is valid".to_owned(),
            _ => format!("crabtalk: all {skills} skills are valid"),
        };
        return Ok(screen.note(&said)?);
    }
    let wrong = report.findings.iter().filter(|f| f.level != Level::Advice);
    Err(Error::Failed(format!(
        "{} to fix in {skills} skill{}",
        wrong.count(),
        if skills == 1 { "" } else { "s" }
    )))
}

fn import(context: &mut Context, folder: &Path, replace: bool) -> Result<(), Error> {
    let home = context.home.create()?;
    let report =
        crabtalk_config::skills::import(folder, &home.skills_dir(), replace).map_err(failed)?;
    let screen = &mut context.console.screen;
    if context.global.json {
        screen.json(&report_json(&report))?;
        return imported(&report, folder, &home.skills_dir());
    }
    for copied in &report.copied {
        let how = if copied.replaced { ", replaced" } else { "" };
        screen.line(&format!(
            "{} from {} ({}{how})",
            copied.name,
            copied.from.display(),
            counted(copied.files, "file")
        ))?;
        for warning in &copied.warnings {
            screen.problem(&format!("crabtalk: {warning}"))?;
        }
    }
    for skipped in &report.skipped {
        let said = format!("crabtalk: {}: {}", skipped.from.display(), skipped.reason);
        screen.problem(&said)?;
    }
    for finding in &report.findings {
        screen.problem(&format!("crabtalk: {finding}"))?;
    }
    imported(&report, folder, &home.skills_dir())?;
    let (copied, left) = (report.copied.len(), report.skipped.len());
    Ok(screen.note(&format!(
        "crabtalk: {copied} copied, {left} skipped; agents see them in their next run"
    ))?)
}

/// Reports an import; fails unless everything was copied.
fn imported(report: &ImportReport, from: &Path, to: &Path) -> Result<(), Error> {
    let failed = report.skipped.iter().filter(|skipped| skipped.failed);
    let failed: Vec<&str> = failed.map(|skipped| &*skipped.reason).collect();
    let copied = report.copied.len();
    match (failed.first(), copied + report.skipped.len()) {
        (Some(reason), _) => Err(Error::Failed(format!(
            "{copied} copied, and {} could not be written to {}: {reason}",
            counted(failed.len(), "skill"),
            to.display()
        ))),
        (None, 0) => Err(Error::Failed(format!(
            "no skill in {} or below it",
            from.display()
        ))),
        (None, _) => Ok(()),
    }
}

fn report_json(report: &ImportReport) -> Value {
    let copied = report.copied.iter().map(|copied| {
        let warnings = copied.warnings.iter().map(ToString::to_string);
        json!({
            "name": copied.name, "from": copied.from, "to": copied.to, "files": copied.files,
            "replaced": copied.replaced, "warnings": warnings.collect::<Vec<_>>(),
        })
    });
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|s| json!({"from": s.from, "reason": s.reason, "failed": s.failed}));
    let findings = report.findings.iter().map(finding_json);
    json!({
        "copied": copied.collect::<Vec<_>>(), "skipped": skipped.collect::<Vec<_>>(),
        "findings": findings.collect::<Vec<_>>(),
    })
}
