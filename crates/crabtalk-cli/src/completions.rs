//! Shell completions: the scripts, and the names that they ask this program for.
//!
//! Invariants: a request for names prints names or nothing, starts no daemon, and ends
//! soon; without names the shell completes from the command line itself.

use crate::args::{Cli, Global};
use crate::context::Context;
use crate::project::PERSON;
use crate::topic;
use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;
use crabtalk_client::Client;
use crabtalk_proto::{ListAgentsMsg, ListConversationsMsg, ListModelsMsg};
use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

const PROGRAM: &str = "crabtalk";

/// First argument of a request for names; the words up to the cursor follow.
pub(crate) const REQUEST: &str = "__complete";

/// Time for the daemon, so that a key press is not delayed.
const ANSWER_WITHIN: Duration = Duration::from_millis(80);

/// Options whose values are names of the daemon.
const OPTIONS: [&str; 6] = ["agent", "guest", "model", "as", "project", "topic"];

/// Kinds of names of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Agents,
    Models,
    Senders,
    Projects,
    Topics,
}

/// The completion script of a shell.
pub(crate) fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), PROGRAM, &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script + BASH,
        Shell::Zsh => with_names_in_zsh(&script),
        Shell::Fish => script + FISH + &fish_options(),
        Shell::Elvish | Shell::PowerShell | _ => script,
    }
}

const BASH: &str = r#"
_crabtalk_names() {
    local name
    COMPREPLY=()
    while IFS= read -r name; do
        COMPREPLY+=("$name")
    done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
    [ "${#COMPREPLY[@]}" -gt 0 ] || _crabtalk "$@"
}

complete -F _crabtalk_names -o bashdefault -o default crabtalk
"#;

const ZSH: &str = r#"_crabtalk() {
    local -a names
    names=(${(f)"$("${words[1]}" __complete "${(@)words[1,CURRENT]}" 2>/dev/null)"})
    if (( $#names )); then
        compadd -a names
    else
        _crabtalk_words "$@"
    fi
}

"#;

const FISH: &str = r#"
function __crabtalk_names
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words 2>/dev/null
end

complete -c crabtalk -n 'count (__crabtalk_names) >/dev/null' -f -a '(__crabtalk_names)'
"#;

/// The zsh script, which completes names first, else calls the generated function.
fn with_names_in_zsh(script: &str) -> String {
    let script = script.replacen("\n_crabtalk() {", "\n_crabtalk_words() {", 1);
    let end = script
        .rfind("\nif [ \"$funcstack[1]\"")
        .unwrap_or(script.len());
    format!("{}\n{ZSH}{}", &script[..end], &script[end..])
}

fn fish_options() -> String {
    let line = |option| {
        let short = if option == "topic" { " -s t" } else { "" };
        format!("complete -c crabtalk{short} -l {option} -x -a '(__crabtalk_names)'\n")
    };
    OPTIONS.map(line).concat()
}

/// Prints the names that complete the last word.
pub(crate) async fn answer(context: &mut Context, words: &[OsString]) {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut command = Cli::command();
    command.build();
    let Some(names) = names_at(&command, &words) else {
        return;
    };
    // The sender of the folder; a broken list of projects gives none.
    let _ = context.find_speaker(false);
    let found = find(context, names);
    let found = tokio::time::timeout(ANSWER_WITHIN, found).await;
    let begun = words.last().map(String::as_str).unwrap_or_default();
    let begun = begun.rsplit_once('=').map_or(begun, |(_, value)| value);
    let mut found = found.ok().flatten().unwrap_or_default();
    found.retain(|name| name.starts_with(begun) && !name.chars().any(char::is_control));
    found.sort();
    found.dedup();
    let text: String = found.iter().map(|name| format!("{name}\n")).collect();
    // A closed shell needs no names.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// The global options that decide which daemon is asked.
pub(crate) fn options(words: &[OsString]) -> Global {
    let home = words.windows(2).find(|pair| pair[0] == "--home");
    Global {
        home: home.map(|pair| pair[1].clone().into()),
        no_start: true,
        ..Global::default()
    }
}

async fn find(context: &Context, names: Names) -> Option<Vec<String>> {
    let client = context.known_client();
    if !client.endpoint().is_listening().await.ok()? {
        return None;
    }
    match names {
        Names::Agents => {
            let list = client.call(ListAgentsMsg {}).await.ok()?;
            Some(list.agents.into_iter().map(|agent| agent.name).collect())
        }
        Names::Models => {
            let list = client.call(ListModelsMsg {}).await.ok()?;
            Some(list.models.into_iter().map(|model| model.name).collect())
        }
        Names::Senders => senders(client).await,
        Names::Projects => Some(projects(&senders(client).await?)),
        Names::Topics => Some(topics(&senders(client).await?, &context.sender())),
    }
}

/// Senders of all conversations.
async fn senders(client: &Client) -> Option<Vec<String>> {
    let list = client.call(ListConversationsMsg::default()).await.ok()?;
    let all = list.conversations.into_iter();
    Some(all.map(|conversation| conversation.sender).collect())
}

/// The projects of senders `user/PROJECT` and their topics.
fn projects(senders: &[String]) -> Vec<String> {
    let project = |sender: &String| {
        let (base, _) = topic::split(sender);
        base.strip_prefix(PERSON)?
            .strip_prefix('/')
            .map(str::to_owned)
    };
    senders.iter().filter_map(project).collect()
}

/// The topics of the folder whose conversation has this sender.
fn topics(senders: &[String], own: &str) -> Vec<String> {
    let own = if own.is_empty() { PERSON } else { own };
    let all = senders.iter().map(|sender| topic::split(sender));
    all.filter(|(base, _)| *base == own)
        .map(|(_, topic)| topic.to_owned())
        .collect()
}

/// The kind of names that the last word takes.
fn names_at(root: &Command, words: &[String]) -> Option<Names> {
    let (mut command, mut path, mut place) = (root, Vec::new(), 0);
    // Bash splits `--agent=a`.
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|w| *w != "=")
        .collect();
    let (last, before) = words.get(1..)?.split_last()?;
    let mut option: Option<&Arg> = None;
    for word in before {
        if option.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            option = option_of(command, word);
            continue;
        }
        match command.find_subcommand(word).filter(|_| place == 0) {
            Some(below) => {
                command = below;
                path.push(*word);
            }
            None => place += 1,
        }
    }
    if let Some((name, _)) = last.split_once('=').filter(|_| last.starts_with("--")) {
        option = option_of(command, name);
    } else if last.starts_with('-') && option.is_none() {
        return None;
    }
    let argument = match option {
        Some(option) => option,
        None => command.get_positionals().nth(place)?,
    };
    match (
        path.first().copied().unwrap_or_default(),
        argument.get_id().as_str(),
    ) {
        (_, "agent" | "guest") => Some(Names::Agents),
        (_, "model") => Some(Names::Models),
        (_, "sender") => Some(Names::Senders),
        (_, "project") => Some(Names::Projects),
        (_, "topic") => Some(Names::Topics),
        ("agents", "name") if !path.contains(&"new") => Some(Names::Agents),
        ("models", "name") => Some(Names::Models),
        _ => None,
    }
}

