//! Concurrent requests of the chat to the daemon.
//!
//! Invariant: a call blocks nothing else and has one result, a [`Done`].

use super::complete::Known;
use super::statusline::Read;
use super::tree::Tree;
use crate::history::markdown;
use crate::switch::{Place, places, topics as topics_of};
use crabtalk_client::{Client, Error, Replied};
use crabtalk_proto::{
    ArchiveContent, ChangeList, CompactMsg, CompactResponse, ExpectMessageMsg, GetArchiveMsg,
    GetHistoryMsg, GetMemoryMsg, GetRightsMsg, HistoryPage, KillMsg, ListAgentsMsg, ListAsksMsg,
    ListMcpsMsg, ListMemoryMsg, ListModelsMsg, ListSkillsMsg, McpInfo, ModelInfo, PendingAsk,
    ReplyToAsk, SetActiveModelMsg, SetConversationMsg, SteerSessionMsg, UndoReport, WithdrawMsg,
};
use futures_util::future::BoxFuture;
use std::path::PathBuf;

/// Maximum number of exported messages.
const MAX_EXPORTED: usize = 100_000;

/// Maximum bytes of a command's output for the agent.
const MAX_OUTPUT: usize = 30 * 1024;

/// A pending call.
pub(super) type Call = BoxFuture<'static, Done>;

/// Result of a call.
pub(super) enum Done {
    /// A steering message was accepted or refused.
    Steered(String, Result<(), Error>),
    /// A queued message was withdrawn, or not.
    Withdrawn(String, Result<(), Error>),
    /// An answer was sent.
    Replied(String, Result<Replied, Error>),
    /// The run was cancelled.
    Killed(Result<(), Error>),
    /// Markdown to show.
    Shown(Result<String, Error>),
    /// `/compact` or `/new` finished.
    PutAway(Result<CompactResponse, Error>),
    /// A note to show.
    Noted(Result<String, Error>),
    /// Data for completion and the status line; `None` without a daemon.
    Learned(Pair, Option<Box<Learned>>),
    /// The messages of `/history`.
    History(Result<HistoryPage, Error>),
    /// Messages before the next event of a run, for the request with this number.
    Before(u64, Result<HistoryPage, Error>),
    /// The messages of a member, by its sender.
    Member(String, Result<HistoryPage, Error>),
    /// File changes of a run.
    Changes(Result<ChangeList, Error>),
    /// Result of an undo.
    Undone(Result<UndoReport, Error>),
    /// Conversations for `/switch`.
    Places(Result<Vec<Place>, Error>),
    /// The user's earlier messages for `/rewind`, newest first.
    Said(Result<Vec<super::choice::Said>, Error>),
    /// The history was ended before an earlier message.
    Rewound(Result<super::rewind::Rewound, Error>),
    /// Results of undoing several runs.
    AllUndone(Vec<Result<UndoReport, Error>>),
    /// An archive became the history again.
    Reopened(Result<ArchiveContent, Error>),
    /// An archive to show.
    Archive(Result<ArchiveContent, Error>),
    /// File with the image of the clipboard.
    Clipboard(Result<PathBuf, String>),
    /// A daemon was started, or failed to start.
    Started(Result<(), Error>),
    /// The files of a folder.
    Walked(PathBuf, Tree),
    /// Pending asks.
    Asks(Vec<PendingAsk>),
    /// A message was announced, or refused.
    Announced,
    /// Figures of the status line.
    Figures(Read),
    /// A `!` command ended.
    Shell {
        command: String,
        status: String,
        output: String,
    },
}

/// Data of the daemon for completion and the status line.
#[derive(Default)]
pub(super) struct Learned {
    pub(super) known: Known,
    pub(super) agent: String,
    pub(super) sender: String,
    pub(super) models: Vec<ModelInfo>,
    /// The model that the agent uses.
    pub(super) model: String,
}

/// Agent and sender of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) agent: String,
    pub(super) sender: String,
}

