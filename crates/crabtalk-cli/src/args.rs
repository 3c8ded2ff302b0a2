//! The command line.

mod bus;
mod config;
mod conversations;
mod cron;
mod help;
mod knowledge;
mod mcps;
mod models;
mod remote;
mod rights;

pub(crate) use bus::{Publish, Subscriptions};
pub(crate) use config::{Completions, Config, Init, Man};
pub(crate) use conversations::{Conversations, Export, Shelf, Top};
pub(crate) use cron::{Cron, CronAdd, CronEdit, CronEntry, CronOptions};
pub(crate) use help::{text as help, usage};
pub(crate) use knowledge::{Archives, Memory, Search, Skills, Trust};
pub(crate) use mcps::Mcps;
pub(crate) use models::{By, Models, Providers, Stats};
pub(crate) use remote::{Audit, LATEST_ENTRIES, Remote, Tokens};
pub(crate) use rights::{Agents, Approvals};

use crate::completions::{Names, names};
use crate::error::Error;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// CrabTalk runs AI agents on your own computer.
///
/// Without a command it opens a chat. Text with spaces is a question, as with `ask`.
#[derive(Debug, Parser)]
#[command(name = "crabtalk", version, propagate_version = true)]
#[command(infer_subcommands = false, allow_external_subcommands = true)]
#[command(after_help = "Any other NAME runs the program crabtalk-NAME, if it is installed.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

// Options of every command. Doc comments on such types would replace the descriptions
// of commands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = help::GLOBAL)]
pub(crate) struct Global {
    /// Talk to this agent [default: the configured one].
    #[arg(long, global = true, value_name = "NAME", add = names(Names::Agents))]
    pub(crate) agent: Option<String>,
    /// Speak as this sender [default: user; in a git repository user/FOLDER].
    #[arg(long = "as", global = true, value_name = "SENDER", add = names(Names::Senders))]
    pub(crate) sender: Option<String>,
    /// Use the conversation of this project from any folder; '' uses no project.
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "sender")]
    #[arg(add = names(Names::Projects))]
    pub(crate) project: Option<String>,
    /// Use the conversation of this topic in the folder; `main` means no topic.
    #[arg(
        short = 't',
        long,
        global = true,
        value_name = "NAME",
        conflicts_with = "sender",
        add = names(Names::Topics)
    )]
    pub(crate) topic: Option<String>,
    /// Use this model in place of the agent's own.
    #[arg(long, global = true, value_name = "NAME", add = names(Names::Models))]
    pub(crate) model: Option<String>,
    /// How much runs may do without asking [default: by agent and folder].
    #[arg(long, global = true, value_name = "MODE")]
    #[arg(value_parser = ["read-only", "ask", "auto", "full"])]
    pub(crate) mode: Option<String>,
    /// Work in this folder [default: the current one]; '' keeps the conversation's.
    #[arg(long, global = true, value_name = "DIR")]
    #[arg(value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub(crate) cwd: Option<PathBuf>,
    /// Print JSON, one value per line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use this home folder [default: $CRABTALK_HOME, else ~/.crabtalk].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Use a remote daemon by its name (see `crabtalk remote`).
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) connect: Option<String>,
    /// Fail instead of starting the daemon.
    #[arg(long, global = true)]
    pub(crate) no_start: bool,
}

