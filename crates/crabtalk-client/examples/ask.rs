//! Asks one question and prints the answer as it comes:
//! `cargo run -p crabtalk-client --example ask -- ~/.crabtalk "why is the sky blue?"`
//!
//! The daemon is started if it does not run, and the answer goes on where it
//! was when the connection is lost.

use crabtalk_client::{Client, Endpoint, RunNews, Starter, StreamMsg, stream_event::Event};
use futures_util::StreamExt;
use std::error::Error;
use std::io::Write;
use std::path::Path;

/// The client, in ten lines.
pub(crate) async fn ask(
    home: &Path,
    question: &str,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let client = Client::new(Endpoint::of_home(home), "example/1");
    client
        .find_or_start(&Starter::new("crabtalk", home))
        .await?;
    let mut run = client.stream(StreamMsg {
        content: question.into(),
        ..Default::default()
    });
    while let Some(news) = run.next().await {
        if let RunNews::Event(event) = news?
            && let Some(Event::Chunk(chunk)) = event.event
        {
            write!(out, "{}", chunk.content)?;
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let (home, question) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    ask(
        home.as_ref(),
        &question.to_string_lossy(),
        &mut std::io::stdout(),
    )
    .await
}
