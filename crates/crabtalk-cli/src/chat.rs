//! `chat`: full-screen at a terminal (`live`), otherwise line by line as a loop of `ask`.
//!
//! Invariant: a failed turn ends the turn, never the chat.

mod live;
mod message;
mod mode;
mod model;
mod references;

use crate::args::Chat;
use crate::context::Context;
use crate::error::Error;
use crate::follow::{Follow, Interrupts};
use crate::history::show_entry;
use crate::json;
use crabtalk_client::RunNews;
use crabtalk_proto::{
    AttachMsg, Client, ClientError, GetHistoryMsg, ListAgentsMsg, StreamMsg, code,
};
use futures_core::Stream;
use futures_util::{FutureExt, StreamExt};
use message::{Message, message};
use references::{is_known, references};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::pin::pin;

/// Messages shown at the start.
const SHOWN_AT_START: u32 = 10;

const HELP: &str = "In a chat without a screen each line is a message:
  /help      show this
  /quit      leave (also Ctrl-D)
On a terminal, @path attaches a file or an image, and @agent lets an agent answer once.
Ctrl-C cancels the answer. Other /words are the agent's skills.";

/// Runs the chat until the user leaves.
pub(crate) async fn chat(context: &mut Context, args: Chat) -> Result<(), Error> {
    context.client().await?;
    let bell = args.bell || std::env::var_os("CRABTALK_BELL").is_some_and(|v| v == "1");
    if is_on_screen(context) {
        return live::live(context, bell, live::Start::Here).await;
    }
    let name = match context.agent() {
        name if name.is_empty() => "crabtalk".to_owned(),
        name => name,
    };
    talk(context, lines(&name), bell).await
}

/// Whether the chat has a terminal to itself.
pub(crate) fn is_on_screen(context: &Context) -> bool {
    !context.global.json && !crabtalk_render::screen::is_plain()
}

/// Runs the chat on an archive, or on one that the user chooses.
pub(crate) async fn resume(context: &mut Context, archive: Option<u32>) -> Result<(), Error> {
    context.client().await?;
    let bell = std::env::var_os("CRABTALK_BELL").is_some_and(|v| v == "1");
    let start = archive.map_or(live::Start::Choose, live::Start::Archive);
    live::live(context, bell, start).await
}

/// The lines of standard input, each behind a prompt on a terminal.
fn lines(name: &str) -> impl Stream<Item = io::Result<String>> + Send + use<> {
    let prompt = io::stdin().is_terminal().then(|| format!("{name}> "));
    futures_util::stream::unfold(prompt, async |prompt| {
        let shown = prompt.clone().unwrap_or_default();
        // A blocking read in a thread keeps Ctrl-C working.
        let read = tokio::task::spawn_blocking(move || {
            let mut out = io::stderr();
            out.write_all(shown.as_bytes())?;
            out.flush()?;
            let mut line = String::new();
            let count = io::stdin().lock().read_line(&mut line)?;
            Ok((count > 0).then_some(line))
        });
        let read = read.await.unwrap_or_else(|e| Err(io::Error::other(e)));
        Some((read.transpose()?, prompt))
    })
}

async fn talk(
    context: &mut Context,
    lines: impl Stream<Item = io::Result<String>> + Send,
    bell: bool,
) -> Result<(), Error> {
    let shown = show_history(context).await;
    survive(context, shown)?;
    let followed = attach(context, bell).await;
    survive(context, followed)?;
    let mut lines = pin!(lines);
    loop {
        let line = tokio::select! {
            biased;
            line = lines.next() => line,
            Some(()) = context.console.interrupts.next() => return Err(Error::Interrupted),
        };
        let Some(line) = line else {
            return Ok(());
        };
        let line = line.map_err(|e| Error::io("read the input", &e))?;
        let done = match line.trim() {
            "" => Ok(()),
            "/help" | "/?" => context.note(HELP),
            "/quit" | "/exit" | "/q" => return Ok(()),
            text => say(context, text, bell).await,
        };
        survive(context, done)?;
    }
}

