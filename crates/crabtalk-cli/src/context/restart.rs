//! Stops the daemon and starts one of this version.
//!
//! Invariant: a daemon with active runs is stopped only on request.

use super::Context;
use crate::error::Error;
use crate::follow::SETTLE;
use crate::system;
use crate::text::{counted, summary};
use crabtalk_proto::{ActiveConversationInfo, ListActiveConversationsMsg};
use futures_util::StreamExt;
use std::time::Duration;

/// Timeout of a stop; the daemon promises five seconds.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval between checks for active runs.
const LOOK_FOR_RUNS_EVERY: Duration = Duration::from_millis(300);

/// Maximum number of conversations checked; active ones come first.
const MAX_BUSY: u32 = 500;

impl Context {
    /// Restarts the daemon when no run is active. With `now` active runs end at once,
    /// and resume with `resume = "auto"`. Returns whether a daemon ran and how many
    /// runs ended.
    pub(crate) async fn restart(&mut self, now: bool) -> Result<(bool, usize), Error> {
        let cut_off = match now {
            true => self.busy().await.iter().filter(|info| info.running).count(),
            false => {
                self.wait_for_runs().await?;
                0
            }
        };
        let ended = self.end_daemon().await?;
        if cut_off > 0 {
            self.console.screen.note(&format!(
                "crabtalk: {} interrupted; see `crabtalk conversations`",
                counted(cut_off, "run")
            ))?;
        }
        self.start().await?;
        Ok((ended.is_some(), cut_off))
    }

    /// Reports a daemon of another version, and offers a restart at a terminal.
    pub(super) async fn tell_of_difference(&mut self, difference: &str) -> Result<(), Error> {
        let said = format!("crabtalk: {difference}");
        let is_ours = self.client.endpoint().is_local() && !self.global.no_start;
        let is_read = self.console.screen.is_terminal() && !self.global.json;
        let terminal = self.console.terminal.as_mut();
        let Some(terminal) = terminal.filter(|_| is_ours && is_read) else {
            return Ok(self.console.screen.note(&said)?);
        };
        let failed = |e| Error::io("ask at the terminal", &e);
        terminal.show(&format!("{said}\n")).map_err(failed)?;
        // Earlier input does not answer.
        tokio::time::sleep(SETTLE).await;
        terminal.forget();
        let question = "Restart it now? It waits for active runs. [y]es, [n]o > ";
        terminal.show(question).map_err(failed)?;
        let answer = terminal.line().await.map_err(failed)?;
        let answer = answer.unwrap_or_default().trim().to_lowercase();
        if answer == "y" || answer == "yes" {
            self.restart(false).await?;
        }
        Ok(())
    }

    /// Stops the daemon and returns its pid.
    pub(crate) async fn end_daemon(&self) -> Result<Option<i32>, Error> {
        let Some(pid) = self.client.endpoint().daemon_pid().await else {
            return Ok(None);
        };
        // The kernel reports the peer of the socket.
        match tokio::time::timeout(STOP_TIMEOUT, system::end(pid)).await {
            Ok(Ok(())) => Ok(Some(pid)),
            Ok(Err(e)) => Err(Error::io(format_args!("end the daemon (pid {pid})"), &e)),
            Err(_) => Err(Error::Failed(format!(
                "the daemon (pid {pid}) does not stop; `kill -9 {pid}` ends it without losing saved messages"
            ))),
        }
    }

    /// Conversations with active or queued runs.
    async fn busy(&self) -> Vec<ActiveConversationInfo> {
        let request = ListActiveConversationsMsg {
            limit: MAX_BUSY,
            ..ListActiveConversationsMsg::default()
        };
        // A failed list does not block the stop.
        let listed = self.client.call(request).await;
        let mut found = listed.map_or_else(|_| Vec::new(), |listed| listed.conversations);
        found.retain(|info| info.running || info.queued > 0);
        found
    }

    /// Waits until no run is active, reporting the active ones.
    async fn wait_for_runs(&mut self) -> Result<(), Error> {
        let mut told = String::new();
        loop {
            let busy = self.busy().await;
            if busy.is_empty() {
                return Ok(());
            }
            let runs: Vec<_> = busy.iter().map(in_flight).collect();
            let runs = runs.join(", ");
            if runs != told {
                self.console.screen.note(&format!(
                    "crabtalk: waiting for runs to end: {runs}; `crabtalk daemon restart --now` \
                     interrupts them"
                ))?;
                told = runs;
            }
            tokio::select! {
                biased;
                Some(()) = self.console.interrupts.next() => return Err(Error::Interrupted),
                () = tokio::time::sleep(LOOK_FOR_RUNS_EVERY) => {}
            }
        }
    }
}

fn in_flight(info: &ActiveConversationInfo) -> String {
    let (agent, sender) = (summary(&info.agent), summary(&info.sender));
    let asks = match info.asks.is_empty() {
        true => "",
        false => " (waiting for an answer; see `crabtalk asks`)",
    };
    format!("{agent} for {sender}{asks}")
}

#[cfg(test)]
mod tests {
    use crate::screen::Screen;
    use crate::tests::{At, Fake, shows};

    /// A daemon with this version.
    async fn daemon(version: &str) -> Fake {
        let fake = Fake::start().await;
        fake.script.welcome.lock().unwrap().daemon_version = version.into();
        fake
    }

    fn at_a_terminal(fake: &Fake, words: &str) -> At {
        let mut at = fake.at(words);
        at.context.console.screen = Screen::test(at.out.clone(), at.err.clone(), true);
        at
    }

    #[tokio::test]
    async fn other_version_is_reported_once() {
        for version in ["0.0.1", "999.0.0"] {
            let fake = daemon(version).await;
            let says = format!("the daemon has version {version}, this client ");
            let mut at = fake.at("stats");
            at.run().await.unwrap();
            let said = at.err.text();
            assert_eq!(said.matches(&says).count(), 1, "{said}");
            assert!(said.contains("`crabtalk daemon restart`"), "{said}");
            assert!(!at.out.text().contains("restart"), "no notice on stdout");
        }
        let fake = daemon(env!("CARGO_PKG_VERSION")).await;
        let mut at = fake.at("stats");
        at.run().await.unwrap();
        assert_eq!(at.err.text(), "");
    }

    #[tokio::test]
    async fn terminal_offers_a_restart() {
        let fake = daemon("0.0.1").await;
        let mut at = at_a_terminal(&fake, "stats");
        let (typist, shown) = at.with_person();
        // Typed before the question.
        typist.send("y").await.unwrap();
        let answer = async {
            shows(&shown, "Restart it now?", 1).await;
            typist.send("n").await.unwrap();
        };
        let (done, ()) = tokio::join!(at.run(), answer);
        done.unwrap();
        assert!(shown.text().contains("version 0.0.1"), "{}", shown.text());
        assert!(at.out.text().contains("9.9.9"), "it goes on");
    }

    #[tokio::test]
    async fn scripts_are_never_asked() {
        for words in ["--json stats", "--no-start stats"] {
            let fake = daemon("0.0.1").await;
            let mut at = at_a_terminal(&fake, words);
            let (_typist, shown) = at.with_person();
            at.run().await.unwrap();
            assert_eq!(shown.text(), "", "{words}");
        }
    }
}
