//! A terminal that a test can type into and look at.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Until something has to be seen, on a crowded machine, too.
const WITHIN: Duration = Duration::from_secs(60);

/// Whether there is a tmux. Without one a test is skipped by name; with
/// `CRABTALK_REQUIRE_TOOLS=1` it fails.
#[expect(clippy::print_stdout, reason = "a test that is skipped is named")]
pub(crate) fn has_tmux(test: &str) -> bool {
    let found = Command::new("tmux")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    if found.is_ok_and(|status| status.success()) {
        return true;
    }
    let required = std::env::var_os("CRABTALK_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    assert!(
        !required,
        "{test}: tmux is not installed, and may not be skipped"
    );
    println!("SKIPPED: {test}: tmux is not installed");
    false
}

/// A tmux server of its own with one window; ends when it is dropped.
pub(crate) struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// A terminal of so many columns and rows, in which the program runs with these
    /// words for this home.
    pub(crate) fn open(
        folder: &Path,
        home: &Path,
        words: &str,
        (columns, rows): (u16, u16),
    ) -> Self {
        // A server that was told to end still answers for a moment, and takes whoever
        // comes meanwhile down with it. So none has a name that another had.
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let tmux = Self {
            socket: folder.join(format!("tmux-{number}")),
        };
        let line = format!(
            "trap : INT; export HOME='{0}' CRABTALK_HOME='{0}/.crabtalk'; {words}; echo \"ended with $?\"; sleep 600",
            home.display()
        );
        let line = line.replace("NEXUS", env!("CARGO_BIN_EXE_crabtalk-nexus"));
        let (columns, rows) = (columns.to_string(), rows.to_string());
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
            "-c",
            &line,
        ]);
        tmux
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-S"])
            .arg(&self.socket)
            .args(words)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .output()
            .unwrap();
        assert!(output.status.success(), "tmux {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-x", &columns, "-y", &rows]);
    }

    /// Writes every byte that comes from now on to a file.
    pub(crate) fn record(&self, file: &Path) {
        self.tmux(&["pipe-pane", "-o", &format!("cat > '{}'", file.display())]);
    }

    /// What the screen shows now.
    pub(crate) fn screen(&self) -> String {
        let screen = self.tmux(&["capture-pane", "-p"]);
        screen
            .lines()
            .map(|l| l.trim_end().to_owned() + "\n")
            .collect()
    }

    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    pub(crate) fn key(&self, name: &str) {
        self.tmux(&["send-keys", name]);
    }

    /// Waits until the screen shows all of these, and nothing of those behind `not`.
    pub(crate) async fn shows(&self, texts: &[&str]) -> String {
        let deadline = Instant::now() + WITHIN;
        loop {
            let screen = self.screen();
            if texts.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            assert!(
                Instant::now() < deadline,
                "no {texts:?} on the screen:\n{screen}"
            );
            sleep(Duration::from_millis(50)).await;
        }
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
