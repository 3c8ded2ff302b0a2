//! `agents`: lists, shows, creates, edits and removes agents.

use super::{Column, Context};
use crate::args::Agents;
use crate::editor::Written;
use crate::error::Error;
use crate::{json, table};
use crabtalk_config::{AgentFile, check_name};
use crabtalk_proto::{
    AgentInfo, AgentRights, Client, CreateAgentMsg, DeleteAgentMsg, GetAgentMsg, GetRightsMsg,
    ListAgentsMsg, UpdateAgentMsg,
};
use serde_json::json;
use std::path::PathBuf;

/// The initial text of a new agent.
const TEMPLATE: &str = "---\ndescription: \n---\nYou are \n";

pub(super) async fn run(context: &mut Context, command: Agents) -> Result<(), Error> {
    match command {
        Agents::List => list(context).await,
        Agents::Show { name } => show(context, name).await,
        Agents::New { name, file } => {
            check_name(&name).map_err(Error::Usage)?;
            let draft = format!("{name}.md");
            let written = Written::get(&context.home, file, &draft, TEMPLATE)?;
            let outcome = write(context, true, name, &written.text).await;
            written.settle(outcome)
        }
        Agents::Edit { name, file } => {
            let request = GetAgentMsg { name: name.clone() };
            let info = context.call(request).await?;
            let before = file_of(&info);
            let draft = format!("{name}.md");
            let written = Written::get(&context.home, file, &draft, &before)?;
            let outcome = write(context, false, name, &written.text).await;
            written.settle(outcome)
        }
        Agents::Rm { name } => {
            let request = DeleteAgentMsg { name: name.clone() };
            context.call(request).await?;
            let said = format!("crabtalk: the agent {name} is removed");
            context.done(json!({"removed": name}), &said)
        }
    }
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let listed = context.call(ListAgentsMsg {}).await?;
    let columns: &[Column<AgentInfo>] = &[
        ("agent", |agent| agent.name.clone()),
        ("model", |agent| agent.model.clone().unwrap_or_default()),
        ("members", |agent| agent.members.join(", ")),
        ("description", |agent| agent.description.clone()),
    ];
    context.list(&listed.agents, columns, "no agents")
}

async fn show(context: &mut Context, name: Option<String>) -> Result<(), Error> {
    let agent = name.unwrap_or_else(|| context.agent());
    let mut connection = context.connection().await?;
    let request = GetAgentMsg {
        name: agent.clone(),
    };
    let info = connection.get_agent(request).await?;
    let rights = connection.get_rights(GetRightsMsg { agent }).await?;
    if context.global.json {
        let mut value = json::of(&info);
        value["rights"] = json::of(&rights);
        return Ok(context.console.screen.json(&value)?);
    }
    let screen = &mut context.console.screen;
    screen.line(&table::pairs(&facts(&info, &rights)))?;
    screen.line("")?;
    let rows = rights.tools.into_iter().map(|tool| {
        vec![
            tool.tool,
            tool.owner,
            tool.other,
            tool.unattended,
            tool.rules.join(", "),
        ]
    });
    let header = ["tool", "for owners", "for others", "unattended", "rules"];
    context.print_table(&header, rows, "no tools")
}

fn facts(info: &AgentInfo, rights: &AgentRights) -> Vec<(&'static str, String)> {
    let or = |text: String, empty: &str| if text.is_empty() { empty.into() } else { text };
    vec![
        ("agent", info.name.clone()),
        ("description", info.description.clone()),
        (
            "model",
            or(info.model.clone().unwrap_or_default(), "the default model"),
        ),
        ("works in", or(rights.cwd.clone(), "the user's home")),
        ("mode", or(rights.mode.clone(), "by folder")),
        ("skills", or(rights.skills.join(", "), "all")),
        ("mcps", or(rights.mcps.join(", "), "all")),
        ("members", or(rights.members.join(", "), "none")),
    ]
}

/// The text of an agent's file, from the daemon's data.
fn file_of(info: &AgentInfo) -> String {
    let config = info.config.trim_end();
    let newline = if config.is_empty() { "" } else { "\n" };
    format!("---\n{config}{newline}---\n{}\n", info.prompt.trim())
}

async fn write(context: &mut Context, create: bool, name: String, text: &str) -> Result<(), Error> {
    let path = PathBuf::from(format!("{name}.md"));
    let (file, warnings) = AgentFile::parse(text, &path)?;
    for warning in warnings {
        context.problem(&format!("crabtalk: {warning}"))?;
    }
    let (config, prompt) = (file.frontmatter, file.prompt);
    let mut connection = context.connection().await?;
    let info = if create {
        let request = CreateAgentMsg {
            name,
            config,
            prompt,
        };
        connection.create_agent(request).await?
    } else {
        let request = UpdateAgentMsg {
            name,
            config,
            prompt,
        };
        connection.update_agent(request).await?
    };
    let said = format!("crabtalk: saved agent {}", info.name);
    context.done(json::of(&info), &said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_name_the_mode_of_the_file_or_the_folder() {
        for (mode, want) in [("", "by folder"), ("read-only", "read-only")] {
            let rights = AgentRights {
                mode: mode.into(),
                ..AgentRights::default()
            };
            let facts = facts(&AgentInfo::default(), &rights);
            assert!(facts.contains(&("mode", want.to_owned())), "{facts:?}");
        }
    }

    #[test]
    fn agent_file_is_shown_as_written() {
        let info = AgentInfo {
            config: "# why\nmodel: m\n".into(),
            prompt: "You are.".into(),
            ..AgentInfo::default()
        };
        assert_eq!(file_of(&info), "---\n# why\nmodel: m\n---\nYou are.\n");
        let bare = AgentInfo::default();
        assert_eq!(file_of(&bare), "---\n---\n\n");
    }
}