/// Reads the data for completion and the status line. Refused parts stay empty; without
/// a daemon nothing changes.
pub(super) async fn learn(client: Client, pair: Pair, cwd: Option<String>) -> Done {
    let agent = pair.agent.clone();
    let rights = client.call(GetRightsMsg { agent });
    let models = client.call(ListModelsMsg {});
    let agents = client.call(ListAgentsMsg {});
    let skills = client.call(ListSkillsMsg { cwd });
    let connection = client.connect();
    let (rights, models, agents) = futures_util::join!(rights, models, agents);
    let (skills, connection) = futures_util::join!(skills, connection);
    let Ok(connection) = connection else {
        return Done::Learned(pair, None);
    };
    let models = models.map(|list| list.models).unwrap_or_default();
    let skills = skills.map(|list| list.skills).unwrap_or_default();
    let agents = agents.map(|list| list.agents).unwrap_or_default();
    let default_sender = connection.welcome().default_sender.clone();
    let offline = |model: &ModelInfo| model.name == "offline" || model.provider == "offline";
    let active = models.iter().find(|model| model.active);
    let agent = rights.map_or_else(|_| pair.agent.clone(), |rights| rights.agent);
    let own = agents.iter().find(|info| info.name == agent);
    let own = own.and_then(|info| info.model.clone());
    let model = own.or_else(|| active.map(|model| model.name.clone()));
    let known = Known {
        agents: agents.into_iter().map(|agent| agent.name).collect(),
        skills: skills
            .into_iter()
            .filter(|skill| skill.enabled)
            .map(|skill| skill.name)
            .collect(),
        demonstration: active.is_none_or(offline),
        models: models.iter().map(|model| model.name.clone()).collect(),
    };
    let learned = Learned {
        known,
        agent,
        model: model.unwrap_or_default(),
        sender: match pair.sender.as_str() {
            "" => default_sender,
            sender => sender.to_owned(),
        },
        models,
    };
    Done::Learned(pair, Some(Box::new(learned)))
}

pub(super) async fn steer(client: Client, pair: Pair, content: String) -> Done {
    let Pair { agent, sender } = pair;
    let request = SteerSessionMsg {
        agent,
        sender,
        content: content.clone(),
    };
    Done::Steered(content, client.call(request).await)
}

pub(super) async fn withdraw(client: Client, pair: Pair, id: String) -> Done {
    let Pair { agent, sender } = pair;
    let request = WithdrawMsg {
        agent,
        sender,
        request_id: id.clone(),
    };
    Done::Withdrawn(id, client.call(request).await)
}

pub(super) async fn kill(client: Client, pair: Pair) -> Done {
    let Pair { agent, sender } = pair;
    Done::Killed(client.call(KillMsg { agent, sender }).await)
}

pub(super) async fn reply(client: Client, reply: ReplyToAsk) -> Done {
    let id = reply.ask_id.clone().unwrap_or_default();
    Done::Replied(id, client.reply(reply).await)
}

pub(super) async fn history(client: Client, pair: Pair, limit: u32) -> Done {
    Done::History(client.call(last_messages(pair, limit)).await)
}

/// Reads history for a request with a number.
pub(super) async fn before(client: Client, pair: Pair, limit: u32, wait: u64) -> Done {
    Done::Before(wait, client.call(last_messages(pair, limit)).await)
}

fn last_messages(pair: Pair, limit: u32) -> GetHistoryMsg {
    let Pair { agent, sender } = pair;
    GetHistoryMsg {
        agent,
        sender,
        before: None,
        limit,
        first: false,
    }
}

pub(super) async fn switch(client: Client, own: String) -> Done {
    Done::Places(places(&client, &own).await)
}

/// The topics of the folder.
pub(super) async fn topics(client: Client, pair: Pair) -> Done {
    Done::Places(topics_of(&client, &pair.agent, &pair.sender).await)
}

