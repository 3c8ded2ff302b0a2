//! `remote`: manages known remote daemons.

use super::Context;
use crate::args::{Named, Remote};
use crate::error::Error;
use crate::remotes::{Known, Remotes, fingerprint};
use crate::stdin;
use crabtalk_client::{Address, Client, Fingerprint};
use crabtalk_config::{is_name, read_limited};
use crabtalk_proto::WelcomeMsg;
use futures_util::StreamExt;
use serde_json::json;
use std::path::Path;

/// Largest token file.
const MAX_TOKEN_BYTES: u64 = 4096;

pub(super) async fn run(context: &mut Context, command: Remote) -> Result<(), Error> {
    match command {
        Remote::List => list(context),
        Remote::Add {
            name,
            address,
            fingerprint,
            token_file,
        } => {
            let given = Given {
                name,
                address,
                fingerprint,
            };
            add(context, given, token_file.as_deref()).await
        }
        Remote::Rm(Named { name }) => {
            let mut remotes = Remotes::load(&context.home)?;
            if remotes.remote.remove(&name).is_none() {
                return Err(Error::Failed(format!("unknown remote {name:?}")));
            }
            remotes.save(&context.home)?;
            let said =
                format!("crabtalk: removed {name}; `crabtalk tokens rm` there revokes its token");
            context.done(json!({"removed": name}), &said)
        }
    }
}

fn list(context: &mut Context) -> Result<(), Error> {
    let remotes = Remotes::load(&context.home)?;
    let objects = remotes.remote.iter().map(|(name, known)| {
        json!({"name": name, "address": known.address, "fingerprint": known.fingerprint})
    });
    if context.for_scripts(objects)? {
        return Ok(());
    }
    let rows = remotes.remote.iter().map(|(name, known)| {
        let certificate = known
            .fingerprint
            .as_deref()
            .unwrap_or("none, on this machine");
        vec![name.clone(), known.address.clone(), certificate.to_owned()]
    });
    let none = "no remotes; `crabtalk remote add` adds one";
    context.print_table(&["name", "address", "certificate"], rows, none)
}

/// Options of `remote add`.
struct Given {
    name: String,
    address: String,
    fingerprint: Option<String>,
}

async fn add(context: &mut Context, given: Given, token_file: Option<&Path>) -> Result<(), Error> {
    if !is_name(&given.name) {
        return Err(Error::Usage(format!(
            "{:?} is not a valid name: use letters, digits, - and _",
            given.name
        )));
    }
    let address = Address::parse(&given.address).map_err(Error::Usage)?;
    let wanted = given.fingerprint.as_deref().map(fingerprint).transpose()?;
    let seen = crabtalk_client::fingerprint(&address).await?;
    match (wanted, seen) {
        (Some(wanted), Some(seen)) if wanted != seen => {
            return Err(Error::Failed(format!(
                "the certificate of {address} is {seen}, not {wanted}: nothing was added"
            )));
        }
        (Some(_), None) => {
            return Err(Error::Failed(format!(
                "{address} does not speak TLS: nothing was added"
            )));
        }
        (Some(_), Some(_)) | (None, None) => {}
        (None, Some(seen)) => compare(context, &address, seen).await?,
    }
    let known = Known {
        address: address.to_string(),
        token: token(context, token_file).await?,
        fingerprint: seen.map(|seen| seen.to_string()),
    };
    // An address that does not work is not saved.
    let client = Client::new(
        known.endpoint()?,
        concat!("crabtalk/", env!("CARGO_PKG_VERSION")),
    );
    let connection = client.connect().await?;
    let WelcomeMsg {
        role,
        default_sender: sender,
        ..
    } = connection.welcome().clone();
    let mut remotes = Remotes::load(&context.home)?;
    remotes.remote.insert(given.name.clone(), known);
    remotes.save(&context.home)?;
    let said = format!(
        "crabtalk: {} is added: role {role}, speaking as {sender}. Try: crabtalk --connect {} ask \
         \"hello\"",
        given.name, given.name
    );
    context.done(
        json!({"added": given.name, "role": role, "sender": sender}),
        &said,
    )
}

/// Asks a person to compare the fingerprint with the one that the daemon's owner sees.
async fn compare(context: &mut Context, address: &Address, seen: Fingerprint) -> Result<(), Error> {
    let Some(terminal) = &mut context.console.terminal else {
        return Err(Error::Usage(format!(
            "the certificate of {address} is {seen}, and there is no terminal to confirm it: pass the \
             fingerprint that `crabtalk tokens` prints on that machine with --fingerprint"
        )));
    };
    terminal.show(&format!(
        "The certificate of {address} is\n  {seen}\nDoes `crabtalk tokens` on that machine print \
         the same? [y/N] "
    ))?;
    let said = terminal.line().await?.unwrap_or_default();
    match said.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::Failed("nothing was added".to_owned())),
    }
}

/// Reads the token from a file, from standard input, or typed without echo.
async fn token(context: &mut Context, file: Option<&Path>) -> Result<String, Error> {
    let text = if let Some(file) = file {
        read_limited(file, MAX_TOKEN_BYTES)?
            .ok_or_else(|| Error::Usage(format!("{} does not exist", file.display())))?
    } else if stdin::is_piped(&std::io::stdin()) {
        stdin::read(std::io::stdin())?
    } else if let Some(terminal) = &mut context.console.terminal {
        terminal.show("Token (hidden): ")?;
        terminal.hide(true);
        let typed = tokio::select! {
            typed = terminal.line() => Some(typed),
            _ = context.console.interrupts.next() => None,
        };
        terminal.hide(false);
        terminal.show("\n")?;
        typed.ok_or(Error::Interrupted)??.unwrap_or_default()
    } else {
        return Err(Error::Usage(
            "pipe the token in, or use --token-file".to_owned(),
        ));
    };
    match text.trim() {
        "" => Err(Error::Usage("the token is empty".to_owned())),
        token => Ok(token.to_owned()),
    }
}
