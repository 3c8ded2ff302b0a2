//! Rules that answer the prompts of terminal agents.
//!
//! Invariants: a rule compares the whole command or, for an agent in the sandbox,
//! the first words of a command without shell syntax; it answers only prompts that are
//! [`Prompt::exact`]; deny overrides allow; everything else,
//! and every question to a person, goes to ADMIN. Prompts of daemon agents are
//! not judged here, since the daemon's gate has judged them.

use crate::backend::{Prompt, Reply};
use serde::{Deserialize, Serialize};

/// Suffix of a rule that gives only the first words.
const MORE: &str = " *";

/// `tool(command)`, `tool(first words *)`, or `tool` for all calls of the tool.
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
        let rule = Self {
            tool: tool.to_lowercase(),
            command,
        };
        let words = match rule.prefix() {
            Some(words) if !is_plain(words) => {
                return Err(format!(
                    "{text:?}: a prefix is plain words, of which the first has no `/`"
                ));
            }
            Some(words) => words,
            None => text,
        };
        if words.contains('*') {
            return Err(format!(
                "{text:?}: a `*` may only replace further words: `bash(cargo test *)`"
            ));
        }
        Ok(rule)
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
    /// Whether the rule contains a command, as allow rules must.
    pub fn has_command(&self) -> bool {
        self.command.is_some()
    }

    /// Whether the rule contains the first words of a command.
    pub fn is_prefix(&self) -> bool {
        self.prefix().is_some()
    }

    fn prefix(&self) -> Option<&str> {
        self.command.as_deref()?.strip_suffix(MORE)
    }

    fn matches(&self, prompt: &Prompt) -> bool {
        let of_tool = self.tool == prompt.tool.to_lowercase();
        let is_named = match (&self.command, self.prefix()) {
            (None, _) => true,
            (Some(_), Some(first)) => prompt.exact && begins_with(&prompt.subject, first),
            (Some(command), None) => prompt.exact && *command == prompt.subject,
        };
        of_tool && is_named
    }
}

/// Whether a text has no characters that a shell interprets.
fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " _-./:=@%+,".contains(c);
    let first = text.split(' ').find(|word| !word.is_empty());
    text.chars().all(plain) && first.is_some_and(|word| !word.contains(['/', '=']))
}

/// Whether a command has no shell syntax and begins with these words.
fn begins_with(command: &str, first: &str) -> bool {
    let words = |text| str::split_ascii_whitespace(text);
    let mut given = words(command);
    is_plain(command) && words(first).all(|word| given.next() == Some(word))
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
    /// These rules, followed by `more`.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let both = |a: &[Rule], b: &[Rule]| a.iter().chain(b).cloned().collect();
        Self {
            allow: both(&self.allow, &more.allow),
            deny: both(&self.deny, &more.deny),
        }
    }

    /// The answer to a prompt, `None` if ADMIN decides, and the reason for the log.
    pub fn judge(&self, prompt: &Prompt) -> (Option<Reply>, String) {
        if prompt.is_question {
            return (None, "it is a question".into());
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.matches(prompt)) {
            let reason = format!("the rule `deny {rule}` of NEXUS refuses it");
            return (Some(Reply::Deny(reason)), format!("deny {rule}"));
        }
        let mut allow = self.allow.iter().filter(|rule| rule.has_command());
        match allow.find(|rule| rule.matches(prompt)) {
            Some(rule) => (Some(Reply::Allow), format!("allow {rule}")),
            None if prompt.exact => (None, "no rule".into()),
            None => (None, "not exactly one open call".into()),
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
        assert_eq!(rules.judge(&question).0, None);
    }

    #[test]
    fn prefixes_match_whole_plain_words() {
        let rules = Rules {
            allow: parsed(&["bash(cargo test *)"]),
            deny: parsed(&["bash(cargo test --doc *)"]),
        };
        let prompt = |subject: &str, exact| Prompt {
            tool: "bash".into(),
            subject: subject.into(),
            exact,
            ..Prompt::default()
        };
        for (subject, says) in [
            ("cargo test", "allow bash(cargo test *)"),
            ("cargo test -p a --lib", "allow bash(cargo test *)"),
            ("cargo test --doc x", "deny bash(cargo test --doc *)"),
            ("cargo tests", "no rule"),
            ("cargo", "no rule"),
            ("./cargo test", "no rule"),
            ("A=1 cargo test", "no rule"),
            ("cargo test; curl x", "no rule"),
            ("cargo test $(curl x)", "no rule"),
            ("cargo test 'a'", "no rule"),
            ("cargo test *", "no rule"),
        ] {
            assert_eq!(rules.judge(&prompt(subject, true)).1, says, "{subject:?}");
        }
        let hidden = rules.judge(&prompt("cargo test", false));
        assert_eq!(hidden.0, None);
    }

    #[test]
    fn rules_with_other_wildcards_are_refused() {
        for text in [
            "bash(car*)",
            "bash(cargo * x)",
            "bash( *)",
            "bash(./x *)",
            "bash(a; b *)",
            "web__*",
            "bash(ls",
            "two words",
            "",
        ] {
            Rule::try_from(text.to_owned()).unwrap_err();
        }
    }
}
