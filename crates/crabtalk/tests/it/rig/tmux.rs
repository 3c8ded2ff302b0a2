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
        Self::sized(env, line, 150, 50)
    }

    /// The same, of so many columns and rows.
    pub(crate) fn sized(env: &TestEnv, line: &str, columns: usize, rows: usize) -> Self {
        let tmux = Self {
            socket: env.root().join("tmux"),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
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
            &columns,
            "-y",
            &rows,
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

    /// Makes the terminal larger or smaller.
    pub(crate) fn resize(&self, columns: usize, rows: usize) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Writes every byte that comes from now on to a file.
    pub(crate) fn record(&self, file: &std::path::Path) {
        self.tmux(&["pipe-pane", "-o", &format!("cat > '{}'", file.display())]);
    }

    /// What the screen shows now.
    pub(crate) fn screen(&self) -> String {
        let screen = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
        screen
            .lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
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
