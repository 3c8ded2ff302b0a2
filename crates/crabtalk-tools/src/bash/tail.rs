//! Reports the end of a command's output while the command runs.
//!
//! Invariants: a report is bounded; the interval grows with the command's age; a slow
//! receiver does not delay the command.

use crabtalk_domain::tool::{Caller, Progress};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Bytes of the end of the output: some terminal lines.
const MAX_BYTES: usize = 1024;

/// Maximum lines of a report.
const LINES: usize = 3;

/// Shortest interval between reports: a person reads no faster.
const LEAST: Duration = Duration::from_millis(250);

/// The interval is this fraction of the command's age, so that an hour
/// yields some hundred reports, which the run log stores.
const PART: u32 = 40;

/// The last bytes of a command's output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    total: u64,
}

impl Tail {
    /// Appends output.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let chunk = &chunk[chunk.len().saturating_sub(MAX_BYTES)..];
        self.bytes.extend_from_slice(chunk);
        let excess = self.bytes.len().saturating_sub(MAX_BYTES);
        self.bytes.drain(..excess);
    }

    fn progress(&self) -> Progress {
        let text = String::from_utf8_lossy(&self.bytes);
        // Of a line that the command redraws, only the last state is shown.
        let line = |line: &str| {
            let line = line.trim_end_matches('\r');
            line.rsplit('\r').next().unwrap_or_default().to_owned()
        };
        let lines: Vec<String> = text.lines().map(line).collect();
        let lines: Vec<String> = lines
            .into_iter()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let first = lines.len().saturating_sub(LINES);
        Progress {
            // The number of bytes, as a sign of progress.
            done: self.total as f64,
            total: None,
            message: lines[first..].join("\n"),
        }
    }
}

/// Waits for a command and reports the end of its output to the caller.
pub(crate) async fn told<T>(
    command: impl Future<Output = T>,
    mut heard: watch::Receiver<Tail>,
    caller: &dyn Caller,
) -> T {
    let begun = Instant::now();
    let mut next = begun + LEAST;
    tokio::pin!(command);
    loop {
        let news = async {
            sleep_until(next).await;
            if heard.changed().await.is_err() {
                // The command closed its output.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            done = &mut command => return done,
            () = news => {
                caller.progress(heard.borrow_and_update().progress());
                next = Instant::now() + LEAST.max(begun.elapsed() / PART);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Caller for Heard {
        fn progress(&self, progress: Progress) {
            self.0.lock().unwrap().push(progress.message);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn long_command_makes_some_hundred_reports() {
        let (said, hear) = watch::channel(Tail::default());
        let heard = Heard::default();
        let command = async {
            for line in 0..36_000 {
                said.send_modify(|tail| tail.push(format!("line {line}\n").as_bytes()));
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        told(command, hear, &heard).await;
        let heard = heard.0.into_inner().unwrap();
        assert!((50..400).contains(&heard.len()), "{}", heard.len());
        assert!(heard[0].starts_with("line 0\n"), "{}", heard[0]);
        assert!(heard.iter().all(|text| text.lines().count() <= LINES));
    }

    #[tokio::test(start_paused = true)]
    async fn short_command_makes_no_report() {
        let (said, hear) = watch::channel(Tail::default());
        let heard = Heard::default();
        said.send_modify(|tail| tail.push(b"done\n"));
        told(async {}, hear, &heard).await;
        assert!(heard.0.into_inner().unwrap().is_empty());
    }

    #[test]
    fn redrawn_line_is_reported_in_its_last_state() {
        let mut tail = Tail::default();
        tail.push(b"begin\r\n 10 %\r 50 %\r 99 %");
        assert_eq!(tail.progress().message, "begin\n 99 %");
        tail.push(&[b'x'; 5000]);
        assert!(tail.progress().message.len() <= MAX_BYTES);
    }
}
