//! Arguments of `cron`.

use clap::{Args, Subcommand};

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Cron {
    /// List entries with next time, last outcome and cost.
    #[default]
    List,
    /// Add an entry: `cron add "0 9 * * 1-5" review "look at the open branches"`,
    /// `cron add --in 20m "stretch your legs"`.
    Add(Box<CronAdd>),
    /// Show an entry and its last runs.
    Show(CronEntry),
    /// Change an entry; other settings stay.
    Edit(Box<CronEdit>),
    /// Remove an entry; an active run continues.
    Rm(CronEntry),
    /// List past runs, newest first.
    Runs {
        /// Number of the entry, also a removed one [default: all].
        id: Option<u64>,
        /// Number of runs.
        #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Run an entry now.
    Run(CronEntry),
    /// Pause an entry.
    Pause(CronEntry),
    /// Resume an entry; missed times are skipped.
    Resume(CronEntry),
    /// Show when a schedule fires.
    Test {
        /// Five fields, an @name, or a time.
        #[arg(value_name = "SCHEDULE")]
        schedule: String,
        /// Time zone [default: the daemon's].
        #[arg(long, value_name = "ZONE")]
        zone: Option<String>,
        /// Quiet hours, such as 23:00-07:00.
        #[arg(long, value_name = "FROM-TO")]
        quiet: Option<String>,
        /// Number of times.
        #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
        #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
        count: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CronEntry {
    /// Number of the entry (see `cron list`).
    pub(crate) id: u64,
}

// Options of `add` and `edit`.
#[derive(Debug, Args)]
pub(crate) struct CronOptions {
    /// Run once after this duration: 20m, 1h30m, 2 days.
    #[arg(long = "in", value_name = "TIME", conflicts_with = "at")]
    pub(crate) after: Option<String>,
    /// Run once at this time: 17:30, or `2026-12-24 17:30`.
    #[arg(long, value_name = "TIME")]
    pub(crate) at: Option<String>,
    /// Time zone, such as Europe/Berlin; `none` for the daemon's.
    #[arg(long, value_name = "ZONE")]
    pub(crate) zone: Option<String>,
    /// The skill, if the text does not begin with its name; `none` for none.
    #[arg(long, value_name = "NAME")]
    pub(crate) skill: Option<String>,
    /// Quiet hours, such as 23:00-07:00; `none` for none.
    #[arg(long, value_name = "FROM-TO")]
    pub(crate) quiet: Option<String>,
    /// Missed times: skip, or run once for all of them.
    #[arg(long, value_name = "RULE", value_parser = ["skip", "once"])]
    pub(crate) missed: Option<String>,
    /// Questions of its runs: refuse them, or put them into the inbox.
    #[arg(long, value_name = "RULE", value_parser = ["refuse", "inbox"])]
    pub(crate) asks: Option<String>,
    /// Events to notify about.
    #[arg(long, value_name = "WHAT", value_parser = ["failures", "results", "nothing"])]
    pub(crate) notify: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CronAdd {
    /// Schedule (five fields or an @name) unless --in or --at is given; then a skill,
    /// a prompt, or both.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    #[command(flatten)]
    pub(crate) options: CronOptions,
    /// Sender of the conversation [default: cron].
    #[arg(long, value_name = "SENDER")]
    pub(crate) sender: Option<String>,
    /// Remove the entry after its first run.
    #[arg(long)]
    pub(crate) once: bool,
    /// Create the entry paused.
    #[arg(long)]
    pub(crate) paused: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CronEdit {
    /// Number of the entry (see `cron list`).
    pub(crate) id: u64,
    /// The new prompt.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Five fields or an @name.
    #[arg(long, value_name = "SCHEDULE", conflicts_with_all = ["at", "after"])]
    pub(crate) schedule: Option<String>,
    #[command(flatten)]
    pub(crate) options: CronOptions,
    /// Arguments of the skill; `none` removes them.
    #[arg(long, value_name = "TEXT")]
    pub(crate) args: Option<String>,
    /// Whether the entry is removed after its next run.
    #[arg(long, value_name = "BOOL")]
    pub(crate) once: Option<bool>,
}
