//! What is asked of the daemon while the chat goes on.
//!
//! Invariant: a call that hangs or fails holds up nothing else; what it came to
//! is one [`Done`].

use super::slash::Known;
use crate::history::markdown;
use crate::switch::{Place, places};
use crate::text::{duration, money, spent};
use crabtalk_client::{Client, Error, Replied};
use crabtalk_proto::{
    ArchiveContent, ChangeList, CompactMsg, CompactResponse, ExpectMessageMsg, GetArchiveMsg,
    GetHistoryMsg, GetMemoryMsg, GetRightsMsg, GetStats, HistoryPage, KillMsg, ListAgentsMsg,
    ListAsksMsg, ListMcpsMsg, ListMemoryMsg, ListModelsMsg, ListSkillsMsg, McpInfo, ModelInfo,
    PendingAsk, ReplyToAsk, SetActiveModelMsg, SetConversationMsg, SteerSessionMsg, UndoReport,
};
use crabtalk_render::tokens;
use futures_util::future::BoxFuture;
use std::path::PathBuf;

/// Entries of a history that are written to a file at most.
const MAX_EXPORTED: usize = 100_000;

/// Bytes of a command's output that the agent is shown.
const MAX_OUTPUT: usize = 30 * 1024;

/// A call on its way.
pub(super) type Call = BoxFuture<'static, Done>;

/// What a call came to.
pub(super) enum Done {
    /// The steering message was taken, or why not.
    Steered(String, Result<(), Error>),
    /// A question was answered.
    Replied(String, Result<Replied, Error>),
    /// The run was told to end.
    Killed(Result<(), Error>),
    /// Something to show, as Markdown.
    Shown(Result<String, Error>),
    /// The history was put away: behind a summary, or for a fresh start.
    PutAway(Result<CompactResponse, Error>),
    /// Something was done.
    Noted(Result<String, Error>),
    /// What there is to complete with, and to tell in the status; nothing, where no
    /// daemon said it.
    Learned(Option<Box<Learned>>),
    /// The last messages, which the person asked for.
    History(Result<HistoryPage, Error>),
    /// Those that are shown before the next news of a run, for the wait of this number.
    Before(u64, Result<HistoryPage, Error>),
    /// What a run changed among files.
    Changes(Result<ChangeList, Error>),
    /// What was put back.
    Undone(Result<UndoReport, Error>),
    /// Where a person may switch to.
    Places(Result<Vec<Place>, Error>),
    /// An archive, to be read.
    Archive(Result<ArchiveContent, Error>),
    /// An image of the clipboard, in a file.
    Clipboard(Result<PathBuf, String>),
    /// A daemon answers, or why none could be started.
    Started(Result<(), Error>),
    /// Asks that wait now.
    Asks(Vec<PendingAsk>),
    /// A message was announced, or could not be, which nobody has to know.
    Announced,
    /// The person's own command ended.
    Shell {
        command: String,
        status: String,
        output: String,
    },
}

/// What the chat knows of the daemon.
#[derive(Default)]
pub(super) struct Learned {
    pub(super) known: Known,
    pub(super) agent: String,
    pub(super) sender: String,
    pub(super) models: Vec<ModelInfo>,
    /// Whether the daemon would lose images of a message.
    pub(super) is_older: bool,
}

/// Whose conversation it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Pair {
    pub(super) agent: String,
    pub(super) sender: String,
}

/// Asks for what completes and what the status tells. What is refused stays
/// empty: the chat does without. What nobody answers changes nothing of what is known.
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
        return Done::Learned(None);
    };
    let models = models.map(|list| list.models).unwrap_or_default();
    let skills = skills.map(|list| list.skills).unwrap_or_default();
    let agents = agents.map(|list| list.agents).unwrap_or_default();
    let welcome = connection.welcome().cloned();
    let is_older = !welcome.as_ref().is_some_and(|w| w.takes_images);
    let own = welcome.map(|welcome| welcome.default_sender);
    let offline = |model: &ModelInfo| model.name == "offline" || model.provider == "offline";
    let active = models.iter().find(|model| model.active);
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
    Done::Learned(Some(Box::new(Learned {
        known,
        agent: rights.map_or(pair.agent, |rights| rights.agent),
        sender: match pair.sender.as_str() {
            "" => own.unwrap_or_default(),
            sender => sender.to_owned(),
        },
        models,
        is_older,
    })))
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

