//! Help texts: the groups of commands, and messages for invalid command lines.

use super::Cli;
use crate::error::Error;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// Heading of the options that all commands accept.
pub(super) const GLOBAL: &str = "Global options";

/// The groups of commands in `crabtalk --help`.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Talk", &["chat", "ask", "attach", "steer", "kill"]),
    (
        "Conversations",
        &[
            "conversations",
            "history",
            "search",
            "archives",
            "compact",
            "new",
            "resume",
            "export",
            "diff",
            "undo",
        ],
    ),
    (
        "Questions and approvals",
        &["asks", "reply", "approve", "deny", "approvals"],
    ),
    (
        "Agents",
        &["agents", "memory", "skills", "mcps", "trust", "components"],
    ),
    (
        "Automation",
        &["cron", "subscriptions", "publish", "events"],
    ),
    (
        "Setup",
        &[
            "init",
            "doctor",
            "config",
            "models",
            "providers",
            "tokens",
            "remote",
            "completions",
            "man",
        ],
    ),
    (
        "Operation",
        &["daemon", "stats", "top", "audit", "backup", "restore"],
    ),
];

/// Columns of a command's name in the list.
const NAME_WIDTH: usize = 15;

impl Cli {
    /// Parses a command line that begins with the program's name.
    pub(crate) fn read(argv: &[OsString]) -> Result<Self, clap::Error> {
        let mut command = grouped(Self::command());
        let matches = command.try_get_matches_from_mut(argv)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// The root command with its subcommands in groups.
fn grouped(root: Command) -> Command {
    let heading = root.get_styles().get_header().to_owned();
    let mut list = String::new();
    for (group, names) in GROUPS {
        list.push_str(&format!("\n\n{heading}{group}:{heading:#}"));
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            list.push_str(&format!("\n  {name:NAME_WIDTH$}{about}"));
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}{list}\n\n{{options}}{{after-help}}"
    );
    root.help_template(template)
}

/// The text of `--help`, in which a subcommand refers to the global options instead of
/// repeating them.
pub(crate) fn text(error: &clap::Error) -> String {
    let text = error.render().ansi().to_string();
    let is_root = GROUPS
        .iter()
        .all(|(group, _)| text.contains(&format!("{group}:")));
    match text.find(&format!("{GLOBAL}:")) {
        Some(begin) if !is_root => {
            // The heading may begin with a style.
            let begin = text[..begin].rfind('\n').unwrap_or(begin);
            format!(
                "{}\nGlobal options: see `crabtalk --help`\n",
                text[..begin].trim_end_matches('\n').to_owned() + "\n"
            )
        }
        _ => text,
    }
}

/// The error for an invalid command line, in one line.
pub(crate) fn usage(error: &clap::Error) -> Error {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::Usage("a command is missing; `--help` lists them".to_owned());
    }
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let ends = ["\n\nUsage:", "\n\nFor more information"];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    let text = text[..end.unwrap_or(text.len())].replace("\n\n", "; ");
    let words: Vec<&str> = text.split_whitespace().collect();
    Error::Usage(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &[&str]) -> String {
        let argv: Vec<OsString> = words.iter().map(OsString::from).collect();
        anstream::adapter::strip_str(&text(&Cli::read(&argv).unwrap_err())).to_string()
    }

    #[test]
    fn help_lists_each_command_once_with_its_description() {
        let text = help(&["crabtalk", "--help"]);
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let about = command.get_about().expect(name).to_string();
            let line = format!("\n  {name:NAME_WIDTH$}{about}\n");
            assert_eq!(text.matches(&line).count(), 1, "{name}: {text}");
        }
        assert!(text.contains("--no-start"), "{text}");
    }

    #[test]
    fn subcommand_help_omits_the_global_options() {
        for words in [
            &["crabtalk", "cron", "edit", "--help"][..],
            &["crabtalk", "history", "-h"],
            &["crabtalk", "init", "--help"],
            &["crabtalk", "mcps", "--help"],
        ] {
            let text = help(words);
            assert!(!text.contains("--no-start"), "{text}");
            assert!(
                text.ends_with("Global options: see `crabtalk --help`\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn unreadable_lines_are_one_line_errors() {
        for (line, says) in [
            ("crabtalk history --limit 0", "0 is not in 1.."),
            ("crabtalk history --limt 3", "'--limit'"),
            ("crabtalk cron rm", "not provided: <ID>"),
            ("crabtalk stats --by week", "[possible values: day, agent,"),
            ("crabtalk daemon restrat", "'restart'"),
            ("crabtalk --mode yolo", "read-only, ask, auto, full"),
        ] {
            let argv: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let said = usage(&Cli::read(&argv).unwrap_err()).to_string();
            assert!(said.contains(says), "{line}: {said}");
            assert!(
                !said.contains('\n') && !said.contains("Usage"),
                "{line}: {said}"
            );
        }
    }
}