pub(super) async fn archive(client: Client, place: Place, limit: u32) -> Done {
    let request = GetArchiveMsg {
        agent: place.agent,
        sender: place.sender,
        index: place.archive.unwrap_or_default(),
        before: None,
        limit,
    };
    Done::Archive(client.call(request).await)
}

pub(super) async fn asks(client: Client) -> Done {
    let list = client.call(ListAsksMsg::default()).await;
    Done::Asks(list.map(|list| list.asks).unwrap_or_default())
}

/// Announces a message; a refusal has no effect.
pub(super) async fn expect(client: Client, message: ExpectMessageMsg) -> Done {
    let _ = client.call(message).await;
    Done::Announced
}

pub(super) async fn compact(client: Client, pair: Pair, focus: String) -> Done {
    let Pair { agent, sender } = pair;
    let request = CompactMsg {
        agent,
        sender,
        focus: Some(focus).filter(|focus| !focus.is_empty()),
        fresh: false,
    };
    Done::PutAway(client.call(request).await)
}

/// Archives the history without a summary.
pub(super) async fn start_fresh(client: Client, pair: Pair) -> Done {
    let Pair { agent, sender } = pair;
    let request = CompactMsg {
        agent,
        sender,
        focus: None,
        fresh: true,
    };
    Done::PutAway(client.call(request).await)
}

pub(super) async fn use_model(client: Client, model: String) -> Done {
    let said = format!("Default model: {model}");
    Done::Noted(
        client
            .call(SetActiveModelMsg { model })
            .await
            .map(|()| said),
    )
}

pub(super) async fn title(client: Client, pair: Pair, title: String) -> Done {
    let said = format!("title set to \"{title}\"");
    let Pair { agent, sender } = pair;
    let request = SetConversationMsg {
        agent,
        sender,
        title: Some(title),
        cwd: None,
    };
    Done::Noted(client.call(request).await.map(|()| said))
}

/// Permissions of the agent with `rules`, else the names of its tools.
pub(super) async fn rights(client: Client, agent: String, rules: bool) -> Done {
    let answer = client.call(GetRightsMsg { agent }).await;
    Done::Shown(answer.map(|rights| {
        if !rules {
            let names: Vec<&str> = rights.tools.iter().map(|tool| tool.tool.as_str()).collect();
            return format!("In scope of **{}**: {}", rights.agent, code_list(&names));
        }
        let mode = match rights.mode.as_str() {
            "" => "by folder",
            mode => mode,
        };
        let mut text = format!(
            "Permissions of **{}** (mode: {mode}):\n\n| tool | for you | rules |\n|---|---|---|\n",
            rights.agent
        );
        for tool in &rights.tools {
            let rules = code_list(&tool.rules.iter().map(String::as_str).collect::<Vec<_>>());
            text.push_str(&format!(
                "| {} | {} | {rules} |\n",
                tool.tool,
                cell(&tool.owner)
            ));
        }
        text + "\n`crabtalk approvals` lists permanent approvals."
    }))
}

pub(super) async fn skills(client: Client, cwd: Option<String>) -> Done {
    let answer = client.call(ListSkillsMsg { cwd }).await;
    Done::Shown(answer.map(|list| {
        if list.skills.is_empty() {
            return "No skills.".to_owned();
        }
        let row = |skill: &crabtalk_proto::SkillInfo| {
            let state = if skill.enabled { "on" } else { "off" };
            format!("| /{} | {state} | {} |\n", skill.name, cell(&skill.source))
        };
        let rows: String = list.skills.iter().map(row).collect();
        format!("| skill | | from |\n|---|---|---|\n{rows}")
    }))
}

