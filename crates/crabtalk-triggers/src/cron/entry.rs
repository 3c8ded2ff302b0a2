//! One entry of cron.
//!
//! Invariant: a [`CronEntry`] is checked; a [`Draft`] is not.

use crate::cron::when::ahead;
use crate::cron::{BadTime, Expression, Quiet, UnknownZone, When, parse_at, zone};
use crabtalk_domain::{ConversationKey, NameError, check_name};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The default sender of entries.
const SENDER: &str = "cron";

/// Longest prompt, and longest arguments.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Longest path that the system accepts.
const MAX_CWD_BYTES: usize = 4096;

/// The policy for due times while the daemon was down or the machine asleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// They are skipped.
    Skip,
    /// One run replaces all of them.
    Once,
}

/// The policy for asks of an entry's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// They are denied.
    Refuse,
    /// They wait in the owner's inbox.
    Inbox,
}

/// When to notify the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    /// Never.
    Nothing,
    /// For failures and asks.
    Failures,
    /// Also for each run's result.
    Results,
}

/// An unchecked entry. Empty texts mean absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "they are the keys of `[[cron]]`, see the guide"
)]
pub struct Draft {
    pub id: u64,
    pub schedule: String,
    pub at: String,
    pub zone: String,
    pub agent: String,
    pub sender: String,
    pub skill: String,
    pub args: String,
    pub content: String,
    pub cwd: String,
    pub quiet_start: String,
    pub quiet_end: String,
    pub once: bool,
    pub missed: String,
    pub asks: String,
    pub notify: String,
    pub paused: bool,
    pub by: String,
    /// Whether an agent created the entry.
    pub by_agent: bool,
    /// Length of the chain of entries that created each other before this one.
    pub chain: u32,
}

