//! The sections with a fixed set of keys, and their defaults.

use super::{
    Cli, Cron, Keys, Limits, Memory, ProjectMode, RecallScope, Resume, Runs, Skills, Storage,
    SyncPolicy, Theme,
};
use crate::Error;
use crate::reader::Section;
use crabtalk_domain::Mode;

/// A day: long enough for a person to come back, short enough to end.
const ASK_TIMEOUT_SECS: u64 = 86_400;

/// A person rarely has more than a few waiting; a gateway's burst fits.
const QUEUED_RUNS: u32 = 32;

/// More than anybody writes by hand; a program that adds entries in a loop stops.
const CRONS: u32 = 1_000;

/// As for cron entries.
const SUBSCRIPTIONS: u32 = 1_000;

/// One for each conversation that somebody looks at; each costs a descriptor.
const CONNECTIONS: u32 = 4_096;

/// Real chains of events have two or three links; two agents that wake each
/// other end here.
const CHAIN_DEPTH: u32 = 8;

/// A team, its members and theirs; beyond that nobody can follow.
const DELEGATE_DEPTH: u32 = 3;

/// Three times what a model writes that uses all of its 128,000 tokens; ten
/// that never stop still leave the daemon small.
const ANSWER_BYTES: u32 = 2 * 1024 * 1024;

/// An answer is told in one frame and kept in one line; half a frame leaves
/// room for what escaping adds.
const MAX_ANSWER_BYTES: u64 = 8 * 1024 * 1024;

/// What providers allow at once; each is a task, an ask and a line.
const ANSWER_CALLS: u32 = 128;

/// An hour: a slow model on a slow machine writes a long answer in less.
const ANSWER_SECS: u64 = 3_600;

/// A week: beyond it nobody waits for an answer.
const MAX_ANSWER_SECS: u64 = 7 * 86_400;

/// Entries that fit beside a question without drowning it.
const RECALL_LIMIT: u32 = 5;

pub(super) fn memory(mut section: Section<'_>) -> Result<Memory, Error> {
    let scopes = [
        ("conversation", RecallScope::Conversation),
        ("agent", RecallScope::Agent),
    ];
    let memory = Memory {
        enabled: section.boolean("enabled")?.unwrap_or(true),
        recall_limit: section.count("recall_limit", 0)?.unwrap_or(RECALL_LIMIT),
        soul_editable: section.boolean("soul_editable")?.unwrap_or(false),
        recall_scope: section
            .choice("recall_scope", &scopes)?
            .unwrap_or(RecallScope::Conversation),
        provider: section.string("provider")?,
    };
    section.finish();
    Ok(memory)
}

/// A month: long enough to notice that something is missing.
const TRASH_DAYS: u32 = 30;

pub(super) fn storage(mut section: Section<'_>) -> Result<Storage, Error> {
    let policies = [
        ("step", SyncPolicy::Step),
        ("run", SyncPolicy::Run),
        ("never", SyncPolicy::Never),
    ];
    let sync = section
        .choice("sync", &policies)?
        .unwrap_or(SyncPolicy::Step);
    let trash_days = section.count("trash_days", 0)?.unwrap_or(TRASH_DAYS);
    section.finish();
    Ok(Storage { sync, trash_days })
}

pub(super) fn cli(mut section: Section<'_>) -> Result<Cli, Error> {
    let modes = [("auto", ProjectMode::Auto), ("off", ProjectMode::Off)];
    let themes = [
        ("auto", Theme::Auto),
        ("light", Theme::Light),
        ("dark", Theme::Dark),
        ("plain", Theme::Plain),
    ];
    let keys = [("emacs", Keys::Emacs), ("vi", Keys::Vi)];
    let cli = Cli {
        project: section
            .choice("project", &modes)?
            .unwrap_or(ProjectMode::Auto),
        theme: section.choice("theme", &themes)?.unwrap_or(Theme::Auto),
        keys: section.choice("keys", &keys)?.unwrap_or(Keys::Emacs),
    };
    section.finish();
    Ok(cli)
}

pub(super) fn runs(mut section: Section<'_>) -> Result<Runs, Error> {
    let resumes = [("report", Resume::Report), ("auto", Resume::Auto)];
    let runs = Runs {
        detect: section.boolean("detect")?.unwrap_or(true),
        resume: section
            .choice("resume", &resumes)?
            .unwrap_or(Resume::Report),
        ask_timeout_secs: section
            .whole("ask_timeout_secs", 1, u64::MAX)?
            .unwrap_or(ASK_TIMEOUT_SECS),
        mode: section.mode("mode", &Mode::ALL[..3])?,
        prewarm: section.boolean("prewarm")?.unwrap_or(true),
    };
    section.finish();
    Ok(runs)
}

/// Some eight thousand tokens: what a few servers need. With every request that
/// much is read again, and a model that has more to choose from chooses worse.
const TOOL_SCHEMA_BYTES: u32 = 32 * 1024;

pub(super) fn limits(mut section: Section<'_>) -> Result<Limits, Error> {
    let limits = Limits {
        queued_runs: section.count("queued_runs", 0)?.unwrap_or(QUEUED_RUNS),
        crons: section.count("crons", 0)?.unwrap_or(CRONS),
        subscriptions: section.count("subscriptions", 0)?.unwrap_or(SUBSCRIPTIONS),
        connections: section.count("connections", 1)?.unwrap_or(CONNECTIONS),
        chain_depth: section.count("chain_depth", 0)?.unwrap_or(CHAIN_DEPTH),
        delegate_depth: section
            .count("delegate_depth", 0)?
            .unwrap_or(DELEGATE_DEPTH),
        answer_bytes: section
            .whole("answer_bytes", 1, MAX_ANSWER_BYTES)?
            .map_or(ANSWER_BYTES, |n| {
                u32::try_from(n).expect("within the range")
            }),
        answer_calls: section.count("answer_calls", 1)?.unwrap_or(ANSWER_CALLS),
        answer_secs: section
            .whole("answer_secs", 1, MAX_ANSWER_SECS)?
            .unwrap_or(ANSWER_SECS),
        tool_schema_bytes: section
            .count("tool_schema_bytes", 0)?
            .unwrap_or(TOOL_SCHEMA_BYTES),
        tokens_per_day: section.whole("tokens_per_day", 0, u64::MAX)?,
        money_per_day: section.amount("money_per_day")?,
    };
    section.finish();
    Ok(limits)
}

pub(super) fn skills(mut section: Section<'_>) -> Result<Skills, Error> {
    let skills = Skills {
        import: section.boolean("import")?.unwrap_or(false),
        paths: section.strings("paths")?.unwrap_or_default(),
        disabled: section.strings("disabled")?.unwrap_or_default(),
    };
    section.finish();
    Ok(skills)
}

/// Enough for a machine with a few agents; a storm at midnight is spread by it
/// over the minutes that its runs take.
const CRONS_AT_ONCE: u32 = 4;

/// One failure is bad luck, two are a pattern, the third was the last.
const PAUSE_AFTER: u32 = 3;

/// What an agent has in mind at a time; one that makes an entry with each run
/// ends here.
const CRONS_PER_AGENT: u32 = 10;

pub(super) fn cron(mut section: Section<'_>) -> Result<Cron, Error> {
    let cron = Cron {
        at_once: section.count("at_once", 1)?.unwrap_or(CRONS_AT_ONCE),
        pause_after: section.count("pause_after", 0)?.unwrap_or(PAUSE_AFTER),
        per_agent: section.count("per_agent", 0)?.unwrap_or(CRONS_PER_AGENT),
    };
    section.finish();
    Ok(cron)
}
