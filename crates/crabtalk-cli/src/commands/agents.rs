//! `agents`: what they are and may do.

use super::Context;
use crate::args::Agents;
use crate::error::Error;
use crate::{json, stdin, table};
use crabtalk_config::{AgentFile, write_atomic};
use crabtalk_proto::{
    AgentInfo, AgentRights, Client, CreateAgentMsg, DeleteAgentMsg, GetAgentMsg, GetRightsMsg,
    ListAgentsMsg, UpdateAgentMsg,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a new agent begins.
const TEMPLATE: &str = "---\ndescription: \n---\nYou are \n";

pub(super) async fn run(context: &mut Context, command: Agents) -> Result<(), Error> {
    match command {
        Agents::List => list(context).await,
        Agents::Show { name } => show(context, name).await,
        Agents::New { name, file } => {
            let text = text(context, file, &name, TEMPLATE)?;
            write(context, true, name, text).await
        }
        Agents::Edit { name, file } => {
            let request = GetAgentMsg { name: name.clone() };
            let info = context.connection().await?.get_agent(request).await?;
            let before = file_of(&info);
            let text = text(context, file, &name, &before)?;
            write(context, false, name, text).await
        }
        Agents::Rm { name } => {
            let request = DeleteAgentMsg { name: name.clone() };
            context.connection().await?.delete_agent(request).await?;
            let said = format!("crabtalk: the agent {name} is removed");
            context.done(json!({"removed": name}), &said)
        }
    }
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let listed = context
        .connection()
        .await?
        .list_agents(ListAgentsMsg {})
        .await?;
    if context.global.json {
        for agent in &listed.agents {
            context.console.screen.json(&json::of(agent))?;
        }
        return Ok(());
    }
    let rows = listed.agents.into_iter().map(|agent| {
        vec![
            agent.name,
            agent.model.unwrap_or_default(),
            agent.members.join(", "),
            agent.description,
        ]
    });
    let rows = rows.collect();
    let header = ["agent", "model", "members", "description"];
    context.print_table(&header, rows, "there are no agents")
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
    let rows = rows.collect();
    let header = ["tool", "for owners", "for others", "unattended", "rules"];
    context.print_table(&header, rows, "it has no tools")
}

fn facts(info: &AgentInfo, rights: &AgentRights) -> Vec<(&'static str, String)> {
    let or = |text: String, empty: &str| if text.is_empty() { empty.into() } else { text };
    vec![
        ("agent", info.name.clone()),
        ("description", info.description.clone()),
        (
            "model",
            or(info.model.clone().unwrap_or_default(), "the active one"),
        ),
        ("works in", or(rights.cwd.clone(), "the user's home")),
        (
            "sandbox",
            match (rights.sandbox, rights.sandbox_strict) {
                (_, true) => "strict",
                (true, false) => "yes",
                (false, false) => "no",
            }
            .to_owned(),
        ),
        ("skills", or(rights.skills.join(", "), "all")),
        ("mcps", or(rights.mcps.join(", "), "all")),
        ("members", or(rights.members.join(", "), "none")),
    ]
}

/// An agent's file as the daemon has it.
fn file_of(info: &AgentInfo) -> String {
    let config = info.config.trim_end();
    let newline = if config.is_empty() { "" } else { "\n" };
    format!("---\n{config}{newline}---\n{}\n", info.prompt.trim())
}

/// The text of an agent's file: of a file, of standard input, of the editor.
fn text(
    context: &Context,
    file: Option<PathBuf>,
    name: &str,
    before: &str,
) -> Result<String, Error> {
    match file {
        Some(file) if file.as_os_str() == "-" => stdin::read(std::io::stdin().lock()),
        Some(file) => std::fs::read_to_string(&file)
            .map_err(|e| Error::io(format_args!("read {}", file.display()), &e)),
        None => {
            let draft = format!("draft-{}-{}.md", std::process::id(), draft_name(name));
            let draft = context.home.state_dir().join(draft);
            let edited = editor().and_then(|editor| edit(&editor, &draft, before));
            // It is only a draft; what was written is in the agent's file.
            let _ = std::fs::remove_file(&draft);
            edited
        }
    }
}

/// A name that makes a file name, whatever was typed.
fn draft_name(name: &str) -> String {
    let keep = |c: &char| c.is_ascii_alphanumeric() || *c == '-' || *c == '_';
    name.chars().filter(keep).take(64).collect()
}

fn editor() -> Result<String, Error> {
    let known = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|editor| !editor.is_empty()));
    known.ok_or_else(|| {
        Error::Usage("no editor is known: set EDITOR, or give the text with --file".to_owned())
    })
}

fn edit(editor: &str, draft: &Path, before: &str) -> Result<String, Error> {
    write_atomic(draft, before)?;
    // A shell, since people set EDITOR to a program with options.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(draft)
        .status()
        .map_err(|e| Error::io(format_args!("start {editor}"), &e))?;
    if !status.success() {
        return Err(Error::Failed(format!(
            "{editor} ended with {status}; nothing was changed"
        )));
    }
    let after = std::fs::read_to_string(draft)
        .map_err(|e| Error::io(format_args!("read {}", draft.display()), &e))?;
    if after == before {
        return Err(Error::Failed("nothing was changed".to_owned()));
    }
    Ok(after)
}

async fn write(
    context: &mut Context,
    create: bool,
    name: String,
    text: String,
) -> Result<(), Error> {
    let path = PathBuf::from(format!("{name}.md"));
    let (file, warnings) = AgentFile::parse(&text, &path)?;
    for warning in warnings {
        context
            .console
            .screen
            .problem(&format!("crabtalk: {warning}"))?;
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
    let said = format!("crabtalk: the agent {} is written", info.name);
    context.done(json::of(&info), &said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_draft_is_what_comes_back_and_an_unedited_one_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let draft = folder.path().join("draft.md");
        let info = AgentInfo {
            config: "# why\nmodel: m\n".into(),
            prompt: "You are.".into(),
            ..AgentInfo::default()
        };
        let before = file_of(&info);
        assert_eq!(before, "---\n# why\nmodel: m\n---\nYou are.\n");
        let edited = |editor: &str| edit(editor, &draft, &before).map_err(|e| e.to_string());
        let after = "---\n# why\nmodel: n\n---\nYou are.\n".to_owned();
        assert_eq!(edited("sed -i s/:\\ m/:\\ n/"), Ok(after));
        assert_eq!(edited("true"), Err("nothing was changed".into()));
        assert!(edited("false").is_err_and(|e| e.contains("nothing was changed")));
        assert_eq!(draft_name("../a b"), "ab");
    }
}
