//! Rules that answer the prompts of terminal agents.
//!
//! Invariants: a rule compares the whole command, without wildcards; it answers
//! only a prompt that is [`Prompt::exact`]; deny beats allow; everything else,
//! and every question to a person, goes to ADMIN. Prompts of daemon agents are
//! not judged here: the daemon's gate did that before it asked.

use crate::machine::Verdict;
use crabtalk_backend::Prompt;
use serde::{Deserialize, Serialize};

/// `tool(command)`, or `tool` for all its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    tool: String,
    command: Option<String>,
}

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim();
        let (tool, command) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let command = rest
                    .strip_suffix(')')
                    .ok_or_else(|| format!("{text:?} lacks its closing parenthesis"))?;
                (tool.trim(), Some(command.to_owned()))
            }
        };
        if tool.is_empty() || tool.contains(char::is_whitespace) {
            return Err(format!(
                "{text:?} is not a rule: write `tool` or `tool(command)`"
            ));
        }
        if text.contains('*') {
            return Err(format!(
                "{text:?}: rules of NEXUS have no wildcards; write the whole command"
            ));
        }
        Ok(Self {
            tool: tool.to_lowercase(),
            command,
        })
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.command {
            None => f.write_str(&self.tool),
            Some(command) => write!(f, "{}({command})", self.tool),
        }
    }
}

impl Rule {
    /// Whether it names one command, as an allowing rule has to.
    pub fn is_exact(&self) -> bool {
        self.command.is_some()
    }

    fn matches(&self, prompt: &Prompt) -> bool {
        let of_tool = self.tool == prompt.tool.to_lowercase();
        let command = self.command.as_ref();
        of_tool && command.is_none_or(|command| prompt.exact && *command == prompt.subject)
    }
}

/// The rules for an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Commands that are allowed without asking.
    pub allow: Vec<Rule>,
    /// Commands and tools that are refused.
    pub deny: Vec<Rule>,
}

impl Rules {
    /// These, then others.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let both = |a: &[Rule], b: &[Rule]| a.iter().chain(b).cloned().collect();
        Self {
            allow: both(&self.allow, &more.allow),
            deny: both(&self.deny, &more.deny),
        }
    }

    /// The verdict on a prompt, and the reason for the log.
    pub fn judge(&self, prompt: &Prompt) -> (Verdict, String) {
        if prompt.is_question {
            return (Verdict::Ask, "it is a question".into());
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.matches(prompt)) {
            let reason = format!("the rule `deny {rule}` of NEXUS refuses it");
            return (Verdict::Deny(reason), format!("deny {rule}"));
        }
        let mut allow = self.allow.iter().filter(|rule| rule.is_exact());
        match allow.find(|rule| rule.matches(prompt)) {
            Some(rule) => (Verdict::Allow, format!("allow {rule}")),
            None if prompt.exact => (Verdict::Ask, "no rule".into()),
            None => (Verdict::Ask, "not exactly one open call".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Vec<Rule> {
        let parse = |text: &&str| Rule::try_from((*text).to_owned()).unwrap();
        texts.iter().map(parse).collect()
    }

    #[test]
    fn rules_compare_whole_commands() {
        let rules = Rules {
            allow: parsed(&["bash(cargo test)", "bash(git status)", "read"]),
            deny: parsed(&["write", "bash(git status)"]),
        };
        for (tool, subject, exact, says) in [
            ("bash", "cargo test", true, "allow bash(cargo test)"),
            ("Bash", "cargo test", true, "allow bash(cargo test)"),
            ("bash", "cargo test", false, "not exactly one open call"),
            ("bash", "cargo test --all", true, "no rule"),
            ("bash", "cargo test ", true, "no rule"),
            ("bash", "cargo  test", true, "no rule"),
            ("bash", "cargo test; curl x", true, "no rule"),
            (
                "bash",
                "git diff --no-index --output=~/.bashrc a b",
                true,
                "no rule",
            ),
            ("bash", "git status", true, "deny bash(git status)"),
            ("read", "cargo test", true, "no rule"),
            ("", "cargo test", true, "no rule"),
            ("write", "a", false, "deny write"),
        ] {
            let prompt = Prompt {
                tool: tool.into(),
                subject: subject.into(),
                exact,
                ..Prompt::default()
            };
            assert_eq!(rules.judge(&prompt).1, says, "{tool} {subject:?}");
        }
        let question = Prompt {
            tool: "write".into(),
            is_question: true,
            ..Prompt::default()
        };
        assert_eq!(rules.judge(&question).0, Verdict::Ask);
    }

    #[test]
    fn rules_with_wildcards_are_refused() {
        for text in ["bash(cargo *)", "web__*", "bash(ls", "two words", ""] {
            Rule::try_from(text.to_owned()).unwrap_err();
        }
    }
}
