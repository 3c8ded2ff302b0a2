//! Prompts on an agent's screen: when they open and close, and their subject.

use super::super::session::{Live, Session};
use super::Watcher;
use crate::backend::{Evidence, Prompt, Source, What};
use crate::terminal::kind::PromptRule;
use crate::terminal::kind::screen::Shown;
use crate::terminal::tmux::text::squeezed;
use crate::terminal::transcript::turns::Call;
use std::hash::{DefaultHasher, Hash, Hasher};

impl Watcher {
    /// Checks whether a prompt opened or closed.
    pub(super) async fn examine(&mut self, pane: &str) {
        let before = self.shared.session().gone;
        let Ok(Some(look)) = self.shared.tmux.look(pane).await else {
            return;
        };
        // The call on the screen was recorded before it was drawn.
        self.shared.catch_up();
        let shared = self.shared.clone();
        let mut session = shared.session();
        let shown = shared.spec.kind.prompt(&look);
        let shown = shown.filter(|shown| may_wait(shown.rule, &session));
        if session.gone != before {
            // A prompt was answered, and this screen may be older.
            return;
        }
        let key = session.live.as_ref().map(|live| live.key.clone());
        match (shown, key) {
            (Some(shown), Some(key)) if shown.key == key && !session.is_outdated() => {
                self.is_missing = false;
            }
            (Some(shown), key) => {
                if key.is_some() {
                    session.prompt_gone("another prompt took its place", Source::Screen);
                }
                self.is_missing = false;
                let (prompt, call) = prompt_of(&shown, &mut session);
                session.live = Some(Live {
                    prompt: prompt.clone(),
                    key: shown.key,
                    call,
                    answer: None,
                });
                let first = prompt.text.lines().next().unwrap_or_default().trim();
                let evidence = Evidence::new(Source::Screen, first);
                session.tell(What::Prompt(prompt), evidence);
            }
            // A screen may be incomplete: a prompt is closed when it is missing twice.
            (None, Some(_)) if !self.is_missing => self.is_missing = true,
            (None, Some(_)) => {
                self.is_missing = false;
                session.prompt_gone("it went away", Source::Screen);
            }
            (None, None) => {}
        }
    }
}

/// Whether the transcript permits an open prompt. Text that remains on the screen after the
/// end of a turn or the result of a call is not a prompt.
fn may_wait(rule: &PromptRule, session: &Session) -> bool {
    match rule {
        _ if !session.is_followed() => true,
        rule if rule.call => !session.turns.calls.is_empty(),
        rule => session.turns.is_busy || rule.allow.is_empty(),
    }
}

/// Whether exactly one call is open and the screen shows its subject exactly:
/// on one line, in printable ASCII, which every terminal draws the same.
fn is_exact(shown: &Shown<'_>, calls: &[Call]) -> bool {
    let [call] = calls else {
        return false;
    };
    (shown.tool.is_empty() || shown.tool == call.tool)
        && shown.subject.as_ref() == Some(&call.subject)
        && call.subject.trim() == call.subject
        && call
            .subject
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte))
}

/// Creates a prompt with its whole subject from the transcript, which is the one call
/// without a result that the screen shows.
fn prompt_of(shown: &Shown<'_>, session: &mut Session) -> (Prompt, Option<String>) {
    /// Length of a subject that distinguishes calls and fits one line.
    const PREFIX_CHARS: usize = 24;
    let screen = squeezed(&shown.text);
    let on_screen = |subject: &str| {
        let prefix: String = squeezed(subject).chars().take(PREFIX_CHARS).collect();
        !prefix.is_empty() && screen.contains(&prefix)
    };
    let mut calls = session.turns.calls.iter().filter(|call| {
        (shown.tool.is_empty() || shown.tool == call.tool) && on_screen(&call.subject)
    });
    let call = match (calls.next(), calls.next()) {
        (Some(call), None) => Some(call),
        // Two equal calls cannot be distinguished.
        (Some(_), Some(_)) => None,
        (None, _) => None,
    };
    let is_only = session.turns.calls.is_empty();
    let subject = match call {
        Some(call) => call.subject.clone(),
        None if is_only => shown.subject.clone().unwrap_or_default(),
        None => String::new(),
    };
    let tool = call.map_or_else(|| shown.tool.clone(), |call| call.tool.clone());
    let mut hasher = DefaultHasher::new();
    (session.epoch, &shown.key, call.map(|call| &call.id)).hash(&mut hasher);
    let digest = hasher.finish();
    let id = call.filter(|_| shown.rule.call).map(|call| call.id.clone());
    session.prompts += 1;
    let prompt = Prompt {
        id: format!("{digest:016x}-{}", session.prompts),
        tool,
        subject,
        exact: is_exact(shown, &session.turns.calls),
        text: shown.text.clone(),
        is_question: shown.rule.is_question,
        options: Vec::new(),
        always: shown.always.clone().unwrap_or_default(),
    };
    (prompt, id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::kind::Kinds;
    use crate::terminal::tmux::look::Look;

    fn call(tool: &str, subject: &str) -> Call {
        Call {
            id: subject.to_owned(),
            tool: tool.to_owned(),
            subject: subject.to_owned(),
        }
    }

    /// Whether codex asks exactly about one of these calls, with this screen.
    fn codex(screen: &str, calls: &[Call]) -> bool {
        let kinds = Kinds::new(&toml::Table::new()).unwrap();
        let text = format!(
            "  Would you like to run the following command?\n\n{screen}\n\n› 1. Yes, proceed (y)\n"
        );
        let shown = Look::of(&text, (0, 30), false);
        let shown = kinds.get("codex").unwrap().prompt(&shown).unwrap();
        is_exact(&shown, calls)
    }

    #[test]
    fn only_one_call_shown_to_the_letter_is_exact() {
        let ls = || call("bash", "ls -l");
        for (screen, calls, exact) in [
            ("  $ ls -l", vec![ls()], true),
            ("  $ ls -l", vec![ls(), call("bash", "touch canary")], false),
            ("  $ ls -l", vec![ls(), ls()], false),
            ("  $ ls -l", vec![], false),
            ("  $ ls -l", vec![call("edit", "ls -l")], false),
            ("  $ ls -l", vec![call("bash", "ls  -l")], false),
            ("  $ ls -l", vec![call("bash", "ls -l ")], false),
            (
                "  $ ls -l",
                vec![call("bash", "ls -l\ntouch canary")],
                false,
            ),
            ("  $ ls -l\n    touch canary", vec![ls()], false),
            ("  $ ls -l\n\n    touch canary", vec![ls()], false),
            (
                "  Reason:\n  $ ls -l\n\n  $ touch canary",
                vec![ls()],
                false,
            ),
            (
                "  $ ls \u{202e}-l",
                vec![call("bash", "ls \u{202e}-l")],
                false,
            ),
            (
                "  $ ls\u{200b} -l",
                vec![call("bash", "ls\u{200b} -l")],
                false,
            ),
            ("  $ ls e\u{301}", vec![call("bash", "ls e\u{301}")], false),
            ("  $ ls\t-l", vec![call("bash", "ls\t-l")], false),
        ] {
            assert_eq!(codex(screen, &calls), exact, "{screen:?} {calls:?}");
        }
    }
}
