//! A terminal for tests: a tmux window.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A private tmux server with one window; ends when it is dropped.
///
/// All methods panic if tmux fails, since a test cannot continue then.
#[derive(Debug)]
pub struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Opens a window of this size and runs the line in a shell; the server's socket is
    /// in the folder. The window and its last content remain after the line has ended.
    pub fn open(folder: &Path, line: &str, (columns, rows): (usize, usize)) -> Self {
        // Names are not reused, since a server that is ending still accepts clients for a moment and ends
        // them.
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let terminal = Self {
            socket: folder.join(format!("tmux-{number}")),
        };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let size = ["-x", &columns, "-y", &rows];
        let new = ["-f", "/dev/null", "new-session", "-d"];
        terminal.tmux(&[&new[..], &size, &["sh"]].concat());
        terminal.tmux(&["set-option", "remain-on-exit", "on"]);
        terminal.tmux(&["respawn-pane", "-k", "sh", "-c", line]);
        terminal
    }

    /// Runs a tmux command and returns its output.
    pub fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-S"])
            .arg(&self.socket)
            .args(words)
            .env_remove("TMUX")
            .output()
            .expect("tmux runs");
        assert!(output.status.success(), "tmux {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Resizes the terminal.
    pub fn resize(&self, columns: usize, rows: usize) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Writes all further output to a file.
    pub fn record(&self, file: &Path) {
        self.tmux(&["pipe-pane", "-o", &format!("cat > '{}'", file.display())]);
    }

    /// The text of the screen without trailing blanks; `scrolled` includes the scrollback and
    /// joins wrapped lines.
    pub fn screen(&self, scrolled: bool) -> String {
        let more = if scrolled {
            &["-J", "-S", "-"][..]
        } else {
            &[]
        };
        let screen = self.tmux(&[&["capture-pane", "-p"], more].concat());
        let lines = screen.lines();
        lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }

    /// Types text without Enter.
    pub fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Types a key by its name.
    pub fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .arg("kill-server")
            .output();
    }
}
