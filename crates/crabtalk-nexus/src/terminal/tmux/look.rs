//! The contents of a pane at one instant, and the values that must not change before a
//! key is typed.
//!
//! Invariant: screen and guard are of the same instant: tmux reads
//! both in one command, during which no program can write.

use super::Tmux;
use crate::backend::Failure;

/// The values of the compare-and-swap. They contain no comma, which would end an argument of a format.
const GUARD: &str = "#{pane_id}.#{pane_pid}.#{cursor_x}.#{cursor_y}.#{cursor_flag}.\
    #{history_size}.#{pane_in_mode}.#{pane_dead}.#{alternate_on}.#{pane_width}.#{pane_height}";

/// The fields of [`GUARD`].
const GUARD_FIELDS: usize = 11;

/// A pane's screen and cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// The visible lines without trailing blanks.
    pub(crate) lines: Vec<String>,
    /// The cursor's column and line.
    pub(crate) cursor: (usize, usize),
    pub(crate) is_cursor_shown: bool,
    /// Whether keys go to tmux instead of the program.
    pub(crate) in_mode: bool,
    /// Whether the program has ended.
    pub(crate) is_dead: bool,
    /// The values of [`GUARD`].
    guard: String,
}

impl Look {
    /// A screen for tests without tmux.
    #[cfg(test)]
    pub(crate) fn of(screen: &str, cursor: (usize, usize), is_cursor_shown: bool) -> Self {
        Self {
            lines: screen
                .lines()
                .map(|line| line.trim_end().to_owned())
                .collect(),
            cursor,
            is_cursor_shown,
            ..Self::default()
        }
    }

    /// The condition that the pane has not changed, for `if-shell -F`.
    pub(crate) fn condition(&self) -> String {
        format!("#{{==:{GUARD},{}}}", self.guard)
    }

    /// The screen without empty lines at its end.
    pub(crate) fn text(&self) -> String {
        let end = self.lines.iter().rposition(|line| !line.is_empty());
        self.lines[..end.map_or(0, |at| at + 1)].join("\n")
    }
}

impl Tmux {
    /// Reads a pane; `None` if it does not exist.
    pub(crate) async fn look(&self, pane: &str) -> Result<Option<Look>, Failure> {
        let arguments = [
            "display-message",
            "-p",
            "-t",
            pane,
            GUARD,
            ";",
            "capture-pane",
            "-p",
            "-t",
            pane,
        ];
        match self.run(&arguments).await {
            Ok(said) => Ok(parse(pane, &said)),
            // The pane or the server is gone.
            Err(Failure::Failed(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The history of the pane.
    pub(crate) async fn history(&self, pane: &str) -> Result<String, Failure> {
        self.run(&["capture-pane", "-p", "-J", "-S", "-", "-t", pane])
            .await
    }
}

fn parse(pane: &str, said: &str) -> Option<Look> {
    let (guard, screen) = said.split_once('\n')?;
    let fields: Vec<&str> = guard.split('.').collect();
    if fields.len() != GUARD_FIELDS || fields[0] != pane {
        return None;
    }
    let number = |at: usize| fields[at].parse().unwrap_or(0);
    Some(Look {
        lines: screen
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect(),
        cursor: (number(2), number(3)),
        is_cursor_shown: fields[4] == "1",
        in_mode: number(6) > 0,
        is_dead: fields[7] == "1",
        guard: guard.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn another_panes_answer_is_none() {
        let said = "%3.411.2.37.1.0.0.0.1.120.40\nhello  \n\n";
        let look = parse("%3", said).unwrap();
        assert_eq!(look.lines, ["hello", ""]);
        assert_eq!((look.cursor, look.is_cursor_shown), ((2, 37), true));
        assert_eq!(look.text(), "hello");
        assert!(parse("%4", said).is_none());
        assert!(parse("%3", "..........\n").is_none());
    }
}
