//! A terminal agent that follows directives in its messages, including faulty behaviour.
//!
//! It draws a screen with a composer, asks before it runs a command, writes a
//! transcript in pi's form, and records every key. A test program
//! runs as this agent when it is started again in a terminal, see [`enter`]; [`KIND`] is
//! its description for a supervisor.
//!
//! A message contains directives, of which the first is used:
//!
//! ```text
//! [say:TEXT]       answers TEXT              [tokens:N]   reports N tokens
//! [tool:CMD]       asks, with a bell         [mute:CMD]   asks, without a bell
//! [two:CMD]        asks, with a second open call that the screen does not show
//! [vanish:CMD]     asks until `go` exists    [odd]        asks an unknown question
//! [old:CMD]        prints the text of a prompt without asking
//! [wait]           works until `go` exists   [spin]       the same, and redraws
//! [hang]           does nothing              [deaf]       does nothing and reads no key
//! [bells:N]        rings N times             [title]      rings at the end of a title
//! [crash:N]        ends with this status     [child]      leaves a process behind
//! ```
//!
//! Other messages are answered by `ok: ` and their first line. Each turn except a
//! cancelled one ends with a bell. `/compact`, `/new` and `/quit` are commands.
//! A test may replace the directives by a function, see
//! [`enter_as`].
//! A message that ends in `@word` needs Enter twice. Files in its folder: `go`
//! lets it continue; `late` makes it record a message only with its answer; `dialog` makes it show a question of trust before its composer;
//! `keys` and `ran` record its input and commands.

mod keys;
mod play;
mod screen;

pub use play::{Does, FOLDER, enter, enter_as};

/// Its description for a supervisor. Its environment needs `FAKE_AGENT`, a
/// folder, and `FAKE_PROGRAM` and `FAKE_TEST`: a test program, and the test in it
/// that calls [`enter`].
pub const KIND: &str = r#"
command = ["sh", "-c", "stty raw -echo; exec \"$FAKE_PROGRAM\" \"$FAKE_TEST\" --exact --nocapture --test-threads=1"]
resume = ["sh", "-c", "stty raw -echo; exec \"$FAKE_PROGRAM\" \"$FAKE_TEST\" --exact --nocapture --test-threads=1"]
env = { FAKE_SESSION = "{session}" }
moving = ['^working']

[ready]
shows = '^>'
unless = ['Do you trust']
settle_ms = 50

[composer]
line = '^> ?(.*)$'
below = '^-- fake'
clear = ["<C-u>"]

[[prompts]]
tool = "bash"
ask = '^Allow this command\?$'
choice = '^\* 1\. Yes$'
below = 1
cursor = "hidden"
subject = '^  \$ (.+)$'
allow = ["1"]
deny = ["<Escape>"]

[transcript]
form = "pi"
files = "{home}/sessions/*.jsonl"

[commands]
compact = "/compact"
clear = "/new"
cleared = 'New session started'
cancel = ["<Escape>"]
"#;
