//! The command line.

mod bus;
mod config;
mod conversations;
mod cron;
mod knowledge;
mod mcps;
mod mode;
mod models;
mod number;
mod refused;
mod remote;
mod rights;

pub(crate) use bus::{Publish, Subscriptions};
pub(crate) use config::{Completions, Config, Init, Man};
pub(crate) use conversations::{Conversations, Export, ExportFormat, Shelf, Top};
pub(crate) use cron::{Cron, CronAdd, CronEdit};
pub(crate) use knowledge::{Archives, Memory, Search, Skills, Trust};
pub(crate) use mcps::Mcps;
pub(crate) use mode::Mode;
pub(crate) use models::{By, Models, Providers, Stats};
pub(crate) use refused::{shown, usage};
pub(crate) use remote::{Audit, LATEST_ENTRIES, Remote, Tokens};
pub(crate) use rights::{Agents, Approvals};

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand};
use number::at_least;
use std::ffi::OsString;
use std::path::PathBuf;

/// CrabTalk, the agent daemon that people own.
///
/// Without a command: a chat. Text with spaces is a question, as with `ask`.
#[derive(Debug, Parser)]
#[command(name = "crabtalk", version, propagate_version = true)]
#[command(subcommand_help_heading = "Commands")]
#[command(infer_subcommands = false, allow_external_subcommands = true)]
#[command(after_help = "Any other NAME runs the program crabtalk-NAME, if there is one.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options of every command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Global {
    /// The agent; default: the configured one.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Speak as this sender; default: user, in a git repository user/FOLDER.
    #[arg(long = "as", global = true, value_name = "SENDER")]
    pub(crate) sender: Option<String>,
    /// Speak in this project, wherever you stand; empty: in none.
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "sender")]
    pub(crate) project: Option<String>,
    /// The model that answers in this command, in place of the agent's own.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// How much runs may do without asking; default: by the agent and the folder.
    #[arg(long, global = true, value_enum, value_name = "MODE")]
    pub(crate) mode: Option<Mode>,
    /// Where the run works; default: the current folder. Empty: where the
    /// conversation works.
    #[arg(long, global = true, value_name = "DIR")]
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) cwd: Option<PathBuf>,
    /// Print JSON, one value on a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The home folder; default: $CRABTALK_HOME, else ~/.crabtalk.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// A daemon elsewhere: one of `crabtalk remote`, or tcp://HOST:PORT.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) connect: Option<String>,
    /// Do not start a daemon when there is none.
    #[arg(long, global = true)]
    pub(crate) no_start: bool,
}

