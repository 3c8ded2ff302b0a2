//! The model of a chat's runs.
//!
//! Invariant: a choice belongs to one conversation and never changes the default.

use std::collections::BTreeMap;

/// The chosen and the reported model of the shown conversation.
#[derive(Debug, Default)]
pub(super) struct RunModel {
    chosen: Option<String>,
    /// The model of the last run, which may be a fallback.
    reported: String,
    /// The agent's model, used without a choice or a report.
    usual: String,
    /// Whether a run reported its model since the last choice.
    is_answered: bool,
    /// Choices of other conversations, by agent and sender.
    others: BTreeMap<(String, String), String>,
}

impl RunModel {
    /// Starts with the `--model` option.
    pub(super) fn new(chosen: Option<String>) -> Self {
        Self {
            chosen,
            ..Self::default()
        }
    }

    /// The model of the next request; `None` for the agent's own.
    pub(super) fn wire(&self) -> Option<String> {
        self.chosen.clone()
    }

    /// The effective model; empty if unknown. A report overrides the choice, since
    /// another model may have answered.
    pub(super) fn name(&self) -> &str {
        match &self.chosen {
            Some(model) if !self.is_answered => model,
            _ if !self.reported.is_empty() => &self.reported,
            _ => &self.usual,
        }
    }

    /// Records the model of a run that started or ended.
    pub(super) fn report(&mut self, model: &str) {
        if !model.is_empty() {
            model.clone_into(&mut self.reported);
            self.is_answered = true;
        }
    }

    /// Records the model that the agent uses without a choice.
    pub(super) fn set_usual(&mut self, model: &str) {
        if self.usual != model {
            model.clone_into(&mut self.usual);
            // The default changed after the last run.
            if self.chosen.is_none() {
                self.reported.clear();
            }
        }
    }

    /// Chooses the model of this conversation's next runs.
    pub(super) fn choose(&mut self, model: &str) -> String {
        self.chosen = Some(model.to_owned());
        self.is_answered = false;
        format!("model {model} from the next run, in this conversation")
    }

    /// Returns to the agent's model.
    pub(super) fn clear(&mut self) {
        self.chosen = None;
        self.reported.clear();
    }

    /// Stores the choice of a conversation and restores that of another one.
    pub(super) fn switch(&mut self, from: (String, String), to: &(String, String)) {
        let chosen = self.others.remove(to);
        if let Some(left) = std::mem::replace(&mut self.chosen, chosen) {
            self.others.insert(from, left);
        }
        self.reported.clear();
        self.usual.clear();
        self.is_answered = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_model_is_the_one_that_answers() {
        let mut model = RunModel::default();
        assert_eq!(model.name(), "");
        model.set_usual("big");
        assert_eq!((model.name(), model.wire()), ("big", None));
        model.report("big");
        model.report("spare");
        assert_eq!(model.name(), "spare", "a fallback answered");
        model.choose("small");
        assert_eq!(model.name(), "small");
        assert_eq!(model.wire().as_deref(), Some("small"));
        model.report("small");
        model.set_usual("other");
        assert_eq!(model.name(), "small", "the default does not apply");
        model.clear();
        assert_eq!((model.name(), model.wire()), ("other", None));
        model.report("other");
        model.set_usual("newest");
        assert_eq!(model.name(), "newest", "the default changed");
    }

    #[test]
    fn choice_stays_with_its_conversation() {
        let pair = |agent: &str| (agent.to_owned(), "user".to_owned());
        let mut model = RunModel::new(Some("small".into()));
        model.switch(pair("crab"), &pair("shrimp"));
        assert_eq!((model.name(), model.wire()), ("", None));
        model.report("big");
        model.switch(pair("shrimp"), &pair("crab"));
        assert_eq!(model.name(), "small");
        assert_eq!(model.wire().as_deref(), Some("small"));
    }
}