/// The same, for the wait of this number.
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

/// Says that a message is coming. An older daemon does not know what that is.
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

/// Puts the history away; no model is asked.
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
    let said = format!("{model} answers from now on, wherever an agent names no other");
    Done::Noted(
        client
            .call(SetActiveModelMsg { model })
            .await
            .map(|()| said),
    )
}

pub(super) async fn title(client: Client, pair: Pair, title: String) -> Done {
    let said = format!("the conversation is called \"{title}\"");
    let Pair { agent, sender } = pair;
    let request = SetConversationMsg {
        agent,
        sender,
        title: Some(title),
        cwd: None,
    };
    Done::Noted(client.call(request).await.map(|()| said))
}

/// What the agent may do; `rules`, or the names of its tools alone.
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
            "What **{}** may do here (mode: {mode}):\n\n| tool | for you | rules |\n|---|---|---|\n",
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
        text + "\n`crabtalk approvals` lists what you allowed for good."
    }))
}

pub(super) async fn skills(client: Client, cwd: Option<String>) -> Done {
    let answer = client.call(ListSkillsMsg { cwd }).await;
    Done::Shown(answer.map(|list| {
        if list.skills.is_empty() {
            return "There are no skills.".to_owned();
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
            return "Nothing is remembered yet.".to_owned();
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

/// The servers of tools.
pub(super) async fn mcps(client: Client) -> Done {
    let answer = client.call(ListMcpsMsg {}).await;
    Done::Shown(answer.map(|list| {
        if list.mcps.is_empty() {
            return "There are no servers of tools; `crabtalk mcps add` adds one.".to_owned();
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

pub(super) async fn cost(client: Client, session: (u64, f64)) -> Done {
    let answer = client.call(GetStats { days: 1 }).await;
    Done::Shown(answer.map(|stats| {
        let mut text = format!(
            "This chat: **{}** tokens{}.\n\nToday: **{}** tokens{}{}{}.\n",
            tokens(session.0),
            in_money(session.1),
            tokens(stats.tokens_today),
            stats
                .tokens_per_day
                .map_or_else(String::new, |limit| format!(" of {}", tokens(limit))),
            in_money(stats.money_today),
            stats
                .money_per_day
                .map_or_else(String::new, |limit| format!(" of {limit}")),
        );
        let rows = stats
            .spending
            .iter()
            .filter(|row| row.by == "model" && row.calls > 0);
        let rows: String = rows
            .map(|row| {
                let (read, written) = (tokens(row.prompt_tokens), tokens(row.completion_tokens));
                format!(
                    "| {} | {} | {read} | {written} | {} |\n",
                    cell(&row.model),
                    row.calls,
                    spent(row.money, row.unpriced_tokens)
                )
            })
            .collect();
        if !rows.is_empty() {
            text.push_str("\n| model | calls | read | written | money |\n|---|--:|--:|--:|--:|\n");
            text.push_str(&rows);
        }
        text + &format!(
            "\nThe daemon has been up for {}.",
            duration(stats.uptime_secs)
        )
    }))
}

/// Money that was spent, where any was.
fn in_money(spent: f64) -> String {
    match spent > 0.0 {
        true => format!(", {} in money", money(spent)),
        false => String::new(),
    }
}

/// Writes the working history to a file that does not exist yet.
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

/// Runs a command of the person's own.
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
        cut => format!("(the first {cut} bytes are left out)\n{}", &output[cut..]),
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

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
