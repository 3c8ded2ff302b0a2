//! `mcps`: manages servers of the Model Context Protocol.

mod import;
mod login;

use super::{Column, Context, switch};
use crate::args::{Mcps, Named};
use crate::error::Error;
use crate::json;
use crabtalk_proto::{
    DeleteMcpMsg, ListMcpsMsg, LogoutMcpMsg, McpInfo, ResourceKind, SetMcpMsg, TestMcpMsg,
};
use serde_json::{Map, Value, json};

/// The text shown instead of an empty list.
const NONE_YET: &str =
    "crabtalk: no servers or components; add one with `crabtalk mcps add NAME -- PROGRAM ..`";

pub(super) async fn run(context: &mut Context, command: Mcps) -> Result<(), Error> {
    match command {
        Mcps::List => list(context).await,
        Mcps::Add {
            name,
            url,
            header,
            env,
            trust_annotations,
            command,
        } => {
            let mut table = match (url, command.split_first()) {
                (Some(url), _) => json!({"url": url, "headers": pairs(&header)?}),
                (None, Some((program, args))) => {
                    json!({"command": program, "args": args, "env": pairs(&env)?})
                }
                (None, None) => {
                    return Err(Error::Usage(
                        "give a program after `--`, or an address with --url".to_owned(),
                    ));
                }
            };
            if trust_annotations {
                table["trust"] = "annotations".into();
            }
            set(context, &name, &table).await?;
            let said = format!("crabtalk: added {name}; test it with `crabtalk mcps test {name}`");
            context.done(json!({"added": name}), &said)
        }
        Mcps::Rm(Named { name }) => {
            let request = DeleteMcpMsg { name: name.clone() };
            context.call(request).await?;
            context.done(
                json!({"removed": name}),
                &format!("crabtalk: removed {name}"),
            )
        }
        Mcps::Test(Named { name }) => test(context, name).await,
        Mcps::Login { name, no_browser } => login::run(context, name, !no_browser).await,
        Mcps::Logout(Named { name }) => {
            let request = LogoutMcpMsg { name: name.clone() };
            context.call(request).await?;
            let said = format!("crabtalk: deleted the login to {name}; the server is not informed");
            context.done(json!({"logged_out": name}), &said)
        }
        Mcps::Enable(Named { name }) => {
            switch(context, ResourceKind::Mcp, "name", name, true).await
        }
        Mcps::Disable(Named { name }) => {
            switch(context, ResourceKind::Mcp, "name", name, false).await
        }
        Mcps::Import { file, yes } => import::run(context, file.as_deref(), yes).await,
    }
}

async fn set(context: &mut Context, name: &str, table: &Value) -> Result<(), Error> {
    let mut table = table.clone();
    // Empty values are omitted.
    if let Some(table) = table.as_object_mut() {
        table.retain(|_, value| {
            !value.as_object().is_some_and(Map::is_empty)
                && !value.as_array().is_some_and(Vec::is_empty)
        });
    }
    let request = SetMcpMsg {
        name: name.to_owned(),
        config: table.to_string(),
    };
    context.call(request).await
}

/// Parses repeated `NAME=VALUE` options.
fn pairs(given: &[String]) -> Result<Value, Error> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), Value::from(value))),
        _ => Err(Error::Usage(format!("{text:?} is not NAME=VALUE"))),
    };
    let pairs: Result<Map<String, Value>, Error> = given.iter().map(pair).collect();
    Ok(Value::Object(pairs?))
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let listed = context.call(ListMcpsMsg {}).await?;
    let columns: &[Column<McpInfo>] = &[
        ("server", |mcp| mcp.name.clone()),
        ("state", |mcp| mcp.state.clone()),
        ("tools", |mcp| mcp.tool_count.to_string()),
        ("source", |mcp| mcp.source.clone()),
        ("where", place),
        ("error", |mcp| mcp.error.clone()),
    ];
    context.list(&listed.mcps, columns, NONE_YET)
}

fn place(mcp: &McpInfo) -> String {
    match mcp.url.is_empty() {
        true => format!("{} {}", mcp.command, mcp.args.join(" ")),
        false => mcp.url.clone(),
    }
}

async fn test(context: &mut Context, name: String) -> Result<(), Error> {
    let request = TestMcpMsg {
        name: name.clone(),
        config: String::new(),
    };
    let tested = context.call(request).await?;
    if context.global.json {
        context.console.screen.json(&json::of(&tested))?;
    } else {
        for step in &tested.steps {
            context.note(step)?;
        }
        let row = |tool: crabtalk_proto::McpToolInfo| {
            let first = tool.description.lines().next().unwrap_or_default();
            let reads = if tool.read_only { "reads" } else { "" };
            vec![tool.name, reads.to_owned(), first.to_owned()]
        };
        let rows = tested.tools.into_iter().map(row);
        let none = "crabtalk: the server has no tools";
        if tested.ok {
            context.print_table(&["tool", "", "what it does"], rows, none)?;
        }
    }
    if tested.ok {
        return Ok(());
    }
    let mut why = format!("{name}: {}", tested.error);
    if !tested.stderr.is_empty() && !why.contains(tested.stderr.trim()) {
        why.push_str(&format!("\nits error output: {}", tested.stderr));
    }
    Err(Error::Failed(why))
}
