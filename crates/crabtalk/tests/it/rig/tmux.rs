//! A terminal that a test can type into and look at.

use super::TestEnv;
use super::command::CRABTALK;
use super::wait::eventually;
use std::process::Command;

/// A tmux server of its own with one window; ends when it is dropped.
pub(crate) struct Tmux {
    socket: std::path::PathBuf,
}

impl Tmux {
    /// Opens a terminal in which a shell line runs; `$CRABTALK` is the program.
    pub(crate) fn open(env: &TestEnv, line: &str) -> Self {
        let tmux = Self {
            socket: env.root().join("tmux"),
        };
        let line = format!(
            "trap : INT; cd '{}' && export {} CRABTALK='{CRABTALK}' && {line}; echo \"ended with $?\"",
            env.work.display(),
            env.exports()
        );
        tmux.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "150",
            "-y",
            "50",
            "sh",
        ]);
        tmux.tmux(&["set-option", "remain-on-exit", "on"]);
        tmux.tmux(&["respawn-pane", "-k", "sh", "-c", &line]);
        tmux
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(arguments)
            .env_remove("TMUX")
            .output()
            .unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What the screen shows now.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// Waits until the screen shows a text so many times.
    pub(crate) async fn shows(&self, text: &str, times: usize) -> String {
        let mut last = String::new();
        let seen = eventually_shown(self, text, times, &mut last).await;
        seen.unwrap_or_else(|| panic!("no {text:?} on the screen:\n{last}"))
    }

    /// Types text and Enter.
    pub(crate) fn types(&self, text: &str) {
        if !text.is_empty() {
            self.types_half(text);
        }
        self.key("Enter");
    }

    /// Types text without Enter.
    pub(crate) fn types_half(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Types a key by its name.
    pub(crate) fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }
}

async fn eventually_shown(
    tmux: &Tmux,
    text: &str,
    times: usize,
    last: &mut String,
) -> Option<String> {
    let look = eventually(text, async || {
        *last = tmux.screen();
        (last.matches(text).count() >= times).then(|| last.clone())
    });
    tokio::time::timeout(std::time::Duration::from_secs(20), look)
        .await
        .ok()
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
    }
}
