//! Converts an input line of the plain chat into a message with files, images and
//! guests.
//!
//! Invariants: an unknown `/word` is an error that names the nearest command; input
//! from a pipe attaches no files, since its author may not have meant to.

use super::message::{DEMONSTRATION, Message, message};
use super::references::{is_known, references};
use crate::context::Context;
use crate::error::Error;
use crabtalk_config::nearest;
use crabtalk_proto::{ListAgentsMsg, ListModelsMsg, ListSkillsMsg};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Commands of the plain chat.
const COMMANDS: [&str; 5] = ["help", "history", "mode", "kill", "quit"];

/// The message of a line.
pub(super) async fn read(context: &mut Context, text: &str) -> Result<Message, Error> {
    if let Some(rest) = text.strip_prefix('/') {
        let word = rest.split(char::is_whitespace).next().unwrap_or_default();
        if let Some(why) = unknown(context, word).await? {
            return Err(Error::Usage(why));
        }
    }
    if !std::io::stdin().is_terminal() || !text.contains('@') {
        return Ok(Message {
            content: text.to_owned(),
            ..Message::default()
        });
    }
    let client = context.client().await?;
    // A refused list means no guests.
    let agents = client.call(ListAgentsMsg {}).await;
    let agents = agents.map(|list| list.agents).unwrap_or_default();
    let agents: Vec<String> = agents.into_iter().map(|agent| agent.name).collect();
    let cwd = match context.cwd()? {
        Some(cwd) => PathBuf::from(cwd),
        None => std::env::current_dir().map_err(|e| Error::io("find the current folder", &e))?,
    };
    let mut message = message(text, &agents, &cwd, &[]);
    let named = references(text, |name| is_known(name, &agents, &cwd));
    for reference in named.iter().filter(|reference| !reference.is_known) {
        let name = reference.name;
        let note = format!("@{name} matches no file or agent and is sent as text");
        message.notes.push(note);
    }
    Ok(message)
}

/// The error for an unknown `/word`; `None` for skills.
async fn unknown(context: &mut Context, word: &str) -> Result<Option<String>, Error> {
    let cwd = context.cwd()?;
    let client = context.client().await?;
    let (skills, models) = futures_util::join!(
        client.call(ListSkillsMsg { cwd }),
        client.call(ListModelsMsg {})
    );
    // Without the lists, the agent decides.
    let (Ok(skills), Ok(models)) = (skills, models) else {
        return Ok(None);
    };
    let active = models.models.iter().find(|model| model.active);
    let demonstration = active.is_none_or(|active| active.provider == "offline");
    let mut names = skills.skills.iter().map(|skill| skill.name.as_str());
    if names.any(|name| name == word) || demonstration && DEMONSTRATION.contains(&word) {
        return Ok(None);
    }
    let names = skills.skills.iter().map(|skill| skill.name.as_str());
    let hint = match nearest(word, COMMANDS.into_iter().chain(names)) {
        Some(name) => format!("did you mean /{name}?"),
        None => "/help lists the commands; more are in the chat of a terminal with a screen, and as `crabtalk` commands".to_owned(),
    };
    Ok(Some(format!(
        "unknown command or skill /{word} here; {hint}"
    )))
}