/// An option that takes a value.
fn option_of<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let named = command.get_arguments().find(|arg| {
        let long = word.strip_prefix("--");
        let short = word.strip_prefix('-').and_then(|word| word.chars().next());
        match long {
            Some(long) => arg.get_long() == Some(long),
            None => arg.get_short().is_some() && arg.get_short() == short && word.len() == 2,
        }
    });
    named.filter(|arg| arg.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_decides_the_names() {
        let mut root = Cli::command();
        root.build();
        for (line, want) in [
            ("crabtalk --agent ", Some(Names::Agents)),
            ("crabtalk ask --guest re", Some(Names::Agents)),
            ("crabtalk agents show ", Some(Names::Agents)),
            ("crabtalk --json agents rm a", Some(Names::Agents)),
            ("crabtalk agents new ", None),
            ("crabtalk --model=so", Some(Names::Models)),
            ("crabtalk --model = so", Some(Names::Models)),
            ("crabtalk models use ", Some(Names::Models)),
            ("crabtalk history --as ", Some(Names::Senders)),
            ("crabtalk --project ", Some(Names::Projects)),
            ("crabtalk -t ", Some(Names::Topics)),
            ("crabtalk --agent crab mod", None),
            ("crabtalk --ag", None),
            ("crabtalk agents show a b", None),
            ("crabtalk", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(names_at(&root, &words), want, "{line}");
        }
    }

    #[test]
    fn senders_have_projects_and_topics() {
        let senders = ["user/shop", "user/shop/fix", "user", "user/-/trip", "tg:1"];
        let senders = senders.map(str::to_owned);
        assert_eq!(projects(&senders), ["shop", "shop"]);
        assert_eq!(topics(&senders, "user/shop"), ["main", "fix"]);
        assert_eq!(topics(&senders, ""), ["main", "trip"]);
    }

    #[test]
    fn scripts_ask_for_names() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert_eq!(script.matches(REQUEST).count(), 1, "{shell}");
        }
        let zsh = script(Shell::Zsh);
        assert_eq!(zsh.matches("\n_crabtalk_words() {").count(), 1);
        assert_eq!(zsh.matches("\n_crabtalk() {").count(), 1);
    }
}
