//! An agent for terminals that does what its messages tell it, well or badly.
//!
//! It draws a screen with a composer, asks before it runs a command, writes a
//! transcript in pi's form, and notes every key that reaches it. A test program
//! plays it when it is started again in a terminal, see [`enter`]; [`KIND`] is
//! what a supervisor has to know of it.
//!
//! A message holds directives, of which the first counts:
//!
//! ```text
//! [say:TEXT]       answers TEXT              [tokens:N]   reports N tokens
//! [tool:CMD]       asks, with a bell         [mute:CMD]   asks, without one
//! [two:CMD]        asks, with a second call open that the screen does not show
//! [vanish:CMD]     asks until `go` is there  [odd]        asks an unknown question
//! [old:CMD]        writes what a prompt looks like, and asks nothing
//! [wait]           works until `go` is there [spin]       the same, and redraws
//! [hang]           says and does nothing     [deaf]       the same, and reads no key
//! [bells:N]        rings so often            [title]      rings at the end of a title
//! [crash:N]        ends with this status     [child]      leaves a process behind
//! ```
//!
//! Anything else is answered `ok: ` and its first line. Each turn but a
//! cancelled one ends with a bell. `/compact`, `/new` and `/quit` are commands.
//! A test may say by a function what a message makes it do instead, see
//! [`enter_as`].
//! A message that ends in `@word` needs Enter twice. Files in its folder: `go`
//! lets it go on; `late` makes it write a message with its answer alone; `dialog` makes it ask for trust before its composer comes;
//! `keys` and `ran` tell what reached it.

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
