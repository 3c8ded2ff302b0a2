//! The command line: `run`, and commands to a running NEXUS.

mod args;
mod aside;
mod show;

use crate::backend::Reply;
use crate::clock::Clock;
use crate::config::Member;
use crate::control::Watching;
use crate::files::{self, Files};
use crate::name::Name;
use crate::start::{self, Places};
use crate::texts;
use crate::world::{Answer, Command, Entry};
use args::{Args, Task, Verb};
use aside::Aside;
use clap::Parser;
use clap::error::ErrorKind;
use crabtalk_client::{Client, Endpoint};
use crabtalk_guardian::GuardianCommand;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// The configuration that `init` writes.
const EXAMPLE: &str = include_str!("templates/nexus.toml");

/// The exit code and the message of a failure.
struct Failed(u8, String);

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(1, error.to_string())
    }
}

impl Failed {
    /// Prints the error in one line; with `--json`, as the error object of `crabtalk`.
    fn told(self, json: bool) -> ExitCode {
        let Self(exit, message) = self;
        let line = match json {
            true => serde_json::json!({
                "type": "error", "code": null, "exit": exit, "message": message,
            })
            .to_string(),
            false => format!("crabtalk nexus: {message}"),
        };
        tell(&line);
        ExitCode::from(exit)
    }
}

/// Runs the command line.
pub fn main() -> ExitCode {
    crabtalk_render::screen::settle_colors();
    let json = std::env::args_os().any(|word| word == "--json");
    let args = match Args::try_parse() {
        Ok(args) => args,
        // Help and version are not errors; without a command the help is shown.
        Err(error) if !error.use_stderr() || !json && is_help(&error) => error.exit(),
        Err(error) => return Failed(2, in_a_line(&error)).told(json),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => {
            let done = runtime.block_on(obey(args));
            // A hanging git would delay the exit.
            runtime.shutdown_background();
            done
        }
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => failed.told(json),
    }
}

fn is_help(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

/// Formats an error of the command line in one line.
fn in_a_line(error: &clap::Error) -> String {
    if is_help(error) {
        return "a command is missing; `crabtalk nexus --help` lists them".into();
    }
    let said = error.to_string();
    let said = said.strip_prefix("error: ").unwrap_or(&said);
    let mut parts = said.split("\n\n").map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        words.join(" ")
    });
    let what = parts.next().unwrap_or_default();
    match parts.find_map(|part| part.strip_prefix("Usage: ").map(str::to_owned)) {
        Some(usage) => format!("{what}; write `{usage}`"),
        None => format!("{what}; see `crabtalk nexus --help`"),
    }
}

fn places() -> Result<Places, Failed> {
    let user_home = std::env::var_os("HOME").map(PathBuf::from);
    let user_home = user_home.ok_or_else(|| Failed(1, "HOME is not set".into()))?;
    let home = std::env::var_os("CRABTALK_HOME").map(PathBuf::from);
    let home = home.unwrap_or_else(|| user_home.join(".crabtalk"));
    let guardian = GuardianCommand::own();
    let guardian = guardian.map_err(|e| Failed(1, format!("cannot find this program: {e}")))?;
    Ok(Places {
        home,
        user_home,
        guardian,
    })
}

async fn obey(args: Args) -> Result<(), Failed> {
    let places = places()?;
    let json = args.json;
    let command = match args.verb {
        Verb::Run { lines } => return run(&places, lines).await,
        Verb::Init => return init(&places),
        Verb::Log { agent, count } => return log(&places, agent.as_ref(), count, json),
        Verb::Explain { what } => return explain(&places, &what, json),
        Verb::Attach { agent } => return attach(&places, agent).await,
        Verb::Say(command) => command,
        Verb::Send { text } => Command::Send {
            text: text.join(" "),
        },
        Verb::Task {
            what: Task::Show { task },
        } => return show_task(&places, task, json).await,
        Verb::Task { what } => what.command(),
        Verb::Approve {
            agent,
            answer,
            always,
            prompt,
        } => {
            let reply = match (always, answer.as_slice()) {
                (true, _) => Reply::Always,
                (false, []) => Reply::Allow,
                (false, words) => Reply::Text(words.join(" ")),
            };
            Command::Reply {
                agent,
                prompt,
                reply,
            }
        }
        Verb::Deny {
            agent,
            reason,
            prompt,
        } => Command::Reply {
            agent,
            prompt,
            reply: Reply::Deny(reason.join(" ")),
        },
        Verb::Monitor => return monitor(&places).await,
    };
    if command == (Command::Inbox { keep: false }) {
        return inbox(&places, json).await;
    }
    told_answer(say(&places, &command).await?, json)
}

