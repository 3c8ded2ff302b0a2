//! Answers prompts by compare-and-swap.
//!
//! Invariants: keys go only to the named prompt while it is open;
//! each answer's keys are typed once; on success the prompt is closed, else the call
//! fails.

use super::Terminal;
use crate::backend::{Answered, Evidence, Failure, Prompt, Reply, Source};
use crate::terminal::tmux::keys::{Stroke, shown};
use crate::terminal::tmux::text::plain;
use std::time::{Duration, Instant};

/// Time for a prompt to close.
const GOES: Duration = Duration::from_secs(5);

/// Pause between two reads of the screen.
const PAUSE: Duration = Duration::from_millis(40);

/// Consecutive reads without the prompt after which it counts as closed.
const MISSING: u32 = 2;

/// Maximum attempts to type keys into a screen that changes.
const TRIES: usize = 20;

/// Placeholder for a reason in a kind's keys.
const REASON: &str = "{reason}";

/// The error if "always" is not offered.
const NOT_FOR_GOOD: &str = "it does not offer to allow this always";

fn stale(detail: &str) -> Answered {
    Answered::Stale(Evidence::new(Source::Screen, detail))
}

impl Terminal {
    pub(super) async fn answer_by(
        &self,
        prompt: &Prompt,
        answer: &Reply,
    ) -> Result<Answered, Failure> {
        let window = self.shared.running()?;
        let pane = &window.pane;
        let live = self.shared.session().live.clone();
        let Some(live) = live.filter(|live| live.prompt.id == prompt.id) else {
            return Ok(stale("another prompt waits, or none"));
        };
        self.shared.catch_up();
        if self.shared.session().is_outdated() {
            // The watcher reports the current form of the prompt.
            self.shared.wake.notify_one();
            return Ok(stale("another call was opened"));
        }
        for _ in 0..TRIES {
            let look = self.now(pane).await?;
            // Rare: a person scrolls.
            if look.in_mode {
                self.shared.tmux.leave_mode(pane).await?;
                continue;
            }
            let Some(found) = self
                .shared
                .spec
                .kind
                .prompt(&look)
                .filter(|p| p.key == live.key)
            else {
                return Ok(stale("it is not on the screen any more"));
            };
            if *answer == Reply::Always && found.always.is_none() {
                return Err(Failure::Failed(NOT_FOR_GOOD.into()));
            }
            let strokes = strokes(found.rule, answer)?;
            if let Reply::Text(text) = answer {
                self.shared.tmux.load(pane, text).await?;
            }
            if self.shared.tmux.press(pane, &look, &strokes).await? {
                let keys = shown(&strokes);
                if let Some(live) = &mut self.shared.session().live {
                    live.answer = Some(format!("NEXUS pressed {keys}"));
                }
                return self.goes(pane, &live.key, &keys, answer).await;
            }
        }
        Ok(stale("the screen does not hold still"))
    }

    /// Waits until the prompt closes.
    async fn goes(
        &self,
        pane: &str,
        key: &str,
        keys: &str,
        answer: &Reply,
    ) -> Result<Answered, Failure> {
        let deadline = Instant::now() + GOES;
        let mut missing = 0;
        loop {
            self.shared.catch_up();
            let is_over = {
                let session = self.shared.session();
                session.live.as_ref().is_none_or(|live| live.key != key)
            };
            let look = self.shared.tmux.look(pane).await?;
            let waits = look.and_then(|look| {
                let shown = self.shared.spec.kind.prompt(&look)?;
                (shown.key == key).then_some(())
            });
            missing = if waits.is_none() { missing + 1 } else { 0 };
            // A screen may be incomplete; the transcript is reliable.
            if is_over || missing >= MISSING {
                let mut session = self.shared.session();
                if let Reply::Deny(_) = answer
                    && session.turns.is_busy
                {
                    session.cut_short = Some(Instant::now());
                }
                if session.live.as_ref().is_some_and(|live| live.key == key) {
                    session.prompt_gone(keys, Source::Screen);
                }
                drop(session);
                self.shared.wake.notify_one();
                let detail = format!("pressed {keys}, and the prompt went away");
                return Ok(Answered::Taken(Evidence::new(Source::Screen, detail)));
            }
            if Instant::now() > deadline {
                let text = format!("pressed {keys}, and the prompt still waits");
                return Err(Failure::Failed(text));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The keys of an answer.
fn strokes(
    rule: &crate::terminal::kind::PromptRule,
    answer: &Reply,
) -> Result<Vec<Stroke>, Failure> {
    let parsed = |words: &[String]| {
        words
            .iter()
            .map(|word| Stroke::parse(word))
            .collect::<Vec<_>>()
    };
    let strokes = match answer {
        Reply::Allow if !rule.is_question => parsed(&rule.allow),
        Reply::Always if !rule.is_question => parsed(&rule.always),
        Reply::Deny(reason) if !reason.is_empty() && !rule.deny_because.is_empty() => {
            // A newline would submit the answer early.
            let reason = plain(reason).replace(['\n', '\t'], " ");
            let words = rule.deny_because.iter();
            words
                .map(|word| match word.contains(REASON) {
                    true => Stroke::Text(word.replace(REASON, &reason)),
                    false => Stroke::parse(word),
                })
                .collect()
        }
        Reply::Deny(_) => parsed(&rule.deny),
        Reply::Text(_) if rule.is_question => {
            vec![Stroke::Paste, Stroke::Key("Enter".into())]
        }
        Reply::Allow | Reply::Always | Reply::Text(_) => Vec::new(),
    };
    if strokes.is_empty() {
        let text = "its kind has no keys for this answer; a person has to give it in the window";
        return Err(Failure::Failed(text.into()));
    }
    Ok(strokes)
}
