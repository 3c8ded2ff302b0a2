//! A terminal that a test can type into and look at.

use super::TestEnv;
use super::command::CRABTALK;
use super::wait::{LIMIT, eventually};
use rustix::process::Pid;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Between two looks at the screen, each of which is a program of its own.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
        // A server that was told to end still answers for a moment, and takes whoever
        // comes meanwhile down with it. So none has a name that another had.
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let tmux = Self {
            socket: env.root().join(format!("tmux-{number}")),
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

    /// What was written to that file, once a text is in it.
    pub(crate) async fn recorded(&self, file: &std::path::Path, text: &str) -> String {
        eventually("what was shown, in a file", async || {
            // Whoever writes it is another program, which may not even have begun.
            let said = std::fs::read_to_string(file).ok()?;
            said.contains(text).then_some(said)
        })
        .await
    }

    /// What the screen shows now.
    pub(crate) fn screen(&self) -> String {
        let screen = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
        screen
            .lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }

    /// Waits until the screen shows a text so many times. What scrolled away counts;
    /// what a program wiped does not, so wait only for what stays.
    pub(crate) async fn shows(&self, text: &str, times: usize) -> String {
        let mut screen = String::new();
        let look = async {
            loop {
                screen = self.screen();
                if screen.matches(text).count() >= times {
                    return;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        let seen = tokio::time::timeout(LIMIT, look).await;
        assert!(
            seen.is_ok(),
            "no {text:?}, {times} times, on the screen:\n{screen}"
        );
        screen
    }

    /// The process that runs in the shell line.
    pub(crate) async fn program(&self) -> Pid {
        eventually("a program in the terminal", async || {
            let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
            let shell = shell.trim();
            let path = format!("/proc/{shell}/task/{shell}/children");
            let children = std::fs::read_to_string(path).ok()?;
            Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
        })
        .await
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

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
    }
}
