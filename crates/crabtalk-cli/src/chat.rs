//! `chat`: on a screen (`live`), or line by line without one.
//!
//! Invariant: a failed turn ends the turn, never the chat.

mod input;
mod lines;
mod live;
mod message;
mod mode;
mod model;
mod references;

use crate::args::Chat;
use crate::context::Context;
use crate::error::Error;
use crate::follow::{Answers, Ended, Follow, Interrupts, OnInterrupt};
use crate::history::show_entry;
use crate::json;
use crate::view::Style;
use crabtalk_client::RunNews;
use crabtalk_proto::stream_event::Event;
use crabtalk_proto::{AttachMsg, Client, ClientError, GetHistoryMsg, KillMsg, StreamMsg, code};
use futures_util::{FutureExt, StreamExt};
pub(crate) use input::{Input, Typed};
use message::Message;
use mode::RunMode;

/// Messages shown at the start.
const SHOWN_AT_START: u32 = 10;

const HELP: &str = "In a chat:
  /history   show the last messages
  /mode      show the mode; /mode NAME sets it
  /kill      cancel the run
  /help      show this
  /quit      leave (also Ctrl-D)
On a terminal, @path attaches a file or an image, and @agent lets an agent answer once.
Ctrl-C cancels the answer. Other /words are the agent's skills.";

/// Meaning of an input line.
#[derive(Debug, PartialEq, Eq)]
enum Line<'a> {
    Nothing,
    Help,
    Quit,
    Kill,
    History,
    /// Show the mode of the next runs, or set it.
    Mode(&'a str),
    /// A message, also to a skill.
    Say(&'a str),
}

fn meaning(line: &str) -> Line<'_> {
    match line.trim() {
        "" => Line::Nothing,
        "/help" | "/?" => Line::Help,
        "/quit" | "/exit" | "/q" => Line::Quit,
        "/kill" => Line::Kill,
        "/history" => Line::History,
        text => match text.split_once(char::is_whitespace).unwrap_or((text, "")) {
            ("/mode", name) => Line::Mode(name.trim()),
            _ => Line::Say(text),
        },
    }
}

/// Runs the chat until the user leaves.
pub(crate) async fn chat(context: &mut Context, args: Chat) -> Result<(), Error> {
    context.client().await?;
    let bell = args.bell || std::env::var_os("CRABTALK_BELL").is_some_and(|v| v == "1");
    if is_on_screen(context) {
        return live::live(context, bell, live::Start::Here).await;
    }
    context.console.screen.without_colors();
    let mut input = input::open();
    talk(context, &mut *input, bell).await
}

/// Whether the chat has a terminal to itself.
pub(crate) fn is_on_screen(context: &Context) -> bool {
    !context.global.json && input::is_screen()
}

/// Runs the chat on an archive, or on one that the user chooses.
pub(crate) async fn resume(context: &mut Context, archive: Option<u32>) -> Result<(), Error> {
    context.client().await?;
    let bell = std::env::var_os("CRABTALK_BELL").is_some_and(|v| v == "1");
    let start = archive.map_or(live::Start::Choose, live::Start::Archive);
    live::live(context, bell, start).await
}

async fn talk(context: &mut Context, input: &mut dyn Input, bell: bool) -> Result<(), Error> {
    let mut mode = RunMode::new(context.global.mode);
    begin(context, bell).await?;
    loop {
        let name = match context.agent() {
            name if name.is_empty() => "crabtalk".to_owned(),
            name => name,
        };
        let typed = tokio::select! {
            biased;
            typed = input.read(&name) => typed.map_err(|e| Error::io("read the input", &e))?,
            Some(()) = context.console.interrupts.next() => return Err(Error::Interrupted),
        };
        let line = match typed {
            Typed::Line(line) => line,
            Typed::End => return Ok(()),
        };
        let done = match meaning(&line) {
            Line::Nothing => Ok(()),
            Line::Help => Ok(context.console.screen.note(HELP)?),
            Line::Quit => return Ok(()),
            Line::Kill => kill(context).await,
            Line::History => show_history(context).await,
            Line::Mode(name) => match mode.command(name) {
                Ok(said) => Ok(context.console.screen.note(&format!("crabtalk: {said}"))?),
                Err(why) => Err(Error::Usage(why)),
            },
            Line::Say(text) => say(context, text, bell, &mut mode).await,
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

/// Shows the last messages and follows the active run.
async fn begin(context: &mut Context, bell: bool) -> Result<(), Error> {
    let shown = show_history(context).await;
    survive(context, shown)?;
    let followed = attach(context, bell).await;
    survive(context, followed)
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
        // The conversation is empty, or the daemon has no histories.
        Err(ClientError::Refused(status))
            if matches!(status.code, code::NOT_FOUND | code::NOT_IMPLEMENTED) =>
        {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

async fn kill(context: &mut Context) -> Result<(), Error> {
    let request = KillMsg {
        agent: context.agent(),
        sender: context.sender(),
    };
    context.connection().await?.kill(request).await?;
    Ok(context
        .console
        .screen
        .note("crabtalk: the run was cancelled")?)
}

async fn say(
    context: &mut Context,
    text: &str,
    bell: bool,
    mode: &mut RunMode,
) -> Result<(), Error> {
    let Message {
        content,
        guest,
        shown,
        notes,
    } = lines::read(context, text).await?;
    for note in notes {
        context.console.screen.note(&format!("crabtalk: {note}"))?;
    }
    let client = context.client().await?;
    let request = StreamMsg {
        agent: context.agent(),
        content,
        guest,
        images: shown.images,
        sender: Some(context.sender()).filter(|sender| !sender.is_empty()),
        cwd: context.cwd()?,
        model: context.global.model.clone(),
        mode: mode.wire(),
        ..StreamMsg::default()
    };
    let follow = how(context, context.follow(), bell);
    forget(&mut context.console.interrupts);
    let run = client.stream(request).inspect(|news| {
        if let Ok(RunNews::Event(event)) = news
            && let Some(Event::Start(start)) = &event.event
        {
            mode.report(&start.mode);
        }
    });
    finish(follow.run(run, &mut context.console).await?)
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
    let follow = how(context, context.follow(), bell);
    let events = futures_util::stream::iter([Ok(first)]).chain(run);
    finish(follow.run(events, &mut context.console).await?)
}

fn how(context: &Context, follow: Follow, bell: bool) -> Follow {
    Follow {
        style: if context.global.json {
            Style::Json
        } else {
            Style::Chat
        },
        answers: Answers::Person,
        on_interrupt: OnInterrupt::Kill,
        bell,
        ..follow
    }
}

/// Drops Ctrl-C keys of the previous answer.
fn forget(interrupts: &mut Interrupts) {
    while interrupts.next().now_or_never().flatten().is_some() {}
}

fn finish(ended: Ended) -> Result<(), Error> {
    match ended {
        Ended::Run(end) if end.code == 0 && end.error.is_empty() => Ok(()),
        Ended::Run(_) | Ended::Waiting => Err(Error::RunFailed),
        Ended::Interrupted => Err(Error::Interrupted),
    }
}

#[cfg(test)]
mod tests;
