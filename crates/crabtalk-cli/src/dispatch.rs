//! Runs the command of a command line.

use crate::args::{self, Cli, Command, Daemon, Global, Mcps, Sub};
use crate::commands;
use crate::completions;
use crate::context::Context;
use crate::error::Error;
use crate::follow::{Console, Interrupts};
use crate::programs::find_program;
use crate::remotes;
use crate::screen::Screen;
use crate::system::{self, ControllingTerminal};
use crate::terminal::Terminal;
use crate::text::summary;
use clap::CommandFactory;
use crabtalk_config::{Home, is_name, nearest};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Options of `daemon run`.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// The home folder; it may not exist yet.
    pub home: Home,
    /// Whether a client started it: standard error is `logs/daemon.log` and it has left
    /// the terminal's session.
    pub detached: bool,
}

/// Commands that need no connection to the daemon.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Runs the daemon in the foreground.
    pub run_daemon: fn(DaemonOptions) -> anyhow::Result<()>,
    /// Writes a backup of a home to a file; returns a description.
    pub backup: fn(&Home, &Path) -> anyhow::Result<String>,
    /// Replaces a home with a backup; returns a description.
    pub restore: fn(&Home, &Path) -> anyhow::Result<String>,
}

/// Runs the program; the first argument is its name.
pub fn main(args: impl IntoIterator<Item = OsString>, host: &Host) -> ExitCode {
    crabtalk_render::screen::settle_colors();
    let argv: Vec<OsString> = args.into_iter().collect();
    if completions::answer(&argv) {
        return ExitCode::SUCCESS;
    }
    let cli = match Cli::read(&argv).map(|cli| resolve(cli, &argv)) {
        Ok(Ok(cli)) => cli,
        Ok(Err(error)) => return fail(&error, wants_json(&argv)),
        // Help goes to standard output, or to standard error if a command is
        // missing.
        Err(error) if error.use_stderr() && (wants_json(&argv) || !is_help(&error)) => {
            return fail(&args::usage(&error), wants_json(&argv));
        }
        Err(error) => {
            let printed = print_help(&error);
            return match printed.map_err(Error::from) {
                Err(error) => fail(&error, wants_json(&argv)),
                Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
            };
        }
    };
    let json = cli.global.json;
    match run(cli, host) {
        Ok(code) => code,
        Err(error) => fail(&error, json),
    }
}

/// Prints help to standard output, or to standard error if a command is missing.
fn print_help(error: &clap::Error) -> std::io::Result<()> {
    let text = args::help(error);
    if error.use_stderr() {
        write!(anstream::stderr(), "{text}")
    } else {
        let mut out = anstream::stdout();
        write!(out, "{text}")?;
        out.flush()
    }
}

/// Whether an invalid command line contains `--json`.
fn wants_json(argv: &[OsString]) -> bool {
    argv.iter().any(|word| word == "--json")
}