/// Shows one task with its whole text.
async fn show_task(places: &Places, id: u64, json: bool) -> Result<(), Failed> {
    let Answer::Tasks { mut tasks } = say(places, &Command::Tasks).await? else {
        return Err(Failed(1, "unexpected answer from NEXUS".into()));
    };
    tasks.retain(|(known, _)| *known == id);
    match tasks.first() {
        None => Err(Failed(1, format!("no task t{id}"))),
        Some((_, task)) if !json => show::task(id, task),
        Some(_) => show::json(&Answer::Tasks { tasks }),
    }
}

fn told_answer(answer: Answer, json: bool) -> Result<(), Failed> {
    if json {
        return show::json(&answer);
    }
    show::answer(answer)
}

/// Shows ADMIN's mail and marks it as read after printing, so that a closed pipe or a
/// full disk leaves it unread.
async fn inbox(places: &Places, json: bool) -> Result<(), Failed> {
    let answer = say(places, &Command::Inbox { keep: true }).await?;
    let last = match &answer {
        Answer::Inbox { letters } => letters.iter().map(|(id, _)| *id).max(),
        Answer::Done { .. }
        | Answer::Refused { .. }
        | Answer::Status { .. }
        | Answer::Board { .. }
        | Answer::Tasks { .. }
        | Answer::Look { .. } => None,
    };
    told_answer(answer, json)?;
    if let Some(upto) = last {
        say(places, &Command::Read { upto }).await?;
    }
    Ok(())
}

async fn say(places: &Places, command: &Command) -> Result<Answer, Failed> {
    let answer = crate::control::say(&places.state(), command).await?;
    answer.ok_or_else(none_runs)
}

fn none_runs() -> Failed {
    let why = "no NEXUS runs; start it with `crabtalk nexus run`";
    Failed(3, why.into())
}

async fn run(places: &Places, lines: bool) -> Result<(), Failed> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let (left, leaves) = oneshot::channel();
    let stop = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up.recv() => {}
            Ok(()) = leaves => {}
        }
    };
    start_daemon(places).await;
    let plain = lines || crabtalk_render::screen::is_plain();
    let mut aside = None;
    let begin = || aside = Aside::begin(places.state(), plain, left);
    let ran = start::run(places, Clock::system(), begin, stop).await;
    if let Some(aside) = aside {
        aside.end();
    }
    ran?;
    if !plain {
        tell("NEXUS ended; the agents keep running");
    }
    Ok(())
}

/// Shows the board of a running NEXUS, or prints entries if a board cannot be
/// drawn.
async fn monitor(places: &Places) -> Result<(), Failed> {
    let state = places.state();
    if crabtalk_render::screen::is_plain() {
        entries(&state, &mut io::stdout()).await?;
        return Err(Failed(3, "NEXUS ended".into()));
    }
    // Reports a missing NEXUS before the board begins.
    say(places, &Command::Status).await?;
    Ok(crate::board::show(&state, false, std::future::pending()).await?)
}