// `help::GROUPS` orders the commands.
// Building the options of all commands takes up to a millisecond: `defer` builds those
// of the command that is called.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Chat with an agent.
    Chat(Chat),
    /// Ask one question and print the answer.
    Ask(Ask),
    /// Run, start, stop and inspect the daemon.
    #[command(subcommand)]
    Daemon(Daemon),
    /// Back up the home folder to a file, also while the daemon runs.
    Backup {
        /// The file to write; it must not exist.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Replace the home folder with a backup; the daemon must be stopped.
    Restore {
        /// A file written by `crabtalk backup`.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// List, name, search, remove and restore conversations.
    Conversations(Conversations),
    /// Show the messages of a conversation.
    History(Page),
    /// Write a conversation and its archives as Markdown, or JSON with --json.
    Export(Export),
    /// List or show the archived parts of a conversation.
    Archives(Sub<Archives>),
    /// Search memory and archives.
    Search(Search),
    /// List, read, write and import memory entries.
    Memory(Sub<Memory>),
    /// List, add, test and import MCP servers.
    Mcps(Sub<Mcps>),
    /// List, show, check and import skills.
    Skills(Sub<Skills>),
    /// List, add and remove trusted folders and skills.
    Trust(Sub<Trust>),
    /// Cancel the current run.
    Kill,
    /// Summarise the history to make room in the model's window.
    Compact {
        /// Topic that the summary should keep.
        #[arg(long, value_name = "TEXT")]
        focus: Option<String>,
    },
    /// Archive the history and start with an empty one.
    New {
        /// Start with a summary of the history; calls the model.
        #[arg(long)]
        summary: bool,
    },
    /// Continue an archive; without a number or a terminal, list the archives.
    Resume {
        /// Number of the archive (see `archives`).
        #[arg(value_name = "ARCHIVE")]
        archive: Option<u32>,
    },
    /// Send a message to the current run.
    Steer {
        /// The message.
        #[arg(required = true, num_args = 1.., value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Show the file changes of a run.
    Diff {
        /// Number of the run [default: the last one that changed files].
        run: Option<u64>,
    },
    /// Revert the file changes of a run.
    Undo(Undo),
    /// Follow the current run.
    Attach(Attach),
    /// Watch the events of all conversations.
    Events,
    /// List pending questions and approvals.
    Asks,
    /// Answer a pending question.
    Reply {
        /// Id of the question (see `asks`); required if several are pending.
        #[arg(long, value_name = "ID")]
        id: Option<String>,
        /// The answer: text, the label of an option or its number.
        #[arg(required = true, num_args = 1.., value_name = "TEXT")]
        text: Vec<String>,
    },
    /// Approve a pending tool call.
    Approve {
        /// Id of the call (see `asks`); required if several are pending.
        id: Option<String>,
        /// Always allow exactly this call.
        #[arg(long)]
        always: bool,
        /// Always allow calls that begin like this one, if offered.
        #[arg(long, conflicts_with = "always")]
        prefix: bool,
        /// Allow these hosts for the rest of the conversation, if offered.
        #[arg(long, conflicts_with_all = ["always", "prefix"])]
        conversation: bool,
        /// Do not ask for confirmation; the approval is still printed.
        #[arg(long)]
        yes: bool,
    },
    /// Deny a pending tool call.
    Deny {
        /// Id of the call (see `asks`); required if several are pending.
        id: Option<String>,
        /// Reason, shown to the model.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// List and revoke permanent approvals.
    Approvals(Sub<Approvals>),
    /// List, add and remove agents that run on events.
    Subscriptions(Sub<Subscriptions>),
    /// Publish an event to the agents that subscribe to it.
    Publish(Publish),
    /// List installed, running and connected components.
    Components,
    /// List, show, create, edit and remove agents.
    Agents(Sub<Agents>),
    /// List models, set the default one, test one.
    Models(Sub<Models>),
    /// List, add, switch and remove model providers.
    Providers(Sub<Providers>),
    /// Run agents on a schedule or at a time.
    Cron(Sub<Cron>),
    /// Show the daemon's figures and spending.
    Stats(Stats),
    /// Watch runs, agents, tokens and memory live.
    Top(Top),
    /// Set up a model provider.
    Init(Init),
    /// Check the installation and suggest fixes.
    Doctor {
        /// Do not send requests to models.
        #[arg(long)]
        offline: bool,
    },
    /// Read and change the configuration.
    Config(Sub<Config>),
    /// List, add and remove tokens for remote access.
    Tokens(Sub<Tokens>),
    /// List, add and remove remote daemons.
    Remote(Sub<Remote>),
    /// Show or verify the audit log.
    Audit(Sub<Audit>),
    /// Print shell completions.
    Completions(Completions),
    /// Print the manual pages.
    Man(Man),
    /// A program of the name crabtalk-NAME, or a question.
    #[command(external_subcommand)]
    External(Vec<OsString>),
}

// The subcommands of a command with a default one.
#[derive(Debug, Args)]
pub(crate) struct Sub<T: Subcommand> {
    #[command(subcommand)]
    pub(crate) command: Option<T>,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name, as the list shows it.
    pub(crate) name: String,
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Chat {
    /// Ring the bell and notify when a run ends or asks (also CRABTALK_BELL=1).
    #[arg(long)]
    pub(crate) bell: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// The question; standard input is appended.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Let another agent answer once, in the same conversation.
    #[arg(long, value_name = "AGENT", add = names(Names::Agents))]
    pub(crate) guest: Option<String>,
    /// Attach an image (PNG, JPEG, GIF, WebP); repeatable.
    #[arg(long, value_name = "PATH")]
    pub(crate) image: Vec<std::path::PathBuf>,
    /// Leave questions and approvals to other clients, and wait.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Do not read standard input.
    #[arg(long)]
    pub(crate) no_stdin: bool,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Daemon {
    /// Run the daemon in the foreground.
    Run {
        /// Leave the terminal's session; used when a client starts it.
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Start the daemon in the background.
    Start,
    /// Stop the daemon.
    Stop,
    /// Restart the daemon once no run is active.
    Restart {
        /// Interrupt active runs; with `resume = "auto"` they continue afterwards.
        #[arg(long)]
        now: bool,
    },
    /// Show whether the daemon runs, and its services.
    Status,
    /// Reload the configuration.
    Reload,
    /// Show the daemon's log.
    Logs {
        /// Number of lines from the end.
        #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
        lines: usize,
        /// Keep printing new lines.
        #[arg(short, long)]
        follow: bool,
    },
    /// Install the daemon as a service that starts with your session.
    Install(Planned),
    /// Stop and remove the service.
    Uninstall(Planned),
}

#[derive(Debug, Args)]
pub(crate) struct Planned {
    /// Print the steps without doing them.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Number of messages from the end.
    #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Show only messages before this index (`index` in --json).
    #[arg(long, value_name = "INDEX")]
    pub(crate) before: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Number of the run [default: the last one that changed files].
    pub(crate) run: Option<u64>,
    /// Print the changes without making them.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Revert the files that can be reverted, and skip the others.
    #[arg(long)]
    pub(crate) partly: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Attach {
    /// Continue after this event of the run (`seq` in --json).
    #[arg(long, value_name = "SEQ", requires = "run")]
    pub(crate) after: Option<u64>,
    /// Number of the run that `--after` refers to.
    #[arg(long, value_name = "RUN", requires = "after")]
    pub(crate) run: Option<u64>,
}

impl Global {
    /// Refuses options that the command does not use.
    pub(crate) fn check(&self, command: &Command) -> Result<(), Error> {
        let takes_model = matches!(
            command,
            Command::Chat(_) | Command::Ask(_) | Command::Init(_)
        );
        let takes_mode = matches!(command, Command::Chat(_) | Command::Ask(_));
        let changes_entry = matches!(
            command,
            Command::Cron(Sub {
                command: Some(Cron::Edit(_))
            })
        );
        let is_named = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.is_empty());
        for (option, is_ignored, remedy) in [
            ("--model", self.model.is_some() && !takes_model, ""),
            ("--mode", self.mode.is_some() && !takes_mode, ""),
            (
                "--agent",
                is_named(&self.agent) && changes_entry,
                CRON_KEEPS,
            ),
            ("--as", is_named(&self.sender) && changes_entry, CRON_KEEPS),
            (
                "--project",
                is_named(&self.project) && changes_entry,
                CRON_KEEPS,
            ),
            ("--topic", self.topic.is_some() && changes_entry, CRON_KEEPS),
        ] {
            if is_ignored {
                return Err(Error::Usage(format!(
                    "{option} does not apply to this command{remedy}"
                )));
            }
        }
        Ok(())
    }
}

/// The reason why `cron edit` does not accept agent and sender.
const CRON_KEEPS: &str = ": a cron entry keeps its agent and sender; remove it and add another one";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_that_a_command_ignores_are_refused() {
        for (line, want) in [
            ("ask --model m --mode ask x", ""),
            ("--agent a history", ""),
            ("--agent a cron add @daily x", ""),
            ("--agent a cron edit 1 x", "--agent does not apply"),
            ("cron edit 1 x --as u", "--as does not apply"),
            ("cron edit 1 x --project p", "--project does not apply"),
            ("kill --model m", "--model does not apply"),
            ("cron add @daily x --mode full", "--mode does not apply"),
        ] {
            let words = std::iter::once("crabtalk").chain(line.split(' '));
            let cli = Cli::try_parse_from(words).unwrap();
            let refused = cli.global.check(&cli.command.unwrap()).err();
            let said = refused.map_or(String::new(), |error| error.to_string());
            assert!(
                said.starts_with(want) && said.is_empty() == want.is_empty(),
                "{line}: {said}"
            );
        }
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