fn is_help(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

fn fail(error: &Error, json: bool) -> ExitCode {
    if !error.is_silent() {
        let mut screen = Screen::stdio();
        // If standard error is closed, the message is lost.
        let _ = match json {
            true => screen.json_problem(&error.to_json()),
            false => screen.problem(&format!("crabtalk: {error}")),
        };
    }
    error.exit_code()
}

/// Resolves an unknown command: a program next to this one or on PATH, or text with
/// spaces as a question.
fn resolve(cli: Cli, argv: &[OsString]) -> Result<Cli, Error> {
    let Some(Command::External(words)) = &cli.command else {
        return Ok(cli);
    };
    let first = words
        .first()
        .map(|word| word.to_string_lossy())
        .unwrap_or_default();
    if is_name(&first)
        && let Some(program) = find_program(&first)
    {
        let before = &argv[1..argv.len() - words.len()];
        return Err(exec(&program, before, &words[1..], &cli.global));
    }
    if first == "nexus" {
        return Err(Error::Usage(NEXUS_NOT_INSTALLED.to_owned()));
    }
    if !is_question(words) {
        return Err(unknown_command(&first));
    }
    // Parses again as `ask`, which allows options after the question.
    let at = argv.len() - words.len();
    let mut argv = argv.to_vec();
    argv.insert(at, "ask".into());
    Cli::read(&argv).map_err(|error| args::usage(&error))
}

/// The error for a missing program of this project, with install instructions.
const NEXUS_NOT_INSTALLED: &str = "`crabtalk nexus` is the program crabtalk-nexus, found neither beside \
     crabtalk nor on PATH; in the sources, `cargo install --path crates/crabtalk-nexus` installs it";

/// Whether the words are a question: one argument with spaces, then only options.
fn is_question(words: &[OsString]) -> bool {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let is_text = |word: &OsString| text(word).trim().contains(char::is_whitespace);
    match words {
        [only] => is_text(only),
        [first, option, ..] => is_text(first) && text(option).starts_with('-'),
        [] => false,
    }
}

fn unknown_command(word: &str) -> Error {
    let root = Cli::command();
    let names = root.get_subcommands().map(clap::Command::get_name);
    let hint = match nearest(word, names) {
        Some(command) => format!("did you mean `{command}`?"),
        None => "see `crabtalk --help`.".to_owned(),
    };
    let word = summary(word);
    Error::Usage(format!(
        "unknown command `{word}`; {hint} A question goes in quotes."
    ))
}

/// Replaces this process by the program; returns only on failure.
fn exec(program: &Path, before: &[OsString], behind: &[OsString], global: &Global) -> Error {
    let mut command = std::process::Command::new(program);
    command.args(without_home(before)).args(behind);
    if let Some(home) = &global.home {
        let home = std::path::absolute(home).unwrap_or_else(|_| home.clone());
        command.env("CRABTALK_HOME", home);
    }
    let error = command.exec();
    Error::io(format_args!("run {}", program.display()), &error)
}

/// Options without `--home`, which other programs read from the environment.
fn without_home(options: &[OsString]) -> Vec<&OsString> {
    let mut is_home = false;
    let others = options.iter().filter(|word| {
        let is_value = std::mem::replace(&mut is_home, *word == "--home");
        !is_value && !is_home && !word.as_encoded_bytes().starts_with(b"--home=")
    });
    others.collect()
}

pub(crate) fn home(global: &Global) -> Result<Home, Error> {
    let user_home = std::env::var_os(system::USER_HOME).map(PathBuf::from);
    Ok(match &global.home {
        Some(home) => Home::at(home, user_home)?,
        None => Home::from_env(&|name| std::env::var_os(name))?,
    })
}

fn run(cli: Cli, host: &Host) -> Result<ExitCode, Error> {
    let home = home(&cli.global)?;
    let elsewhere = match &cli.global.connect {
        Some(connect) if is_of_here(cli.command.as_ref()) => {
            return Err(Error::Usage(format!(
                "--connect {connect}: this command works only on the daemon's machine; run it there"
            )));
        }
        Some(connect) => Some(remotes::endpoint(&home, connect)?),
        None => None,
    };
    if let Some(Command::Daemon(Daemon::Run { detached })) = cli.command {
        if detached {
            system::leave_session();
        }
        (host.run_daemon)(DaemonOptions { home, detached })
            .map_err(|error| Error::Failed(format!("{error:#}")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let copied = match &cli.command {
        Some(Command::Backup { file }) => Some((host.backup)(&home, file)),
        Some(Command::Restore { file }) => Some((host.restore)(&home, file)),
        Some(_) | None => None,
    };
    if let Some(copied) = copied {
        let said = copied.map_err(|error| Error::Failed(format!("{error:#}")))?;
        let mut screen = Screen::stdio();
        match cli.global.json {
            true => screen.json(&serde_json::json!({"message": said}))?,
            false => screen.line(&said)?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let console = console(cli.command.as_ref());
        let mut context = Context::new(home, cli.global, console);
        if let Some(elsewhere) = elsewhere {
            context = context.at(elsewhere);
        }
        commands::run(
            &mut context,
            cli.command.unwrap_or(Command::Chat(Default::default())),
        )
        .await
    });
    // A thread may block on standard input forever.
    runtime.shutdown_background();
    result.map(|()| ExitCode::SUCCESS)
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::io("begin", &e))
}

pub(crate) fn console(command: Option<&Command>) -> Console {
    Console {
        screen: Screen::stdio(),
        terminal: terminal(command),
        interrupts: interrupts(),
    }
}

/// Whether a command uses files and processes of this machine.
fn is_of_here(command: Option<&Command>) -> bool {
    matches!(
        command,
        Some(
            Command::Trust(_)
                | Command::Remote(_)
                | Command::Init(_)
                | Command::Backup { .. }
                | Command::Restore { .. }
                | Command::Daemon(
                    Daemon::Run { .. }
                        | Daemon::Start
                        | Daemon::Stop
                        | Daemon::Restart { .. }
                        | Daemon::Logs { .. }
                )
        )
    )
}

/// The terminal for commands that ask.
fn terminal(command: Option<&Command>) -> Option<Box<dyn Terminal>> {
    if !matches!(
        command,
        None | Some(
            Command::Ask(_)
                | Command::Chat(_)
                | Command::Attach(_)
                | Command::Approve { .. }
                | Command::Remote(_)
                | Command::Init(_)
                | Command::Mcps(Sub {
                    command: Some(Mcps::Import { .. } | Mcps::Login { .. })
                })
        )
    ) {
        return None;
    }
    let terminal = ControllingTerminal::open()?;
    Some(Box::new(terminal))
}

/// Ctrl-C. The signal keeps its default action until this is first polled.
fn interrupts() -> Interrupts {
    Box::pin(futures_util::stream::unfold(None, async |signals| {
        let mut signals = match signals {
            Some(signals) => signals,
            None => signal(SignalKind::interrupt()).ok()?,
        };
        signals.recv().await?;
        Some(((), Some(signals)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn argv(words: &[&str]) -> Vec<OsString> {
        std::iter::once("crabtalk")
            .chain(words.iter().copied())
            .map(OsString::from)
            .collect()
    }

    fn resolved(words: &[&str]) -> Result<Cli, Error> {
        let argv = argv(words);
        resolve(Cli::try_parse_from(&argv).unwrap(), &argv)
    }

    #[test]
    fn text_with_spaces_is_a_question() {
        for (words, text, json) in [
            (&["fix the test"][..], "fix the test", false),
            (&["fix the test", "--json"][..], "fix the test", true),
            (
                &["--json", "what is this", "--no-stdin"][..],
                "what is this",
                true,
            ),
        ] {
            let cli = resolved(words).unwrap();
            assert_eq!(cli.global.json, json, "{words:?}");
            let Some(Command::Ask(ask)) = cli.command else {
                panic!("{words:?}")
            };
            assert_eq!(ask.text.join(" "), text);
        }
    }

    #[test]
    fn unknown_command_is_a_usage_error_with_a_hint() {
        for (words, want) in [
            (&["histroy", "crab"][..], "did you mean `history`?"),
            (&["summarize", "this", "file"], "see `crabtalk --help`."),
            (&["two words", "and more"], "see `crabtalk --help`."),
            (&["frobnicate", "-n", "1"], "see `crabtalk --help`."),
        ] {
            let want = format!(
                "unknown command `{}`; {want} A question goes in quotes.",
                words[0]
            );
            match resolved(words) {
                Err(Error::Usage(message)) => assert_eq!(message, want),
                other => panic!("{words:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn options_before_a_program_are_passed_to_it() {
        let words = [
            "--json",
            "--home",
            "/h",
            "--agent",
            "a",
            "--home=x",
            "--no-start",
        ];
        let words = words.map(OsString::from);
        let passed = without_home(&words);
        assert_eq!(passed, ["--json", "--agent", "a", "--no-start"]);
    }

    #[test]
    fn missing_program_of_ours_names_its_installation() {
        assert!(NEXUS_NOT_INSTALLED.contains("cargo install --path crates/crabtalk-nexus"));
        let crate_of = concat!(env!("CARGO_MANIFEST_DIR"), "/../crabtalk-nexus");
        assert!(std::path::Path::new(crate_of).is_dir(), "{crate_of}");
    }
}