/// What to do.
// The options of a command are built when it is the one that is called: to build all of
// them takes half a millisecond to a whole one.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Talk with an agent.
    Chat(Chat),
    /// Ask one question and print the answer.
    Ask(Ask),
    /// Run, start, stop and watch the daemon.
    #[command(subcommand)]
    Daemon(Daemon),
    /// Write a backup of the home to a file, also while the daemon runs.
    Backup {
        /// The file, which must not exist yet.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Put a backup in the place of the home; the daemon must be stopped.
    Restore {
        /// A file that `crabtalk backup` wrote.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// List conversations, the latest first; name, search, remove and restore them.
    Conversations(Conversations),
    /// Show a conversation's messages.
    History(History),
    /// Write a conversation with its archives as Markdown or JSON.
    Export(Export),
    /// List what compactions put away, or show one of it.
    Archives(Sub<Archives>),
    /// Search memory and archives.
    Search(Search),
    /// List, read, write and import what is remembered.
    Memory(Sub<Memory>),
    /// List, add, test and import MCP servers; components are listed too.
    Mcps(Sub<Mcps>),
    /// List, show, check and import skills.
    Skills(Sub<Skills>),
    /// List, add and remove trusted folders and skills.
    Trust(Sub<Trust>),
    /// Cancel the run in flight.
    Kill,
    /// Summarise the history now, to make room.
    Compact {
        /// What the summary should keep in view.
        #[arg(long, value_name = "TEXT")]
        focus: Option<String>,
    },
    /// Put the history away as an archive and start afresh.
    New {
        /// Begin with a summary of what was said; calls the model.
        #[arg(long)]
        summary: bool,
    },
    /// Put a message into the run in flight.
    Steer {
        /// The message.
        #[arg(required = true, num_args = 1.., value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Show what a run changed among files.
    Diff {
        /// The run's number; default: the last that changed anything.
        #[arg(value_parser = at_least::<u64>(0))]
        run: Option<u64>,
    },
    /// Put back what a run changed among files.
    Undo(Undo),
    /// Follow the run in flight.
    Attach(Attach),
    /// Watch what happens in every conversation.
    Events,
    /// List what runs are waiting to be told.
    Asks,
    /// Answer a pending question.
    Reply {
        /// Which one (see `asks`); needed when several wait.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        /// The answer: text, an option's label or its number.
        #[arg(required = true, num_args = 1.., value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Allow a pending tool call.
    Approve {
        /// Which one (see `asks`); needed when several wait.
        id: Option<String>,
        /// Allow exactly this from now on.
        #[arg(long)]
        always: bool,
        /// Allow from now on what begins like this, where that is offered.
        #[arg(long, conflicts_with = "always")]
        prefix: bool,
        /// Let later commands of the conversation reach the same hosts, where that
        /// is offered.
        #[arg(long, conflicts_with_all = ["always", "prefix"])]
        conversation: bool,
        /// Do not ask again at the terminal; what is allowed is printed all
        /// the same.
        #[arg(long)]
        yes: bool,
    },
    /// Deny a pending tool call.
    Deny {
        /// Which one (see `asks`); needed when several wait.
        id: Option<String>,
        /// Why; the model reads it.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// List and take back what was allowed for good.
    Approvals(Sub<Approvals>),
    /// Say which agents run when an event comes, and change that.
    Subscriptions(Sub<Subscriptions>),
    /// Publish an event, which starts the agents that wait for it.
    Publish(Publish),
    /// List components: installed, running, connected.
    Components,
    /// List, show, write and remove agents.
    Agents(Sub<Agents>),
    /// Say which models there are, and which one is in use.
    Models(Sub<Models>),
    /// Say who provides models, add and remove them.
    Providers(Sub<Providers>),
    /// Let agents run by themselves: on a schedule, or once at a time.
    Cron(Sub<Cron>),
    /// Show the daemon's figures, and what was spent.
    Stats(Stats),
    /// Show what runs, live: runs, agents, tokens, memory.
    Top(Top),
    /// Write a configuration that works, from what is found here.
    Init(Init),
    /// Say what is wrong here, and what mends it.
    Doctor {
        /// Do not ask any model.
        #[arg(long)]
        offline: bool,
    },
    /// Show and change the configuration.
    Config(Sub<Config>),
    /// Say who may come in from elsewhere, and change that.
    Tokens(Sub<Tokens>),
    /// Say which daemons elsewhere are known here, and change that.
    Remote(Sub<Remote>),
    /// Show the record of who did what, or check it.
    Audit(Sub<Audit>),
    /// Print what a shell needs to complete commands.
    Completions(Completions),
    /// Print the manual.
    Man(Man),
    /// A program of the name crabtalk-NAME, or a question.
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

/// The commands of a command, which may be left out.
#[derive(Debug, Args)]
pub(crate) struct Sub<T: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: Option<T>,
}

/// One that is named.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) name: String,
}

/// `chat`
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Chat {
    /// Ring the bell when a run ends and when it asks (also CRABTALK_BELL=1).
    #[arg(long)]
    pub(crate) bell: bool,
}

/// `ask`
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The question; what is piped in is appended.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Another agent that answers this once, in the same conversation.
    #[arg(long, value_name = "AGENT")]
    pub(crate) guest: Option<String>,
    /// An image that the model is shown (PNG, JPEG, GIF, WebP); may be given again.
    #[arg(long, value_name = "PATH")]
    pub(crate) image: Vec<std::path::PathBuf>,
    /// Leave questions and approvals to other clients, and wait.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Do not read standard input, even if it is a pipe.
    #[arg(long)]
    pub(crate) no_stdin: bool,
}

/// `daemon`
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Daemon {
    /// Run it here, in the foreground.
    Run {
        /// Leave the terminal's session; used when a client starts it.
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Start it in the background.
    Start,
    /// End it.
    Stop,
    /// End it, once no run goes on, and start it.
    Restart {
        /// Do not wait: runs are cut off, and with `resume = "auto"` carried on.
        #[arg(long)]
        now: bool,
    },
    /// Say whether it runs.
    Status,
    /// Read the configuration again.
    Reload,
    /// Show its log.
    Logs {
        /// Lines from the end.
        #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
        #[arg(value_parser = at_least::<usize>(0))]
        lines: usize,
        /// Go on showing what comes.
        #[arg(short, long)]
        follow: bool,
    },
    /// Make it a service of the system, which starts with your session.
    Install {
        /// Print what would be written and run, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Stop that service and remove it.
    Uninstall {
        /// Print what would be run and removed, and do nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

/// `history`
#[derive(Debug, Args)]
pub(crate) struct History {
    /// Messages from the end.
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    #[arg(value_parser = at_least::<u32>(1))]
    pub(crate) limit: u32,
    /// Only those before this index (the `index` of --json).
    #[arg(long, value_name = "INDEX")]
    #[arg(value_parser = at_least::<u64>(0))]
    pub(crate) before: Option<u64>,
}

/// `undo`
#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// The run's number; default: the last that changed anything.
    #[arg(value_parser = at_least::<u64>(0))]
    pub(crate) run: Option<u64>,
    /// Only say what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Put back what can be, also if some files cannot.
    #[arg(long)]
    pub(crate) partly: bool,
}

/// `attach`
#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Resume behind this event of the run (`seq` of --json).
    #[arg(long, value_name = "SEQ", requires = "run")]
    #[arg(value_parser = at_least::<u64>(0))]
    pub(crate) after: Option<u64>,
    /// The run that `--after` belongs to.
    #[arg(long, value_name = "RUN", requires = "after")]
    #[arg(value_parser = at_least::<u64>(0))]
    pub(crate) run: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_go_before_and_behind() {
        for line in [
            "crabtalk --agent a --json kill",
            "crabtalk kill --agent a --json",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert_eq!(cli.global.agent.as_deref(), Some("a"), "{line}");
            assert!(cli.global.json && matches!(cli.command, Some(Command::Kill)));
        }
    }
}