/// An invalid draft.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// Both or neither of `schedule` and `at` are given.
    #[error("an entry needs a schedule or a time (`at`), not both")]
    When,
    /// The entry has neither a skill nor a prompt.
    #[error("an entry needs a skill, a content, or both")]
    Nothing,
    /// A single time has quiet hours, which would prevent it or have no effect.
    #[error("an entry with a single time (`at`) cannot have quiet hours: choose another time")]
    QuietAt,
    /// The time of day has no date, so that each start would resolve it differently.
    #[error("at = {0:?} has no date: write 2026-12-24T17:30, or use `crabtalk cron add`")]
    Undated(String),
    /// The time is invalid, in the past or too far ahead.
    #[error(transparent)]
    Time(#[from] BadTime),
    /// The time zone is unknown.
    #[error(transparent)]
    Zone(#[from] UnknownZone),
    /// The name of the agent, the sender or the skill is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The quiet hours cannot be read, or begin when they end; it says which.
    #[error("{0}")]
    Quiet(String),
    /// A key of a few known values has another one.
    #[error("{key} is {value:?}; allowed are {allowed}")]
    Choice {
        /// Which key.
        key: &'static str,
        /// Its value.
        value: String,
        /// The allowed values.
        allowed: String,
    },
    /// A text exceeds its limit.
    #[error("the {key} has more than {limit} bytes")]
    Long {
        /// The key of the text.
        key: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The sender is reserved for the daemon; `cron` and `cron:*` are allowed.
    #[error("the sender {0:?} is reserved for the daemon: choose another")]
    Reserved(String),
    /// The folder is relative; it must begin with `/` or `~`.
    #[error("the cwd {0:?} is not absolute")]
    Cwd(String),
}

/// A valid entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronEntry {
    /// The entry's number, which is never reused.
    pub id: u64,
    /// The due times.
    pub when: When,
    /// The time zone of its due times.
    pub zone: TimeZone,
    /// The conversation of its runs.
    pub key: ConversationKey,
    /// Its quiet hours.
    pub quiet: Option<Quiet>,
    /// The policy for missed times.
    pub missed: Missed,
    /// The policy for asks.
    pub asks: Asks,
    /// When to notify the owner.
    pub notify: Notify,
    /// The entry as written, with texts trimmed and defaults omitted.
    pub draft: Draft,
}

impl Draft {
    fn trim(&mut self) {
        for text in [
            &mut self.schedule,
            &mut self.at,
            &mut self.zone,
            &mut self.agent,
            &mut self.skill,
            &mut self.missed,
            &mut self.asks,
            &mut self.notify,
            &mut self.quiet_start,
            &mut self.quiet_end,
        ] {
            *text = text.trim().to_owned();
        }
        self.skill = self.skill.trim_start_matches('/').to_owned();
    }

    /// Checks a draft. `local` is the default time zone, `default_agent` the default agent.
    pub fn check(
        mut self,
        default_agent: &str,
        local: &TimeZone,
        now: Timestamp,
    ) -> Result<CronEntry, Invalid> {
        self.trim();
        let zone = match self.zone.as_str() {
            "" => local.clone(),
            name => zone(name)?,
        };
        let when = match (self.schedule.as_str(), self.at.as_str()) {
            (schedule, "") if !schedule.is_empty() => {
                When::Schedule(Expression::parse(schedule).map_err(BadTime::from)?)
            }
            // Without a date, each start would resolve it differently.
            ("", at) if at.get(4..5) == Some("-") => When::At(parse_at(at, now, &zone)?),
            ("", at) if !at.is_empty() => return Err(Invalid::Undated(at.to_owned())),
            _ => return Err(Invalid::When),
        };
        let key = self.conversation(default_agent)?;
        self.check_texts()?;
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let quiet = Quiet::parse(
            given(&self.quiet_start).as_deref(),
            given(&self.quiet_end).as_deref(),
        );
        let quiet = quiet.map_err(Invalid::Quiet)?;
        let is_single = matches!(when, When::At(_));
        if is_single && quiet.is_some() {
            return Err(Invalid::QuietAt);
        }
        // A single time fires even if late.
        let missed = match is_single {
            true => Missed::Once,
            false => Missed::Skip,
        };
        Ok(CronEntry {
            id: self.id,
            when,
            zone,
            key,
            quiet,
            missed: choice(
                "missed",
                &self.missed,
                missed,
                &[("skip", Missed::Skip), ("once", Missed::Once)],
            )?,
            asks: choice(
                "asks",
                &self.asks,
                Asks::Refuse,
                &[("refuse", Asks::Refuse), ("inbox", Asks::Inbox)],
            )?,
            notify: choice(
                "notify",
                &self.notify,
                Notify::Failures,
                &[
                    ("failures", Notify::Failures),
                    ("results", Notify::Results),
                    ("nothing", Notify::Nothing),
                ],
            )?,
            draft: self,
        })
    }

    /// Checks a new entry, whose single time must be in the future and is stored as an
    /// instant.
    pub fn check_new(
        mut self,
        default_agent: &str,
        local: &TimeZone,
        now: Timestamp,
    ) -> Result<CronEntry, Invalid> {
        let at = self.at.trim();
        if !at.is_empty() {
            let zone = match self.zone.trim() {
                "" => local.clone(),
                name => zone(name)?,
            };
            let instant = parse_at(at, now, &zone)?;
            ahead(at, instant, now)?;
            let shown = instant.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%.f%:z");
            self.at = shown.to_string();
        }
        self.check(default_agent, local, now)
    }

    fn conversation(&self, default_agent: &str) -> Result<ConversationKey, Invalid> {
        let or = |text: &str, default: &str| match text {
            "" => default.to_owned(),
            text => text.to_owned(),
        };
        let agent = or(&self.agent, default_agent);
        let key = ConversationKey::new(&agent, &or(&self.sender, SENDER))?;
        let sender = key.sender.as_str();
        if key.sender.is_reserved() && sender != SENDER && !sender.starts_with("cron:") {
            return Err(Invalid::Reserved(sender.to_owned()));
        }
        Ok(key)
    }

    fn check_texts(&self) -> Result<(), Invalid> {
        for (key, text, limit) in [
            ("args", &self.args, MAX_TEXT_BYTES),
            ("content", &self.content, MAX_TEXT_BYTES),
            ("cwd", &self.cwd, MAX_CWD_BYTES),
            ("by", &self.by, MAX_CWD_BYTES),
        ] {
            if text.len() > limit {
                return Err(Invalid::Long { key, limit });
            }
        }
        if self.skill.is_empty() && self.content.trim().is_empty() {
            return Err(Invalid::Nothing);
        }
        if !self.skill.is_empty() {
            check_name(&self.skill)?;
        }
        let cwd = self.cwd.as_str();
        if !cwd.is_empty() && !cwd.starts_with('/') && cwd != "~" && !cwd.starts_with("~/") {
            return Err(Invalid::Cwd(cwd.to_owned()));
        }
        Ok(())
    }
}

fn choice<T: Copy>(
    key: &'static str,
    value: &str,
    default: T,
    choices: &[(&str, T)],
) -> Result<T, Invalid> {
    if value.is_empty() {
        return Ok(default);
    }
    let chosen = choices.iter().find(|(name, _)| *name == value);
    chosen.map(|(_, chosen)| *chosen).ok_or_else(|| {
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("{name:?}"))
            .collect();
        Invalid::Choice {
            key,
            value: value.chars().take(64).collect(),
            allowed: names.join(" or "),
        }
    })
}

impl CronEntry {
    /// The message of the entry's runs: the skill with its arguments, then the prompt.
    pub fn words(&self) -> String {
        let Draft {
            skill,
            args,
            content,
            ..
        } = &self.draft;
        let mut said = String::new();
        if !skill.is_empty() {
            said = format!("/{skill}");
            for more in [args, content] {
                if !more.trim().is_empty() {
                    said.push(' ');
                    said.push_str(more.trim());
                }
            }
        } else {
            said.push_str(content);
        }
        said
    }

    /// Whether a message is that of this entry, and names a skill.
    pub fn names_skill(&self, words: &str) -> bool {
        !self.draft.skill.is_empty() && self.words() == words
    }

    /// Whether the entry ends when a run starts.
    pub fn is_once(&self) -> bool {
        self.draft.once || matches!(self.when, When::At(_))
    }

    /// The fingerprint of its schedule; a change restarts the entry's account.
    pub fn print(&self) -> String {
        let zone = self.zone.iana_name().unwrap_or("local");
        let once = self.is_once();
        match &self.when {
            When::Schedule(expression) => format!("{expression}|{zone}|{once}"),
            When::At(at) => format!("{at}|{once}"),
        }
    }
}

#[cfg(test)]
mod tests;
