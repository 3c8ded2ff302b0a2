//! Shell completions by clap's engine, with names from the daemon.
//!
//! Invariants: a completion starts no daemon and ends quickly; without a daemon the shell
//! completes commands and options.

use crate::args::{Cli, Command, Global};
use crate::context::Context;
use crate::dispatch::{console, home, runtime};
use crate::project::PERSON;
use crate::topic;
use clap::CommandFactory;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use crabtalk_client::Client;
use crabtalk_proto::{ListAgentsMsg, ListConversationsMsg, ListModelsMsg};
use std::ffi::OsString;
use std::io;
use std::time::Duration;

const PROGRAM: &str = "crabtalk";

/// Variable by which a shell asks for completions.
const VARIABLE: &str = "_CRABTALK_COMPLETE";

/// Time for the daemon, so that a key press is not delayed.
const ANSWER_WITHIN: Duration = Duration::from_millis(80);

/// Kinds of names from the daemon.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names {
    Agents,
    Models,
    Senders,
    Projects,
    Topics,
}

/// Answers a shell's request for completions; returns whether this was one.
pub(crate) fn answer(argv: &[OsString]) -> bool {
    let here = std::env::current_dir().ok();
    let complete = CompleteEnv::with_factory(Cli::command).var(VARIABLE);
    // Shells do not show errors of completions.
    complete.try_complete(argv, here.as_deref()).unwrap_or(true)
}

/// The script by which a shell requests completions from this program.
pub(crate) fn script(shell: Shell) -> io::Result<String> {
    let shells = Shells::builtins();
    let shell = shells
        .completer(&shell.to_string())
        .ok_or_else(|| io::Error::other("no completions for this shell"))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if shell.name() == "zsh" {
        // zsh reads a file in `fpath` at the first completion, which the file must answer.
        script.extend_from_slice(
            b"\nif [ \"$funcstack[1]\" = \"_crabtalk\" ]; then\n    \
              _clap_dynamic_completer_crabtalk \"$@\"\nfi\n",
        );
    }
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Completes the value of an argument.
pub(crate) fn names(names: Names) -> ArgValueCandidates {
    let candidates = move || {
        let found = ask(names).unwrap_or_default().into_iter();
        found.map(CompletionCandidate::new).collect()
    };
    ArgValueCandidates::new(candidates)
}

fn ask(names: Names) -> Option<Vec<String>> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let named = words.windows(2).find(|pair| pair[0] == "--home");
    let global = Global {
        home: named.map(|pair| pair[1].clone().into()),
        no_start: true,
        ..Global::default()
    };
    let home = home(&global).ok()?;
    let runtime = runtime().ok()?;
    let found = runtime.block_on(async {
        // A placeholder command that asks no questions.
        let mut context = Context::new(home, global, console(Some(&Command::Kill)));
        // The folder's sender; a broken list of projects yields none.
        let _ = context.find_speaker(false);
        tokio::time::timeout(ANSWER_WITHIN, find(&context, names)).await
    });
    runtime.shutdown_background();
    let mut found = found.ok()??;
    found.retain(|name| !name.chars().any(char::is_control));
    found.sort();
    found.dedup();
    Some(found)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_have_projects_and_topics() {
        let senders = ["user/shop", "user/shop/fix", "user", "user/-/trip", "tg:1"];
        let senders = senders.map(str::to_owned);
        assert_eq!(projects(&senders), ["shop", "shop"]);
        assert_eq!(topics(&senders, "user/shop"), ["main", "fix"]);
        assert_eq!(topics(&senders, ""), ["main", "trip"]);
    }
}
