//! The mode of a chat's runs.
//!
//! Invariant: the chat can leave `full` but not enter it.

/// The reason why `/mode full` is refused.
const NOT_FULL: &str = "start the chat with --mode full, or set `mode: full` in the agent's file";

/// The chosen and the reported mode.
#[derive(Debug, Default)]
pub(super) struct RunMode {
    chosen: Option<String>,
    reported: String,
    /// Whether a run reported its mode since the last choice.
    is_answered: bool,
}

impl RunMode {
    /// Starts with the `--mode` option.
    pub(super) fn new(chosen: Option<String>) -> Self {
        Self {
            chosen,
            ..Self::default()
        }
    }

    /// The mode of the next request; `None` leaves it to the daemon.
    pub(super) fn wire(&self) -> Option<String> {
        self.chosen.clone()
    }

    /// The effective mode; empty if unknown. A report overrides the choice, since the
    /// daemon may lower the mode.
    pub(super) fn name(&self) -> &str {
        match &self.chosen {
            Some(mode) if !self.is_answered => mode,
            _ => &self.reported,
        }
    }

    /// Records the mode of a started run.
    pub(super) fn report(&mut self, mode: &str) {
        if !mode.is_empty() {
            mode.clone_into(&mut self.reported);
            self.is_answered = true;
        }
    }

    /// Forgets the reports of another conversation.
    pub(super) fn forget(&mut self) {
        self.reported.clear();
        self.is_answered = false;
    }

    /// Handles `/mode [NAME]`.
    pub(super) fn command(&mut self, name: &str) -> Result<String, String> {
        if name.is_empty() {
            return Ok(match self.name() {
                "" => "the agent and the folder decide the mode; /mode NAME sets it: \
                       read-only, ask or auto"
                    .to_owned(),
                name => format!("mode {name}"),
            });
        }
        match name {
            "full" => Err(NOT_FULL.to_owned()),
            "read-only" | "ask" | "auto" => Ok(self.choose(name)),
            _ => Err(format!(
                "unknown mode {name}; the modes are read-only, ask and auto"
            )),
        }
    }

    /// Handles Shift+Tab: chooses the next mode except `full`.
    pub(super) fn cycle(&mut self) -> String {
        self.choose(
            match self.chosen.as_ref().unwrap_or(&self.reported).as_str() {
                "read-only" => "ask",
                "ask" => "auto",
                _ => "read-only",
            },
        )
    }

    fn choose(&mut self, mode: &str) -> String {
        self.chosen = Some(mode.to_owned());
        self.is_answered = false;
        format!("mode {mode} from the next run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_cycle_modes_and_never_reach_full() {
        for (started, want) in [
            (None, ["read-only", "ask", "auto", "read-only"]),
            (Some("read-only"), ["ask", "auto", "read-only", "ask"]),
            (Some("full"), ["read-only", "ask", "auto", "read-only"]),
        ] {
            let mut mode = RunMode::new(started.map(str::to_owned));
            for want in want {
                mode.cycle();
                assert_eq!(mode.name(), want, "{started:?}");
                assert_eq!(mode.wire().as_deref(), Some(want));
            }
        }
        let mut reported = RunMode::default();
        reported.report("ask");
        reported.cycle();
        assert_eq!(reported.name(), "auto");
    }

    #[test]
    fn command_shows_and_sets_modes_but_not_full() {
        let mut mode = RunMode::default();
        assert!(
            mode.command("")
                .unwrap()
                .contains("the agent and the folder")
        );
        mode.report("auto");
        mode.report("");
        assert_eq!(mode.command("").unwrap(), "mode auto");
        assert_eq!(mode.wire(), None, "a reported mode is not sent");
        assert_eq!(mode.command("full").unwrap_err(), NOT_FULL);
        assert!(mode.command("yolo").unwrap_err().contains("read-only, ask"));
        assert_eq!(mode.name(), "auto");
        mode.command("ask").unwrap();
        mode.report("read-only");
        let lowered = (mode.name(), mode.wire());
        assert_eq!(lowered, ("read-only", Some("ask".into())));
    }
}
