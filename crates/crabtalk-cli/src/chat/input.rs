//! Where a chat's lines come from: an editor at a terminal, else plain lines.

use crate::error::Error;
use crabtalk_config::Home;
use reedline::{
    FileBackedHistory, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus,
    Reedline, Signal,
};
use std::borrow::Cow;
use std::future::Future;
use std::io::{self, BufRead, IsTerminal};
use std::pin::Pin;

/// Lines that the editor remembers.
const REMEMBERED_LINES: usize = 1_000;

/// What came of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the end of the input.
    End,
}

/// A line to come.
pub(crate) type Reading<'a> = Pin<Box<dyn Future<Output = io::Result<Typed>> + Send + 'a>>;

/// A source of lines.
pub(crate) trait Input {
    /// The next line; `name` stands before it where there is a prompt.
    fn read(&mut self, name: &str) -> Reading<'_>;
}

/// The editor at a terminal, else the lines of standard input.
pub(super) fn open(home: &Home) -> Result<Box<dyn Input>, Error> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(Box::new(Plain));
    }
    let file = home.state_dir().join("chat_history");
    let history = FileBackedHistory::with_file(REMEMBERED_LINES, file.clone())
        .map_err(|e| Error::Failed(format!("cannot read {}: {e}", file.display())))?;
    let editor = Reedline::create()
        .use_bracketed_paste(true)
        .with_history(Box::new(history));
    Ok(Box::new(Editor(editor)))
}

struct Editor(Reedline);

impl Input for Editor {
    fn read(&mut self, name: &str) -> Reading<'_> {
        // Blocks the program's only thread, which has nothing else to do while
        // a person types: no stream is open between two answers.
        let typed = self.0.read_line(&Name(name.to_owned())).map(|signal| {
            if let Signal::Success(line) = signal {
                Typed::Line(line)
            } else if matches!(signal, Signal::CtrlD) {
                Typed::End
            } else {
                Typed::Interrupt
            }
        });
        Box::pin(std::future::ready(typed.map_err(io::Error::other)))
    }
}

/// Lines of a pipe or file, for scripts.
struct Plain;

impl Input for Plain {
    fn read(&mut self, _: &str) -> Reading<'_> {
        Box::pin(async {
            // On a thread of its own, so that Ctrl-C is heard meanwhile.
            let read = tokio::task::spawn_blocking(|| {
                let mut line = String::new();
                let count = io::stdin().lock().read_line(&mut line)?;
                Ok(if count == 0 {
                    Typed::End
                } else {
                    Typed::Line(line)
                })
            });
            read.await.map_err(io::Error::other)?
        })
    }
}

/// The prompt: a name and a bracket.
struct Name(String);

impl Prompt for Name {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let state = match search.status {
            PromptHistorySearchStatus::Passing => "search",
            PromptHistorySearchStatus::Failing => "nothing found",
        };
        Cow::Owned(format!("({state}: {}) ", search.term))
    }
}
