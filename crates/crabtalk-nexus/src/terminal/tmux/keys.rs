//! Types keys and text, only into the screen that was read.
//!
//! Invariant: each key is typed by [`Tmux::press`], and only if
//! the pane has not changed since it was read: the server compares and types in one command,
//! during which no program can write.

use super::Tmux;
use super::look::Look;
use super::text::{plain, quoted};
use crate::backend::Failure;

/// The output for a pane that has changed.
const STALE: &str = "NEXUS-STALE";

/// Input in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// A key by its tmux name.
    Key(String),
    /// Literal characters.
    Text(String),
    /// A paste of the text loaded by [`Tmux::load`].
    Paste,
}

impl Stroke {
    /// Parses a key such as `<Enter>`; anything else is text.
    pub(crate) fn parse(word: &str) -> Self {
        let key = word
            .strip_prefix('<')
            .and_then(|rest| rest.strip_suffix('>'));
        match key {
            Some(key) if !key.is_empty() => Self::Key(key.to_owned()),
            _ => Self::Text(plain(word)),
        }
    }
}

/// Formats keys for the log.
pub(crate) fn shown(strokes: &[Stroke]) -> String {
    let name = |stroke: &Stroke| match stroke {
        Stroke::Key(key) => format!("<{key}>"),
        Stroke::Text(text) => text.clone(),
        Stroke::Paste => "<paste>".to_owned(),
    };
    strokes.iter().map(name).collect::<Vec<_>>().join(" ")
}

impl Tmux {
    /// Loads a text to be pasted into this pane by [`Stroke::Paste`].
    pub(crate) async fn load(&self, pane: &str, text: &str) -> Result<(), Failure> {
        let buffer = buffer(pane);
        let arguments = ["load-buffer", "-b", &buffer, "-"];
        self.run_with(&arguments, Some(plain(text).as_bytes()))
            .await
            .map(drop)
    }

    /// Types if the pane has not changed; returns whether it did.
    pub(crate) async fn press(
        &self,
        pane: &str,
        seen: &Look,
        strokes: &[Stroke],
    ) -> Result<bool, Failure> {
        let typed: Vec<String> = strokes.iter().map(|stroke| command(pane, stroke)).collect();
        let condition = seen.condition();
        let stale = format!("display-message -p {STALE}");
        let typed = typed.join(" ; ");
        let arguments = ["if-shell", "-F", "-t", pane, &condition, &typed, &stale];
        let said = self.run(&arguments).await?;
        Ok(!said.contains(STALE))
    }

    /// Leaves copy mode, in which tmux handles the keys.
    pub(crate) async fn leave_mode(&self, pane: &str) -> Result<(), Failure> {
        let cancel = format!("send-keys -X -t {pane} cancel");
        let arguments = ["if-shell", "-F", "-t", pane, "#{pane_in_mode}", &cancel];
        self.run(&arguments).await.map(drop)
    }
}

fn buffer(pane: &str) -> String {
    format!("nexus-{}", pane.trim_start_matches('%'))
}

fn command(pane: &str, stroke: &Stroke) -> String {
    match stroke {
        Stroke::Key(key) => format!("send-keys -t {pane} -- {}", quoted(key)),
        Stroke::Text(text) => format!("send-keys -t {pane} -l -- {}", quoted(text)),
        Stroke::Paste => format!("paste-buffer -p -r -d -b {} -t {pane}", buffer(pane)),
    }
}