/// Reports a failed turn; only a closed output ends the chat.
fn survive(context: &mut Context, done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Ok(()) => Ok(()),
        Err(Error::Unread) => Err(Error::Unread),
        Err(error) => {
            if !error.is_silent() {
                context
                    .console
                    .screen
                    .problem(&format!("crabtalk: {error}"))?;
            }
            Ok(())
        }
    }
}

async fn show_history(context: &mut Context) -> Result<(), Error> {
    let request = GetHistoryMsg {
        agent: context.agent(),
        sender: context.sender(),
        before: None,
        limit: SHOWN_AT_START,
        first: false,
    };
    match context.connection().await?.get_history(request).await {
        Ok(page) => {
            if context.for_scripts(page.entries.iter().map(json::history_entry))? {
                return Ok(());
            }
            let screen = &mut context.console.screen;
            Ok(page
                .entries
                .iter()
                .try_for_each(|entry| show_entry(screen, entry))?)
        }
        // The conversation is empty.
        Err(ClientError::Refused(status)) if status.code == code::NOT_FOUND => Ok(()),
        Err(error) => Err(error.into()),
    }
}

async fn say(context: &mut Context, text: &str, bell: bool) -> Result<(), Error> {
    // The author of piped text may not mean files.
    let message = match io::stdin().is_terminal() && text.contains('@') {
        true => with_references(context, text).await?,
        false => Message {
            content: text.to_owned(),
            ..Message::default()
        },
    };
    for note in message.notes {
        context.note(&format!("crabtalk: {note}"))?;
    }
    let client = context.client().await?;
    let request = StreamMsg {
        guest: message.guest,
        images: message.images,
        ..context.message(message.content)?
    };
    let follow = Follow {
        bell,
        ..context.follow()
    };
    forget(&mut context.console.interrupts);
    let ended = follow.run(client.stream(request), &mut context.console);
    ended.await?.result()
}

/// The message of a line with its files, images and guest.
async fn with_references(context: &mut Context, text: &str) -> Result<Message, Error> {
    // A refused list means no guests.
    let agents = context.client().await?.call(ListAgentsMsg {}).await;
    let agents = agents.map(|list| list.agents).unwrap_or_default();
    let agents: Vec<String> = agents.into_iter().map(|agent| agent.name).collect();
    let cwd = match context.cwd()? {
        Some(cwd) => PathBuf::from(cwd),
        None => std::env::current_dir().map_err(|e| Error::io("find the current folder", &e))?,
    };
    let mut message = message(text, &agents, &cwd, &[]);
    for reference in references(text, |name| is_known(name, &agents, &cwd)) {
        if !reference.is_known {
            let name = reference.name;
            let note = format!("@{name} matches no file or agent and is sent as text");
            message.notes.push(note);
        }
    }
    Ok(message)
}

/// Follows the active run, if any.
async fn attach(context: &mut Context, bell: bool) -> Result<(), Error> {
    let client = context.client().await?;
    let request = AttachMsg {
        agent: context.agent(),
        sender: context.sender(),
        ..AttachMsg::default()
    };
    let mut run = client.attach(request);
    let first = match run.next().await {
        Some(Ok(first)) => first,
        // The conversation is empty.
        None | Some(Err(crabtalk_client::Error::Refused(_))) => return Ok(()),
        Some(Err(error)) => return Err(error.into()),
    };
    // The history shows how the last run ended.
    if let RunNews::Event(event) = &first
        && event.is_end()
    {
        return Ok(());
    }
    let note = "crabtalk: following the active run";
    context.console.screen.note(note)?;
    let follow = Follow {
        bell,
        ..context.follow()
    };
    let events = futures_util::stream::iter([Ok(first)]).chain(run);
    let ended = follow.run(events, &mut context.console);
    ended.await?.result()
}

/// Drops Ctrl-C keys of the previous answer.
fn forget(interrupts: &mut Interrupts) {
    while interrupts.next().now_or_never().flatten().is_some() {}
}

#[cfg(test)]
mod tests;
