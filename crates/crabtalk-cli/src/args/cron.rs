//! What runs by itself.

use super::number::{at_least, between};
use clap::{Args, Subcommand};

/// `cron`
#[derive(Debug, Default, Subcommand)]
pub(crate) enum Cron {
    /// List entries: when each is due next, how its last run ended, its cost.
    #[default]
    List,
    /// Add one: `cron add "0 9 * * 1-5" review "look at the open branches"`,
    /// `cron add --in 20m "stretch your legs"`.
    Add(Box<CronAdd>),
    /// Show one entry and its last runs.
    Show {
        /// The entry (see `cron list`).
        #[arg(value_parser = at_least::<u64>(0))]
        id: u64,
    },
    /// Change an entry; options that are not given leave it as it is.
    Edit(Box<CronEdit>),
    /// Remove one; a run of it goes on.
    Rm {
        /// Which one (see `cron list`).
        #[arg(value_parser = at_least::<u64>(0))]
        id: u64,
    },
    /// Show what became of due times, the latest first.
    Runs {
        /// One entry's; also of one that is gone.
        #[arg(value_parser = at_least::<u64>(0))]
        id: Option<u64>,
        /// How many.
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        #[arg(value_parser = at_least::<u32>(1))]
        limit: u32,
    },
    /// Run one now, beside its due times.
    Run {
        /// Which one (see `cron list`).
        #[arg(value_parser = at_least::<u64>(0))]
        id: u64,
    },
    /// Let one keep silent.
    Pause {
        /// Which one (see `cron list`).
        #[arg(value_parser = at_least::<u64>(0))]
        id: u64,
    },
    /// Let one go on; what was due meanwhile is not made up for.
    Resume {
        /// Which one (see `cron list`).
        #[arg(value_parser = at_least::<u64>(0))]
        id: u64,
    },
    /// Say when a schedule would be due.
    Test {
        /// Five fields, an @name, or a time.
        #[arg(value_name = "SCHEDULE")]
        schedule: String,
        /// In this time zone; default: the daemon's.
        #[arg(long, value_name = "ZONE")]
        zone: Option<String>,
        /// Leave these hours out, such as 23:00-07:00.
        #[arg(long, value_name = "FROM-TO")]
        quiet: Option<String>,
        /// How many times.
        #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
        #[arg(value_parser = between::<u32>(1, 100))]
        count: u32,
    },
}

/// `cron add`
#[derive(Debug, Args)]
pub(crate) struct CronAdd {
    /// Five fields or an @name (unless --in or --at says when), then a skill, a
    /// prompt, or both.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Once, so long from now: 20m, 1h30m, 2 days.
    #[arg(long = "in", value_name = "TIME", conflicts_with = "at")]
    pub(crate) after: Option<String>,
    /// Once, then: 17:30, or `2026-12-24 17:30`.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// In this time zone, such as Europe/Berlin; default: the daemon's.
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// The skill, if it is not the first word of the text.
    #[arg(long, value_name = "NAME")]
    pub(crate) skill: Option<String>,
    /// In whose conversation it speaks; default: cron.
    #[arg(long, value_name = "SENDER")]
    pub(crate) sender: Option<String>,
    /// Keep silent in these hours, such as 23:00-07:00.
    #[arg(long, value_name = "FROM-TO")]
    pub(crate) quiet: Option<String>,
    /// Fire once, then go.
    #[arg(long)]
    pub(crate) once: bool,
    /// What becomes of times that were missed: skip, or once for all of them.
    #[arg(long, value_name = "RULE", value_parser = ["skip", "once"])]
    pub(crate) missed: Option<String>,
    /// What becomes of what a run has to ask: refuse, or inbox.
    #[arg(long, value_name = "RULE", value_parser = ["refuse", "inbox"])]
    pub(crate) asks: Option<String>,
    /// What the notifier of the configuration is told.
    #[arg(long, value_name = "WHAT", value_parser = ["failures", "results", "nothing"])]
    pub(crate) notify: Option<String>,
    /// Begin paused.
    #[arg(long)]
    pub(crate) paused: bool,
}

/// `cron edit`
#[derive(Debug, Args)]
pub(crate) struct CronEdit {
    /// The entry (see `cron list`).
    #[arg(value_parser = at_least::<u64>(0))]
    pub(crate) id: u64,
    /// The new prompt.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Five fields or an @name.
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["at", "after"])]
    pub(crate) schedule: Option<String>,
    /// Once, so long from now: 20m, 1h30m, 2 days.
    #[arg(long = "in", value_name = "TIME", conflicts_with = "at")]
    pub(crate) after: Option<String>,
    /// Once, then: 17:30, or `2026-12-24 17:30`.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// The time zone; `none` for the daemon's.
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// The skill; `none` for none.
    #[arg(long, value_name = "NAME")]
    pub(crate) skill: Option<String>,
    /// Quiet hours, such as 23:00-07:00; `none` for none.
    #[arg(long, value_name = "FROM-TO")]
    pub(crate) quiet: Option<String>,
    /// Whether it goes after it fired once.
    #[arg(long, value_name = "BOOL")]
    pub(crate) once: Option<bool>,
    /// What becomes of times that were missed: skip, or once for all of them.
    #[arg(long, value_name = "RULE", value_parser = ["skip", "once"])]
    pub(crate) missed: Option<String>,
    /// What becomes of what a run has to ask: refuse, or inbox.
    #[arg(long, value_name = "RULE", value_parser = ["refuse", "inbox"])]
    pub(crate) asks: Option<String>,
    /// What the notifier of the configuration is told.
    #[arg(long, value_name = "WHAT", value_parser = ["failures", "results", "nothing"])]
    pub(crate) notify: Option<String>,
}
