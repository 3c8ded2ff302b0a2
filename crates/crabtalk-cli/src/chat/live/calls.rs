//! Concurrent requests of the chat to the daemon.
//!
//! Invariant: a call blocks nothing else, and its result is handled once.

use super::Live;
use super::complete::Known;
use crate::history::markdown;
use crabtalk_client::{Client, Error};
use crabtalk_proto::{
    AgentRights, GetHistoryMsg, GetRightsMsg, ListAgentsMsg, ListModelsMsg, ListSkillsMsg, McpInfo,
    McpList, MemoryList, ModelInfo, Request, SkillList,
};
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};

/// Maximum number of exported messages.
const MAX_EXPORTED: usize = 100_000;

/// Maximum bytes of a command's output for the agent.
const MAX_OUTPUT: usize = 30 * 1024;

/// A pending call.
pub(super) type Call = BoxFuture<'static, Done>;

/// Handles the result of a call.
pub(super) type Done = Box<dyn FnOnce(&mut Live<'_>) + Send>;

impl Live<'_> {
    /// Runs a call concurrently; `then` handles its result.
    pub(super) fn call<T: Send + 'static>(
        &mut self,
        call: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(&mut Live<'_>, T) + Send + 'static,
    ) {
        self.calls.push(Box::pin(async move {
            let result = call.await;
            let done: Done = Box::new(move |live| then(live, result));
            done
        }));
    }

    /// Sends a request; `then` handles its answer.
    pub(super) fn request<R: Request<Response: 'static> + 'static>(
        &mut self,
        request: R,
        then: impl FnOnce(&mut Live<'_>, Result<R::Response, Error>) + Send + 'static,
    ) {
        let client = self.client.clone();
        self.call(async move { client.call(request).await }, then);
    }
}

/// The result of a `!` command.
pub(super) struct Ran {
    pub(super) status: String,
    pub(super) output: String,
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
pub(super) async fn learn(client: Client, pair: Pair, cwd: Option<String>) -> Option<Learned> {
    let agent = pair.agent.clone();
    let rights = client.call(GetRightsMsg { agent });
    let models = client.call(ListModelsMsg {});
    let agents = client.call(ListAgentsMsg {});
    let skills = client.call(ListSkillsMsg { cwd });
    let connection = client.connect();
    let (rights, models, agents) = futures_util::join!(rights, models, agents);
    let (skills, connection) = futures_util::join!(skills, connection);
    let connection = connection.ok()?;
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
    Some(Learned {
        known,
        agent,
        model: model.unwrap_or_default(),
        sender: match pair.sender.as_str() {
            "" => default_sender,
            sender => sender.to_owned(),
        },
        models,
    })
}

/// The request for the last messages of a conversation.
pub(super) fn last_messages(pair: Pair, limit: u32) -> GetHistoryMsg {
    let Pair { agent, sender } = pair;
    GetHistoryMsg {
        agent,
        sender,
        before: None,
        limit,
        first: false,
    }
}

/// Permissions of the agent with `rules`, else the names of its tools.
pub(super) fn rights(rights: &AgentRights, rules: bool) -> String {
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
        let owner = cell(&tool.owner);
        text.push_str(&format!("| {} | {owner} | {rules} |\n", tool.tool));
    }
    text + "\n`crabtalk approvals` lists permanent approvals."
}

pub(super) fn skills(list: &SkillList) -> String {
    if list.skills.is_empty() {
        return "No skills.".to_owned();
    }
    let row = |skill: &crabtalk_proto::SkillInfo| {
        let state = if skill.enabled { "on" } else { "off" };
        format!("| /{} | {state} | {} |\n", skill.name, cell(&skill.source))
    };
    let rows: String = list.skills.iter().map(row).collect();
    format!("| skill | | from |\n|---|---|---|\n{rows}")
}

pub(super) fn memory(list: &MemoryList) -> String {
    if list.entries.is_empty() {
        return "No memory entries.".to_owned();
    }
    let row = |entry: &crabtalk_proto::MemoryEntry| {
        format!("| {} | {} |\n", cell(&entry.name), cell(&entry.description))
    };
    let rows: String = list.entries.iter().map(row).collect();
    let more = match list.more {
        true => "\n`crabtalk memory` lists the rest.",
        false => "",
    };
    format!("| name | about |\n|---|---|\n{rows}{more}")
}

/// State of the MCP servers.
pub(super) fn mcps(list: &McpList) -> String {
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
}

/// Writes the working history to a new file; describes it.
pub(super) async fn export(client: Client, pair: Pair, file: PathBuf) -> Result<String, Error> {
    let count = export_to(client, pair, &file).await?;
    Ok(crate::text::written(count, &file))
}

async fn export_to(client: Client, pair: Pair, file: &Path) -> Result<usize, Error> {
    let (mut before, mut pages, mut count) = (None, Vec::new(), 0);
    loop {
        let request = GetHistoryMsg {
            before,
            ..last_messages(pair.clone(), 0)
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
pub(super) async fn shell(command: String, cwd: PathBuf) -> Ran {
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
    Ran { status, output }
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