/// Prints entries of the NEXUS of a folder until it ends.
async fn entries(folder: &Path, out: &mut impl Write) -> Result<(), Failed> {
    let mut watching = Watching::begin(folder).await?.ok_or_else(none_runs)?;
    while let Some(answer) = watching.next().await? {
        let Answer::Board { entries, .. } = answer else {
            return show::answer(answer);
        };
        for entry in entries {
            writeln!(out, "{}", show::entry(&entry))?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Prints a line for the person; standard error may be closed.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Starts the daemon if the team has agents of the daemon. If that fails they report it, and
/// agents in terminals continue.
async fn start_daemon(places: &Places) {
    let needs = |team: crate::config::Team| {
        let may = team.start_daemon.unwrap_or(true);
        may && team.agents.values().any(Member::is_of_daemon)
    };
    // An invalid configuration is reported when NEXUS runs.
    if !places.team().is_ok_and(needs) {
        return;
    }
    let name = format!("nexus/{}", crabtalk_client::VERSION);
    let client = Client::new(Endpoint::of_home(&places.home), name);
    let said = match client.find_or_start(&start::starter(places)).await {
        Ok(true) => "started the daemon".to_owned(),
        Ok(false) => return,
        Err(error) => format!("agents of the daemon wait until it runs: {error}"),
    };
    tell(&said);
}

fn init(places: &Places) -> Result<(), Failed> {
    let path = places.config();
    let mut out = io::stdout();
    let failed = |error| Failed(1, format!("cannot write {}: {error}", path.display()));
    if files::write_new(&path, EXAMPLE).map_err(failed)? {
        writeln!(out, "wrote {}", path.display())?;
        let next = "name your agents there, then run `crabtalk nexus init` again";
        return Ok(writeln!(out, "{next}")?);
    }
    let team = places.team()?;
    let files = Files::new(&team);
    let made = files.init()?;
    for path in &made {
        writeln!(out, "wrote {}", team.root.join(path).display())?;
    }
    let commit = files
        .commit(&made, "Files of the team")
        .map_err(|why| Failed(1, why))?;
    writeln!(out, "{}", commit.what)?;
    Ok(())
}

fn log(places: &Places, agent: Option<&Name>, count: usize, json: bool) -> Result<(), Failed> {
    let is_told = |entry: &Entry| agent.is_none() || entry.agent.as_ref() == agent;
    let entries = show::last(&places.state(), count, is_told)?;
    // The log also knows agents that left the team.
    if let Some(name) = agent.filter(|_| entries.is_empty()) {
        let team = places.team().map(|team| team.agents).unwrap_or_default();
        if !team.contains_key(name) {
            return Err(Failed(1, texts::nobody(name, team.keys())));
        }
    }
    print(entries, json, show::entry)
}

/// Prints entries as JSON lines or as text.
fn print(
    entries: impl IntoIterator<Item = Entry>,
    json: bool,
    shown: fn(&Entry) -> String,
) -> Result<(), Failed> {
    let mut out = io::stdout();
    for entry in entries {
        match json {
            true => writeln!(out, "{}", serde_json::to_string(&entry)?)?,
            false => writeln!(out, "{}", shown(&entry))?,
        }
    }
    Ok(())
}

/// Explains an entry by its causes, or prints an agent's last
/// actions.
fn explain(places: &Places, what: &str, json: bool) -> Result<(), Failed> {
    let number = what.trim_start_matches('#');
    let chosen = match number.parse::<u64>() {
        Ok(n) => show::chain(&places.state(), n)?,
        // The number is larger than any entry's.
        Err(_) if number.starts_with(|c: char| c.is_ascii_digit()) => Vec::new(),
        Err(_) => {
            let name: Name = what.parse().map_err(|why| Failed(2, why))?;
            show::last_acts(&places.state(), &name)?
        }
    };
    if chosen.is_empty() {
        return Err(Failed(1, format!("no log entries about {what}")));
    }
    print(chosen, json, show::explained)
}

async fn attach(places: &Places, agent: Name) -> Result<(), Failed> {
    let answer = say(places, &Command::Look { agent }).await?;
    let Answer::Look { text, attach } = answer else {
        return show::answer(answer);
    };
    let text = show::visible(&text);
    let [program, rest @ ..] = attach.as_slice() else {
        writeln!(io::stdout(), "{text}")?;
        return Ok(());
    };
    if !io::stdout().is_terminal() {
        writeln!(io::stdout(), "{text}\n{}", attach.join(" "))?;
        return Ok(());
    }
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new(program).args(rest).exec();
    Err(Failed(
        1,
        format!("cannot run {}: {error}", attach.join(" ")),
    ))
}
