//! Prompts on an agent's screen: when one came, what it asks about, when it went.

use super::super::session::{Live, Session};
use super::{BUSY_PAUSE, Watcher};
use crate::kind::PromptRule;
use crate::kind::screen::Shown;
use crate::tmux::text::squeezed;
use crabtalk_backend::{Evidence, Prompt, Source, What};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

impl Watcher {
    /// Looks for a prompt that came or went.
    pub(super) async fn examine(&mut self, pane: &str) {
        let before = self.shared.session().gone;
        let Ok(Some(look)) = self.shared.tmux.look(pane).await else {
            return;
        };
        let shared = self.shared.clone();
        let mut session = shared.session();
        let shown = shared.spec.kind.prompt(&look);
        let shown = shown.filter(|shown| may_wait(shown.rule, &session));
        if session.gone != before {
            // It was answered meanwhile, and this look may be from before that.
            self.looks.push_front(Instant::now() + BUSY_PAUSE);
            return;
        }
        let key = session.live.as_ref().map(|live| live.key.clone());
        match (shown, key) {
            (Some(shown), Some(key)) if shown.key == key => self.is_missing = false,
            (Some(shown), key) => {
                if key.is_some() {
                    session.prompt_gone("another prompt took its place", Source::Screen);
                }
                self.is_missing = false;
                self.prompt_since = Instant::now();
                let (prompt, call) = prompt_of(&shown, &mut session);
                session.live = Some(Live {
                    prompt: prompt.clone(),
                    key: shown.key,
                    call,
                    answer: None,
                });
                let first = prompt.text.lines().next().unwrap_or_default().trim();
                let detail = format!("{}; screen: {first}", self.why.detail);
                session.tell(What::Prompt(prompt), Evidence::new(self.why.source, detail));
                // What follows is looked at for as long as it waits.
                self.looks.clear();
            }
            // A screen may be half drawn: gone is what is missing twice.
            (None, Some(_)) if !self.is_missing => {
                self.is_missing = true;
                self.looks.push_front(Instant::now() + BUSY_PAUSE);
            }
            (None, Some(_)) => {
                self.is_missing = false;
                session.prompt_gone("it went away", Source::Screen);
            }
            (None, None) => {}
        }
    }
}

/// Whether the transcript lets a prompt wait at all: what is still on the screen
/// of a turn that ended, or of a call that has its result, does not.
fn may_wait(rule: &PromptRule, session: &Session) -> bool {
    match rule {
        _ if !session.is_followed() => true,
        rule if rule.call => !session.turns.calls.is_empty(),
        rule => session.turns.is_busy || rule.allow.is_empty(),
    }
}

/// A prompt with all that would be done: the whole subject stands in the
/// transcript, as the one call without a result that is shown on the screen.
fn prompt_of(shown: &Shown<'_>, session: &mut Session) -> (Prompt, Option<String>) {
    /// So much of a subject tells calls apart, and stands in one line.
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
        // Two that look alike: nobody knows which is asked.
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
        text: shown.text.clone(),
        is_question: shown.rule.is_question,
        options: Vec::new(),
        always: shown.always.clone().unwrap_or_default(),
    };
    (prompt, id)
}
