//! Dispatch of commands, and the commands without a separate module.

mod agents;
mod approvals;
mod archives;
mod asks;
mod audit;
mod bus;
mod changes;
mod components;
mod config;
mod conversations;
mod cron;
mod daemon;
mod doctor;
mod events;
mod export;
mod init;
mod logs;
mod mcps;
mod memory;
mod models;
mod remote;
mod runs;
mod search;
mod shelf;
mod shell;
mod skills;
mod stats;
mod tokens;
mod top;
mod trust;

use crate::args::{self, Command};
use crate::context::{Column, Context};
use crate::error::Error;
use crate::prompt::Answer;
use crate::{ask, chat};
use crabtalk_proto::{ResourceKind, SetEnabledMsg};
use serde_json::json;
use std::path::Path;

/// An absolute UTF-8 path for the daemon.
fn utf8_folder(folder: &Path) -> Result<String, Error> {
    let path = folder.canonicalize().map_err(|e| {
        Error::Usage(format!(
            "{}: {e}: name a folder that exists",
            folder.display()
        ))
    })?;
    path.into_os_string().into_string().map_err(|path| {
        Error::Usage(format!(
            "the folder {} is not UTF-8, as the protocol requires",
            path.display()
        ))
    })
}

/// Enables or disables a resource; `key` names it in JSON.
async fn switch(
    context: &mut Context,
    kind: ResourceKind,
    key: &str,
    name: String,
    enabled: bool,
) -> Result<(), Error> {
    let request = SetEnabledMsg {
        kind: kind.into(),
        name: name.clone(),
        enabled,
    };
    context.call(request).await?;
    let said = format!("crabtalk: {name} is {}", if enabled { "on" } else { "off" });
    context.done(json!({key: name, "enabled": enabled}), &said)
}

/// Whether a command needs no conversation, so that a broken project list does not block
/// it.
fn mends(command: &Command) -> bool {
    matches!(
        command,
        Command::Daemon(_)
            | Command::Config(_)
            | Command::Init(_)
            | Command::Doctor { .. }
            | Command::Completions(_)
            | Command::Man(_)
    )
}

pub(crate) async fn run(context: &mut Context, command: Command) -> Result<(), Error> {
    context.global.check(&command)?;
    if !mends(&command) {
        let speaks = matches!(
            command,
            Command::Chat(_) | Command::Ask(_) | Command::Resume { .. }
        );
        context.find_speaker(speaks)?;
    }
    match command {
        Command::Chat(args) => chat::chat(context, args).await,
        Command::Ask(args) => ask::ask(context, args).await,
        Command::Attach(args) => ask::attach(context, args).await,
        Command::Daemon(command) => daemon::run(context, command).await,
        Command::Backup { .. } | Command::Restore { .. } => {
            Err(Error::Usage("handled before commands start".to_owned()))
        }
        Command::Conversations(args) => match args.command {
            Some(command) => shelf::run(context, command).await,
            None => conversations::list(context, args.limit).await,
        },
        Command::Export(args) => export::export(context, args).await,
        Command::History(args) => conversations::history(context, args).await,
        Command::Archives(sub) => archives::run(context, sub.command).await,
        Command::Search(args) => search::search(context, args).await,
        Command::Memory(sub) => memory::run(context, sub.command.unwrap_or_default()).await,
        Command::Mcps(sub) => mcps::run(context, sub.command.unwrap_or_default()).await,
        Command::Skills(sub) => skills::run(context, sub.command.unwrap_or_default()).await,
        Command::Trust(sub) => trust::run(context, sub.command.unwrap_or_default()),
        Command::Kill => runs::kill(context).await,
        Command::Compact { focus } => runs::compact(context, focus).await,
        Command::New { summary: true } => runs::compact(context, None).await,
        Command::New { summary: false } => runs::start_fresh(context).await,
        Command::Resume { archive } => archives::resume(context, archive).await,
        Command::Steer { text } => runs::steer(context, text.join(" ")).await,
        Command::Diff { run } => changes::diff(context, run).await,
        Command::Undo(args) => changes::undo(context, args).await,
        Command::Events => events::events(context).await,
        Command::Asks => asks::list(context).await,
        Command::Reply { id, text } => asks::answer(context, id, None, text.join(" ")).await,
        Command::Approve {
            id,
            always,
            prefix,
            conversation,
            yes,
        } => {
            let answer = match (always, prefix, conversation) {
                (true, ..) => Answer::Always,
                (_, true, _) => Answer::Prefix,
                (.., true) => Answer::Conversation,
                (false, false, false) => Answer::Once,
            };
            asks::approve(context, id, answer, yes).await
        }
        Command::Deny { id, reason } => asks::deny(context, id, reason).await,
        Command::Approvals(sub) => approvals::run(context, sub.command.unwrap_or_default()).await,
        Command::Subscriptions(sub) => bus::run(context, sub.command.unwrap_or_default()).await,
        Command::Publish(args) => bus::publish(context, args).await,
        Command::Agents(sub) => agents::run(context, sub.command.unwrap_or_default()).await,
        Command::Models(sub) => models::models(context, sub.command.unwrap_or_default()).await,
        Command::Providers(sub) => {
            models::providers(context, sub.command.unwrap_or_default()).await
        }
        Command::Cron(sub) => cron::run(context, sub.command.unwrap_or_default()).await,
        Command::Stats(args) => stats::stats(context, args).await,
        Command::Top(args) => top::top(context, args).await,
        Command::Components => components::components(context).await,
        Command::Config(sub) => {
            let command = sub.command.unwrap_or(args::Config::Get { key: None });
            config::run(context, command).await
        }
        Command::Init(args) => init::run(context, args).await,
        Command::Doctor { offline } => doctor::run(context, offline).await,
        Command::Tokens(sub) => tokens::run(context, sub.command.unwrap_or_default()).await,
        Command::Remote(sub) => remote::run(context, sub.command.unwrap_or_default()).await,
        Command::Audit(sub) => {
            let latest = args::Audit::List {
                limit: args::LATEST_ENTRIES,
            };
            audit::run(context, sub.command.unwrap_or(latest)).await
        }
        Command::Completions(args) => shell::completions(context, &args),
        Command::Man(args) => shell::man(context, &args),
        // `dispatch::resolve` replaces external commands.
        Command::External(_) => Err(Error::Usage("unknown command".to_owned())),
    }
}

#[cfg(test)]
mod tests;
