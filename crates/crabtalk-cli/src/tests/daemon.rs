//! A daemon on a real socket, and command lines that use it.

use super::{Person, Script};
use crate::args::{Cli, Command};
use crate::context::Context;
use crate::follow::Console;
use crate::screen::Screen;
use clap::Parser;
use crabtalk_config::Home;
use crabtalk_proto::{Status, StreamEvent, stream_event};
use crabtalk_testkit::Buffer;
use crabtalk_transport::{Crowd, serve};
use std::path::Path;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A daemon that follows the test's script.
pub(crate) struct Fake {
    folder: tempfile::TempDir,
    pub(crate) script: Script,
    pub(crate) events: mpsc::Sender<StreamEvent>,
    /// Requests that the server received, one line each.
    pub(crate) told: mpsc::Receiver<String>,
    server: JoinSet<()>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (events, receiver) = mpsc::channel(64);
        let (teller, told) = mpsc::channel(64);
        let script = Script::new(receiver, teller);
        let server = listen(folder.path(), &script).await;
        Self {
            folder,
            script,
            events,
            told,
            server,
        }
    }

    pub(crate) async fn send(&self, event: stream_event::Event) {
        self.events.send(event.into()).await.unwrap();
    }

    /// Kills the daemon.
    pub(crate) async fn stop(&mut self) {
        self.server.shutdown().await;
    }

    /// Starts another daemon, which relays the events sent from now on.
    pub(crate) async fn start_again(&mut self) {
        let (events, receiver) = mpsc::channel(64);
        let (teller, told) = mpsc::channel(64);
        (self.events, self.told) = (events, told);
        self.script = Script::new(receiver, teller);
        self.server = listen(self.folder.path(), &self.script).await;
    }

    /// The next request that the server received.
    pub(crate) async fn next_told(&mut self) -> String {
        self.told.recv().await.unwrap()
    }

    /// A command line with this daemon, and its output.
    pub(crate) fn at(&self, words: &str) -> At {
        let words = std::iter::once("crabtalk").chain(words.split_whitespace());
        let mut cli = Cli::try_parse_from(words).unwrap();
        // These tests run inside a repository.
        cli.global.project.get_or_insert_default();
        let (out, err) = (Buffer::default(), Buffer::default());
        let (interrupt, interrupts) = mpsc::channel(4);
        let console = Console {
            screen: Screen::test(out.clone(), err.clone(), false),
            terminal: None,
            interrupts: Box::pin(futures_util::stream::unfold(interrupts, async |mut i| {
                // A closed channel of Ctrl-C keys does not end the program.
                match i.recv().await {
                    Some(()) => Some(((), i)),
                    None => std::future::pending().await,
                }
            })),
        };
        let home = Home::at(self.folder.path(), None).unwrap();
        let context = Context::new(home, cli.global, console).impatient();
        At {
            context,
            command: cli.command,
            out,
            err,
            interrupt,
        }
    }
}

/// Serves the script in this home.
async fn listen(home: &Path, script: &Script) -> JoinSet<()> {
    let socket = home.join("daemon.sock");
    let listener = crabtalk_transport::listen(&socket).await.unwrap();
    let session = script.clone();
    let mut server = JoinSet::new();
    server.spawn(serve(
        listener,
        Crowd::new(64),
        move |_| Ok::<_, Status>(session.clone()),
        CancellationToken::new(),
    ));
    server
}

/// A command line and its environment.
pub(crate) struct At {
    pub(crate) context: Context,
    pub(crate) command: Option<Command>,
    pub(crate) out: Buffer,
    pub(crate) err: Buffer,
    pub(crate) interrupt: mpsc::Sender<()>,
}

impl At {
    /// Adds a person at the terminal, who types what is sent to the returned sender.
    pub(crate) fn with_person(&mut self) -> (mpsc::Sender<&'static str>, Buffer) {
        let (typist, typed) = mpsc::channel(16);
        let shown = Buffer::default();
        self.context.console.terminal = Some(Box::new(Person {
            typed,
            shown: shown.clone(),
        }));
        (typist, shown)
    }

    pub(crate) async fn run(&mut self) -> Result<(), crate::error::Error> {
        let command = self.command.take().expect("run once");
        crate::commands::run(&mut self.context, command).await
    }
}
