//! A terminal in which NEXUS runs.

use crabtalk_testkit::Terminal;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Until something has to be seen, on a crowded machine, too.
const WITHIN: Duration = Duration::from_secs(240);

/// Pause between two reads of the screen.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A terminal, and what is waited for in it.
pub(crate) struct Tmux(Terminal);

impl Tmux {
    /// A terminal of so many columns and rows, in which the program runs with these
    /// words for this home.
    pub(crate) fn open(folder: &Path, home: &Path, words: &str, size: (usize, usize)) -> Self {
        let line = format!(
            "trap : INT; export LC_ALL=C.UTF-8 HOME='{0}' CRABTALK_HOME='{0}/.crabtalk'; {words}; echo \"ended with $?\"; sleep 600",
            home.display()
        );
        let line = line.replace("NEXUS", env!("CARGO_BIN_EXE_crabtalk-nexus"));
        Self(Terminal::open(folder, &line, size))
    }

    /// The screen.
    pub(crate) fn screen(&self) -> String {
        self.0.screen(false)
    }

    /// Waits until the screen shows all of these.
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
            sleep(LOOK_EVERY).await;
        }
    }
}

impl Deref for Tmux {
    type Target = Terminal;

    fn deref(&self) -> &Terminal {
        &self.0
    }
}
