//! `mcps login`: a person logs in with a browser, which is redirected to this program.
//!
//! Invariants: the listener is on loopback and accepts one redirect, that of the
//! login in progress; a browser is opened only for a person at a terminal.

use super::Context;
use crate::error::Error;
use crabtalk_component::Listener;
use crabtalk_proto::{FinishMcpLoginMsg, LoginMcpMsg};
use serde_json::json;
use std::io::IsTerminal;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The path of the redirect address.
const PATH: &str = "/callback";

/// Maximum bytes read of a browser's request, of which only the first line is
/// used.
const MAX_REQUEST: usize = 16 << 10;

/// Timeout of a browser's request.
const SAYS_WITHIN: Duration = Duration::from_secs(5);

/// Time for the person to log in, equal to the daemon's.
const WITHIN: Duration = Duration::from_secs(900);

pub(super) async fn run(context: &mut Context, name: String, may_open: bool) -> Result<(), Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.map_err(|e| Error::io("listen on 127.0.0.1", &e))?;
    let port = listener.local_addr().map(|at| at.port());
    let port = port.map_err(|e| Error::io("listen on 127.0.0.1", &e))?;
    let listener = Listener::private(listener);
    let here = format!("http://127.0.0.1:{port}");
    let request = LoginMcpMsg {
        name: name.clone(),
        redirect: format!("{here}{PATH}"),
    };
    let begun = context.call(request).await?;
    let address = crabtalk_proto::visible(&begun.address).into_owned();
    if context.global.json {
        context.console.screen.json(&json!({"address": address}))?;
    } else {
        let said = format!("crabtalk: open this address to log in to {name}:\n\n{address}\n");
        context.note(&said)?;
    }
    let is_person = !context.global.json && std::io::stdout().is_terminal();
    if may_open && is_person {
        open(&address);
    }
    let state = of_query(&begun.address, "state").unwrap_or_default();
    let came = comes(context, &listener, &state);
    let (redirected, page) = match tokio::time::timeout(WITHIN, came).await {
        Ok(came) => came?,
        Err(_) => {
            return Err(Error::Failed("no login within 15 minutes".into()));
        }
    };
    let request = FinishMcpLoginMsg {
        name: name.clone(),
        redirected: format!("{here}{redirected}"),
    };
    let finished = context.call(request).await;
    if let Some(page) = page {
        let said = match &finished {
            Ok(()) => format!("You are logged in to {name}. You can close this page."),
            Err(_) => format!("The login to {name} failed; the terminal says why."),
        };
        answer(page, "200 OK", &said).await;
    }
    finished?;
    let said = format!("crabtalk: you are logged in to {name}");
    context.done(json!({"logged_in": name}), &said)
}

/// Waits for the browser, or for a person who types the address to which the browser was redirected
/// elsewhere. Returns the path with its query, and the connection that waits for a page.
async fn comes(
    context: &mut Context,
    listener: &Listener,
    state: &str,
) -> Result<(String, Option<TcpStream>), Error> {
    let failed = |e: std::io::Error| Error::io("wait for the browser", &e);
    let mut terminal = context
        .console
        .terminal
        .as_mut()
        .filter(|_| !context.global.json);
    loop {
        let typed = async {
            match terminal.as_mut() {
                Some(terminal) => terminal.line().await,
                None => std::future::pending().await,
            }
        };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted.map_err(failed)?.0,
            line = typed => {
                let Some(line) = line.map_err(failed)? else {
                    // The terminal is closed.
                    terminal = None;
                    continue;
                };
                match line.find(&format!("{PATH}?")) {
                    Some(at) if of_query(&line, "state").as_deref() == Some(state) => {
                        return Ok((line[at..].trim().to_owned(), None));
                    }
                    _ => continue,
                }
            }
        };
        // A silent connection must not block others.
        let Ok(Some((path, stream))) = tokio::time::timeout(SAYS_WITHIN, asks(stream)).await else {
            continue;
        };
        let is_it = path.starts_with(&format!("{PATH}?"));
        if is_it && of_query(&path, "state").as_deref() == Some(state) {
            return Ok((path, Some(stream)));
        }
        answer(stream, "404 Not Found", "There is nothing here.").await;
    }
}

/// Reads the path of a request.
async fn asks(mut stream: TcpStream) -> Option<(String, TcpStream)> {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if head.len() > MAX_REQUEST || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.lines().next()?.split(' ');
    let path = (words.next()? == "GET").then(|| words.next())??;
    Some((path.to_owned(), stream))
}

async fn answer(mut stream: TcpStream, status: &str, said: &str) {
    let said = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{said}",
        said.len()
    );
    // The browser may have closed the connection.
    let _ = stream.write_all(said.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The raw value of a query parameter.
fn of_query(address: &str, name: &str) -> Option<String> {
    let (_, query) = address.trim().split_once('?')?;
    let query = query.split('#').next()?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

/// Opens a browser if there is a display.
fn open(address: &str) {
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    let program = match std::env::consts::OS {
        "macos" => "open",
        _ if has_screen => "xdg-open",
        _ => return,
    };
    // Only web addresses: no files, no options.
    if !address.starts_with("https://") && !address.starts_with("http://") {
        return;
    }
    // The address is also printed.
    let _ = Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_state_is_read_from_the_query() {
        let of = |address: &str| of_query(address, "state");
        assert_eq!(
            of("https://x/a?code=1&state=s%2F1#top").as_deref(),
            Some("s%2F1")
        );
        assert_eq!(of("/callback?state=a&code=b").as_deref(), Some("a"));
        assert_eq!(of("/callback?mystate=a"), None);
        assert_eq!(of("/callback"), None);
    }
}
