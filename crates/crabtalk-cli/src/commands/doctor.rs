//! `doctor`: checks the installation and suggests fixes (OPS-2).
//!
//! Invariants: checks change nothing; each finding names a fix; a failed check is a
//! finding and does not stop other checks.

mod local;
mod node;

use super::Context;
use crate::error::Error;
use serde_json::{Value, json};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No problem.
    Fine,
    /// Works with limitations.
    Warning,
    /// Does not work.
    Wrong,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "warning",
            Self::Wrong => "error",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// Name of the check.
    what: &'static str,
    state: State,
    said: String,
    /// A command or other fix; may be empty.
    mend: String,
}

impl Finding {
    fn fine(what: &'static str, said: impl Into<String>) -> Self {
        Self {
            state: State::Fine,
            ..Self::warning(what, said, "")
        }
    }

    fn warning(what: &'static str, said: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            what,
            state: State::Warning,
            said: said.into(),
            mend: mend.into(),
        }
    }

    fn wrong(what: &'static str, said: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            state: State::Wrong,
            ..Self::warning(what, said, mend)
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "check": self.what, "state": self.state.as_str(), "found": self.said, "mend": self.mend,
        })
    }
}

pub(super) async fn run(context: &mut Context, offline: bool) -> Result<(), Error> {
    let (mut warnings, mut wrong) = (0, 0);
    let mut show = |context: &mut Context, finding: Finding| {
        match finding.state {
            State::Fine => {}
            State::Warning => warnings += 1,
            State::Wrong => wrong += 1,
        }
        tell(context, &finding)
    };
    let is_here = context.known_client().endpoint().is_local();
    let mut starts = true;
    if is_here {
        for finding in local::look(&context.home) {
            starts &= finding.what != local::CONFIG || finding.state != State::Wrong;
            show(context, finding)?;
        }
    }
    for finding in node::look(context, starts, offline).await? {
        show(context, finding)?;
    }
    let warned = match warnings {
        _ if context.global.json => String::new(),
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        many => format!(", {many} warnings"),
    };
    match wrong {
        0 if context.global.json => Ok(()),
        0 => context.note(&format!("crabtalk: OK{warned}")),
        1 => Err(Error::Failed(format!("1 problem{warned}"))),
        many => Err(Error::Failed(format!("{many} problems{warned}"))),
    }
}

fn tell(context: &mut Context, finding: &Finding) -> Result<(), Error> {
    let screen = &mut context.console.screen;
    if context.global.json {
        return Ok(screen.json(&finding.to_json())?);
    }
    let state = finding.state.as_str();
    let mut said = finding.said.lines();
    let first = said.next().unwrap_or_default();
    screen.line(&format!("{state:<8} {:<10} {first}", finding.what))?;
    for more in said {
        screen.line(&format!("{:19} {more}", ""))?;
    }
    if !finding.mend.is_empty() {
        screen.line(&format!("{:19} fix: {}", "", finding.mend))?;
    }
    Ok(())
}
