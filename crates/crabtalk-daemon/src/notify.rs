//! Notifies the owner through a command, a webhook, or both.
//!
//! Invariants: queueing a notice never waits; a failed notice is logged and has no other
//! effect; a command runs under a guardian, without the daemon's secrets, and ends with
//! its timeout or the daemon, with all processes that it started.

use crate::settings::Settings;
use crabtalk_domain::{Ask, ConversationKey};
use crabtalk_guardian::{Command, ExitStatus, Guardian, Run, Streams, child_environment};
use crabtalk_model::{Proxies, post_json};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{Mutex, mpsc};

/// Maximum queued notices: a longer queue means a receiver that does not work.
const MAX_WAITING: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The kind: `failed`, `paused`, `result` or `ask`.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    pub(crate) text: String,
    /// The cron entry, for its run.
    pub(crate) cron: Option<u64>,
    pub(crate) agent: String,
    pub(crate) sender: String,
    pub(crate) run: u64,
    /// The id of the ask, for an ask.
    pub(crate) ask_id: String,
}

impl Notice {
    /// Creates the notice of an ask in a cron entry's run.
    pub(crate) fn of_ask(key: &ConversationKey, cron: u64, ask: &Ask) -> Self {
        let question = ask.questions.first().map(|q| q.question.clone());
        Self {
            kind: "ask",
            title: format!(
                "cron {cron} asks: {} {}",
                ask.tool,
                question.unwrap_or_default()
            ),
            text: ask.detail.clone(),
            cron: Some(cron),
            agent: key.agent.to_string(),
            sender: key.sender.to_string(),
            run: 0,
            ask_id: ask.id.clone(),
        }
    }
}

/// Delivers notices one after another. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Notifier(Arc<Inner>);

struct Inner {
    settings: Arc<Settings>,
    guardian: Guardian,
    /// The limit of open files for commands.
    open_files: Option<u64>,
    queue: mpsc::Sender<Notice>,
    queued: Mutex<mpsc::Receiver<Notice>>,
}

impl Notifier {
    pub(crate) fn new(
        settings: Arc<Settings>,
        guardian: Guardian,
        open_files: Option<u64>,
    ) -> Self {
        let (queue, queued) = mpsc::channel(MAX_WAITING);
        Self(Arc::new(Inner {
            settings,
            guardian,
            open_files,
            queue,
            queued: Mutex::new(queued),
        }))
    }

    /// Queues a notice if a command or an address is configured.
    pub(crate) fn notify(&self, notice: Notice) {
        let config = self.0.settings.config();
        if config.notify.command.is_none() && config.notify.url.is_none() {
            return;
        }
        if let Err(error) = self.0.queue.try_send(notice) {
            tracing::warn!(
                title = error.into_inner().title,
                "too many notices are queued; this one is dropped"
            );
        }
    }

    /// Delivers queued notices until the daemon ends.
    pub(crate) async fn work(&self) {
        let mut queued = self.0.queued.lock().await;
        while let Some(notice) = queued.recv().await {
            self.deliver(&notice).await;
        }
    }

    async fn deliver(&self, notice: &Notice) {
        let config = self.0.settings.config();
        let timeout = Duration::from_secs(config.notify.timeout_secs.into());
        let value = json!({
            "kind": notice.kind, "title": notice.title, "text": notice.text,
            "cron": notice.cron, "agent": notice.agent, "sender": notice.sender,
            "run": notice.run, "ask_id": notice.ask_id,
        });
        if let Some(command) = &config.notify.command {
            let told = self.command(command, notice, value.to_string(), timeout);
            if let Err(error) = told.await {
                tracing::warn!(
                    error,
                    title = notice.title,
                    "[notify] command: the owner was not notified"
                );
            }
        }
        if let Some(url) = &config.notify.url {
            let proxies = Proxies::from_variables(|name| std::env::var(name).ok());
            let told = post_json(url.expose(), &value, proxies, timeout);
            if let Err(error) = told.await {
                tracing::warn!(
                    error,
                    title = notice.title,
                    "[notify] url: the owner was not notified"
                );
            }
        }
    }

    async fn command(
        &self,
        command: &str,
        notice: &Notice,
        input: String,
        timeout: Duration,
    ) -> Result<(), String> {
        let mut environment = child_environment(std::env::vars_os());
        for (name, value) in [
            ("CRABTALK_KIND", notice.kind),
            ("CRABTALK_TITLE", &notice.title),
            ("CRABTALK_TEXT", &notice.text),
        ] {
            // An environment variable cannot contain NUL.
            environment.push((name.into(), value.replace('\0', " ").into()));
        }
        let command = Command {
            run: Run::Shell(command.to_owned()),
            environment,
            cwd: "/".into(),
            sandbox: None,
            open_files: self.0.open_files,
        };
        let spawned = self.0.guardian.spawn(command, Streams::Three);
        // Dropping the child ends all processes that it started.
        let mut child = spawned.map_err(|error| error.to_string())?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let told = async {
            let write = async {
                if let Some(mut stdin) = stdin {
                    // A command that does not read stdin has the text in its environment.
                    let _ = stdin.write_all(input.as_bytes()).await;
                }
            };
            // Output is discarded, so that a full pipe does not block the command.
            tokio::join!(write, discard(stdout), discard(stderr), child.wait()).3
        };
        match tokio::time::timeout(timeout, told).await {
            Ok(ExitStatus::Ended { code: Some(0), .. }) => Ok(()),
            Ok(ExitStatus::Ended {
                code: Some(code), ..
            }) => Err(format!("it ended with code {code}")),
            Ok(ExitStatus::Ended { signal, .. }) => {
                Err(format!("signal {} ended it", signal.unwrap_or_default()))
            }
            Ok(ExitStatus::NotStarted { why } | ExitStatus::Lost { why }) => Err(why),
            Ok(ExitStatus::GuardianKilled) => Err("its guardian was killed".into()),
            Err(_) => Err(format!("it did not end within {} s", timeout.as_secs())),
        }
    }

    /// Ends the command in progress.
    pub(crate) async fn shut_down(&self) {
        self.0.guardian.shut_down().await;
    }
}

async fn discard(stream: Option<Receiver>) {
    if let Some(mut stream) = stream {
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
}
