//! `tokens`: manages access from other machines.

use super::Context;
use crate::args::{Named, Tokens};
use crate::error::Error;
use crate::json;
use crabtalk_proto::{CreateTokenMsg, ListTokensMsg, NewToken, RemoveTokenMsg, TokenInfo, visible};
use serde_json::json;

pub(super) async fn run(context: &mut Context, command: Tokens) -> Result<(), Error> {
    match command {
        Tokens::List => list(context).await,
        Tokens::Add {
            name,
            role,
            agents,
            senders,
            folders: cwd,
            until,
        } => {
            let request = CreateTokenMsg {
                name,
                role,
                agents,
                senders,
                cwd,
                until: until.unwrap_or_default(),
            };
            let made = context.call(request).await?;
            show(context, &made)
        }
        Tokens::Rm(Named { name }) => {
            let request = RemoveTokenMsg { name: name.clone() };
            context.call(request).await?;
            let said = format!("crabtalk: removed {name} and closed its connections");
            context.done(json!({"removed": name}), &said)
        }
    }
}

/// Prints the token alone, for scripts.
fn show(context: &mut Context, made: &NewToken) -> Result<(), Error> {
    if context.global.json {
        return Ok(context.console.screen.json(&json::of(made))?);
    }
    context.line(&made.token)?;
    let screen = &mut context.console.screen;
    screen.note(&format!(
        "crabtalk: the token of {} is shown only once; keep it secret",
        made.name
    ))?;
    way_in(context, &made.listen, &made.fingerprint)
}

/// Prints how a client connects.
fn way_in(context: &mut Context, listen: &[String], fingerprint: &str) -> Result<(), Error> {
    let screen = &mut context.console.screen;
    if listen.is_empty() {
        return Ok(screen.note(
            "crabtalk: the daemon does not listen on TCP yet: set `listen` under [tcp], for instance \
             with `crabtalk config set tcp.listen 127.0.0.1:6688`",
        )?);
    }
    screen.note(&format!("crabtalk: listening on {}", listen.join(", ")))?;
    if !fingerprint.is_empty() {
        screen.note(&format!("crabtalk: certificate {fingerprint}"))?;
    }
    Ok(())
}

async fn list(context: &mut Context) -> Result<(), Error> {
    let listed = context.call(ListTokensMsg {}).await?;
    if context.global.json {
        return Ok(context.console.screen.json(&json::of(&listed))?);
    }
    let or = |list: &[String], none: &str| match list {
        [] => none.to_owned(),
        list => visible(&list.join(", ")).into_owned(),
    };
    let row = |token: &TokenInfo| {
        let senders = match token.role.as_str() {
            "talk" => token.name.as_str(),
            "operate" => "all but owners",
            _ => "all",
        };
        let folders = if token.role == "admin" { "all" } else { "none" };
        vec![
            token.name.clone(),
            token.role.clone(),
            or(&token.agents, "all"),
            or(&token.senders, senders),
            or(&token.cwd, folders),
            or(std::slice::from_ref(&token.until), ""),
            token.connections.to_string(),
        ]
    };
    let rows = listed.tokens.iter().map(row);
    let header = [
        "name", "role", "agents", "senders", "folders", "until", "open",
    ];
    context.print_table(&header, rows, "no tokens")?;
    way_in(context, &listed.listen, &listed.fingerprint)
}