pub(super) async fn memory(client: Client, pair: Pair, name: String) -> Done {
    let Pair { agent, sender } = pair;
    if !name.is_empty() {
        let request = GetMemoryMsg {
            agent,
            sender,
            name,
        };
        let entry = client.call(request).await;
        return Done::Shown(entry.map(|entry| format!("**{}**\n\n{}", entry.name, entry.content)));
    }
    let request = ListMemoryMsg {
        agent,
        sender,
        offset: 0,
        limit: 50,
    };
    let answer = client.call(request).await;
    Done::Shown(answer.map(|list| {
        if list.entries.is_empty() {
            return "No memory entries.".to_owned();
        }
        let row = |entry: &crabtalk_proto::MemoryEntry| {
            format!("| {} | {} |\n", cell(&entry.name), cell(&entry.description))
        };
        let rows: String = list.entries.iter().map(row).collect();
        let more = if list.more {
            "\n`crabtalk memory` lists the rest."
        } else {
            ""
        };
        format!("| name | about |\n|---|---|\n{rows}{more}")
    }))
}

/// State of the MCP servers.
pub(super) async fn mcps(client: Client) -> Done {
    let answer = client.call(ListMcpsMsg {}).await;
    Done::Shown(answer.map(|list| {
        if list.mcps.is_empty() {
            return "No MCP servers; `crabtalk mcps add` adds one.".to_owned();
        }
        let row = |mcp: &McpInfo| {
            let off = match mcp.enabled {
                true => mcp.state.as_str(),
                false => "off",
            };
            let state = match (mcp.error.as_str(), mcp.shadowed) {
                ("", false) => cell(off),
                ("", true) => format!("{}, shadowed", cell(off)),
                (error, _) => format!("{}: {}", cell(off), cell(error)),
            };
            let (name, source) = (cell(&mcp.name), cell(&mcp.source));
            format!("| {name} | {state} | {} | {source} |\n", mcp.tool_count)
        };
        let rows: String = list.mcps.iter().map(row).collect();
        format!(
            "| server | state | tools | from |\n|---|---|--:|---|\n{rows}\n`crabtalk mcps test NAME` connects step by step."
        )
    }))
}

/// Writes the working history to a new file.
pub(super) async fn export(client: Client, pair: Pair, file: PathBuf) -> Done {
    Done::Noted(
        export_to(client, pair, &file)
            .await
            .map(|count| crate::text::written(count, &file)),
    )
}

async fn export_to(client: Client, pair: Pair, file: &std::path::Path) -> Result<usize, Error> {
    let (mut before, mut pages, mut count) = (None, Vec::new(), 0);
    loop {
        let request = GetHistoryMsg {
            agent: pair.agent.clone(),
            sender: pair.sender.clone(),
            before,
            limit: 0,
            first: false,
        };
        let page = client.call(request).await?;
        count += page.entries.len();
        let first = page.entries.first().map(|entry| entry.index);
        let more = page.more && first.is_some() && first != before && count < MAX_EXPORTED;
        before = first;
        pages.push(page.entries);
        if !more {
            break;
        }
    }
    let entries = pages.iter().rev().flatten();
    let text: String = entries.map(markdown).collect::<Vec<_>>().join("\n");
    let written = crate::history::write_new(file, &text);
    written.map_err(|e| Error::NotStarted(format!("cannot write {}: {e}", file.display())))?;
    Ok(count)
}

/// Runs a `!` command.
pub(super) async fn shell(command: String, cwd: PathBuf) -> Done {
    let run = tokio::process::Command::new("sh")
        .args(["-c", &command])
        .current_dir(&cwd)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let (status, output) = match run.await {
        Ok(done) => {
            let mut all = done.stdout;
            all.extend(done.stderr);
            let status = match done.status.code() {
                Some(code) => code.to_string(),
                None => done.status.to_string(),
            };
            (
                status,
                crabtalk_render::output(&String::from_utf8_lossy(&all)),
            )
        }
        Err(error) => ("not run".to_owned(), error.to_string()),
    };
    let cut = output.ceil_char_boundary(output.len().saturating_sub(MAX_OUTPUT));
    let output = match cut {
        0 => output,
        cut => format!("({cut} bytes omitted)\n{}", &output[cut..]),
    };
    Done::Shell {
        command,
        status,
        output,
    }
}

fn code_list(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{}`", cell(name)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Escapes a cell of a Markdown table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
