//! Messages written while no daemon runs.
//!
//! Invariants: a message is held until a daemon answers, or returns to the composer;
//! only sending a message, or Enter with held messages, starts the daemon, since it may have been
//! stopped on purpose.

use super::Live;
use crabtalk_client::{Error, Starter};
use crabtalk_proto::StreamMsg;

/// The held messages.
#[derive(Default)]
pub(super) struct Gone {
    /// Requests with the typed text.
    held: Vec<(StreamMsg, String)>,
    /// Whether a daemon is being started.
    starts: bool,
}

impl Gone {
    /// The texts of held messages.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &str> {
        self.held.iter().map(|(_, said)| said.as_str())
    }
}

impl Live<'_> {
    /// Whether the local daemon is not running and must be started.
    pub(super) fn is_gone(&self) -> bool {
        let is_here = self.client.endpoint().is_local();
        is_here && (self.gone.starts || self.outage.why().is_some())
    }

    /// The reason why unsent messages wait; `None` if the daemon runs.
    pub(super) fn awaits(&self) -> Option<&'static str> {
        let is_gone = self.is_gone();
        if !is_gone && self.outage.why().is_none() {
            return None;
        }
        Some(match self.gone.starts || !is_gone {
            true => "waits for the daemon",
            false if self.context.global.no_start => "waits for a daemon",
            false => "waits for a daemon, Enter starts one",
        })
    }

    /// The texts of messages that were not sent to a daemon.
    pub(super) fn unsent(&self) -> Vec<String> {
        let away = self.awaits().is_some();
        let sent = self.runs.waiting().filter(|_| away).map(|(said, _)| said);
        sent.chain(self.gone.waiting()).map(str::to_owned).collect()
    }

    /// Holds a message and starts a daemon.
    pub(super) fn hold(&mut self, request: StreamMsg, said: String) {
        self.gone.held.push((request, said));
        self.start();
    }

    /// Starts a daemon for the held messages.
    pub(super) fn start(&mut self) {
        if self.gone.starts {
            return;
        }
        let starter = match (self.context.global.no_start, std::env::current_exe()) {
            (true, _) => Err("no daemon runs, and --no-start forbids starting one".to_owned()),
            (false, Ok(program)) => Ok(Starter::new(program, self.context.home.root())),
            (false, Err(error)) => Err(format!("cannot find this program: {error}")),
        };
        match starter {
            Ok(starter) => {
                self.gone.starts = true;
                let started = async move { starter.start().await };
                self.call(started, |live, outcome| live.started(outcome));
            }
            Err(why) => self.not_started(&why),
        }
    }

    /// Handles the result of starting a daemon.
    fn started(&mut self, outcome: Result<(), Error>) {
        self.gone.starts = false;
        match outcome {
            Ok(()) => {
                self.since = std::time::Instant::now();
                for (request, said) in self.gone.held.drain(..) {
                    self.runs.send(&self.client, request, said);
                }
            }
            Err(error) => self.not_started(&error.to_string()),
        }
    }

    fn not_started(&mut self, why: &str) {
        self.transcript.problem(why);
        let said: Vec<String> = self.gone.held.drain(..).map(|(_, said)| said).collect();
        if !said.is_empty() {
            self.put_back(&said.join("\n"));
        }
    }

    /// Puts unsent text before the composer's text.
    pub(super) fn put_back(&mut self, said: &str) {
        let text = match self.composer.is_empty() {
            true => said.to_owned(),
            false => format!("{said}\n{}", self.composer.text()),
        };
        self.composer.set(&text);
    }
}
