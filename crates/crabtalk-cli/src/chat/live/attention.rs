//! The terminal's title, and notifications for a person who is not watching.
//!
//! Invariant: without `--bell` nothing rings.

use super::Live;
use crabtalk_render::screen::title;
use std::io;

/// The title and bell of the terminal.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// Whether notifications are enabled.
    bell: bool,
    /// Whether the terminal has the focus; `None` if it does not report it.
    has_focus: Option<bool>,
    /// The last title.
    title: String,
}

impl Attention {
    pub(super) fn new(bell: bool) -> Self {
        Self {
            bell,
            ..Self::default()
        }
    }

    pub(super) fn focus(&mut self, has_focus: bool) {
        self.has_focus = Some(has_focus);
    }

    /// Forgets the title, which another program may have changed.
    pub(super) fn forget_title(&mut self) {
        self.title.clear();
    }

    /// The sequence that sets a title, if it is new.
    fn entitle(&mut self, text: String) -> Option<String> {
        if text == self.title {
            return None;
        }
        self.title = text;
        Some(title(&self.title))
    }

    /// A notification (OSC 9) and a bell, unless the terminal has the focus.
    fn ring(&self, text: &str) -> Option<String> {
        if !self.bell || self.has_focus == Some(true) {
            return None;
        }
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        Some(format!("\x1b]9;{text}\x07\x07"))
    }
}

/// The name of the chat's state.
fn state(waits: bool, works: bool) -> &'static str {
    match (waits, works) {
        (true, _) => "waiting for you \u{b7} ",
        (false, true) => "working \u{b7} ",
        (false, false) => "",
    }
}

impl Live<'_> {
    /// Shows the state of the chat in the terminal's title.
    pub(super) fn show_title(&mut self) -> io::Result<()> {
        let waits = !self.asks.is_empty();
        let works = !self.runs.is_empty() || self.shell.is_some();
        let folder = self.cwd.file_name().unwrap_or_default().to_string_lossy();
        let agent = &self.learned.agent;
        let text = format!("{}{agent} \u{b7} {folder}", state(waits, works));
        match self.attention.entitle(text) {
            Some(sequence) => self.canvas.send(&sequence),
            None => Ok(()),
        }
    }

    /// Notifies the person that the agent waits or has finished.
    pub(super) fn ring(&mut self, what: &str) {
        let text = format!("{} {what}", self.learned.agent);
        if let Some(sequence) = self.attention.ring(&text) {
            // A failed bell is not reported.
            let _ = self.canvas.send(&sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bell_rings_unless_off_or_focused() {
        for (bell, focus, rings) in [
            (false, None, false),
            (false, Some(false), false),
            (true, None, true),
            (true, Some(false), true),
            (true, Some(true), false),
        ] {
            let mut attention = Attention::new(bell);
            if let Some(focus) = focus {
                attention.focus(focus);
            }
            let rung = attention.ring("crab\x1b\x07 waits\u{9c}");
            let want = rings.then(|| "\x1b]9;crab waits\x07\x07".to_owned());
            assert_eq!(rung, want, "{bell} {focus:?}");
        }
    }

    #[test]
    fn title_is_sent_once_and_after_other_programs() {
        let mut attention = Attention::default();
        let text = || format!("{}crab", state(false, true));
        assert_eq!(
            attention.entitle(text()).as_deref(),
            Some("\x1b]2;working \u{b7} crab\x07")
        );
        assert_eq!(attention.entitle(text()), None);
        attention.forget_title();
        assert!(attention.entitle(text()).is_some());
        assert!(state(true, true).starts_with("waiting"));
    }
}
