//! Which prompts are allowed, refused, or ADMIN's to decide.
//!
//! Invariants: a rule with a pattern beats one without; among those that match,
//! deny beats ask beats allow; what no rule matches is asked; a narrow rule
//! allows one simple command or one path and nothing that is joined to it; a
//! question to a person is never answered by a rule.

use crate::machine::Verdict;
use crabtalk_backend::Prompt;
use serde::{Deserialize, Serialize};

/// What in a command joins another one, expands, or redirects. No narrow rule
/// allows a command with one of these, quoted or not: nothing here parses shells.
const JOINS: &[char] = &[
    ';', '&', '|', '<', '>', '$', '`', '(', ')', '{', '}', '\\', '\n', '\r',
];

/// Longest subject that a pattern is held against: matching is quadratic.
const MAX_SUBJECT: usize = 16 * 1024;

/// `tool` or `tool(pattern)`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    tool: String,
    pattern: Option<String>,
}

impl TryFrom<String> for Rule {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = text.trim();
        let (tool, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((tool, rest)) => {
                let pattern = rest
                    .strip_suffix(')')
                    .ok_or_else(|| format!("{text:?} lacks its closing parenthesis"))?;
                (tool.trim(), Some(pattern.to_owned()))
            }
        };
        if tool.is_empty() || tool.contains(char::is_whitespace) {
            return Err(format!(
                "{text:?} is no rule: write `tool` or `tool(pattern)`"
            ));
        }
        Ok(Self {
            tool: tool.to_lowercase(),
            pattern,
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
        match &self.pattern {
            None => f.write_str(&self.tool),
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
        }
    }
}

impl Rule {
    fn is_command(&self) -> bool {
        matches!(
            self.tool.as_str(),
            "bash" | "shell" | "exec" | "exec_command"
        )
    }

    fn names(&self, prompt: &Prompt) -> bool {
        !prompt.tool.is_empty() && matches(&self.tool, &prompt.tool.to_lowercase(), true)
    }

    /// Whether it refuses or asks: any part of what is joined counts.
    fn concerns(&self, prompt: &Prompt) -> bool {
        let Some(pattern) = &self.pattern else {
            return self.names(prompt);
        };
        let subject = prompt.subject.trim();
        if !self.names(prompt) {
            return false;
        }
        // What is too long to look into may hold anything.
        if subject.len() > MAX_SUBJECT {
            return true;
        }
        let command = self.is_command();
        let mut parts = subject.split(JOINS).map(str::trim);
        matches(pattern, subject, command) || parts.any(|part| matches(pattern, part, command))
    }

    /// Whether it allows: the whole of it, and nothing joined.
    fn allows(&self, prompt: &Prompt) -> bool {
        let subject = prompt.subject.trim();
        if subject.is_empty() || !self.names(prompt) {
            return false;
        }
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let climbs = subject.split('/').any(|part| part == "..");
        subject.len() <= MAX_SUBJECT
            && !subject.contains(JOINS)
            && (self.is_command() || !climbs)
            && matches(pattern, subject, self.is_command())
    }
}

/// The rules for an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Allowed without asking.
    pub allow: Vec<Rule>,
    /// ADMIN's to decide, also where a rule allows it.
    pub ask: Vec<Rule>,
    /// Refused.
    pub deny: Vec<Rule>,
}

impl Rules {
    /// These, then others.
    #[must_use]
    pub fn and(&self, more: &Self) -> Self {
        let both = |a: &[Rule], b: &[Rule]| a.iter().chain(b).cloned().collect();
        Self {
            allow: both(&self.allow, &more.allow),
            ask: both(&self.ask, &more.ask),
            deny: both(&self.deny, &more.deny),
        }
    }

    /// What becomes of a prompt, and which rule says so. With `all`, what no
    /// rule matches is allowed.
    pub fn judge(&self, prompt: &Prompt, all: bool) -> (Verdict, String) {
        if prompt.is_question {
            return (Verdict::Ask, "it is a question".into());
        }
        for narrow in [true, false] {
            let of = |rule: &&Rule| rule.pattern.is_some() == narrow;
            if let Some(rule) = self.deny.iter().filter(of).find(|r| r.concerns(prompt)) {
                let reason = format!("the rule `deny {rule}` of NEXUS refuses it");
                return (Verdict::Deny(reason), format!("deny {rule}"));
            }
            if let Some(rule) = self.ask.iter().filter(of).find(|r| r.concerns(prompt)) {
                return (Verdict::Ask, format!("ask {rule}"));
            }
            if let Some(rule) = self.allow.iter().filter(of).find(|r| r.allows(prompt)) {
                return (Verdict::Allow, format!("allow {rule}"));
            }
        }
        if all {
            return (Verdict::Allow, "approve = \"all\"".into());
        }
        (Verdict::Ask, "no rule".into())
    }
}

/// Whether a pattern matches a whole text. `*` is anything; in a path it stops
/// at `/`, and `**` does not.
fn matches(pattern: &str, text: &str, over_slashes: bool) -> bool {
    let pattern: Vec<char> = pattern.trim().chars().collect();
    let text: Vec<char> = text.chars().collect();
    // Which beginnings of the text the pattern so far matches.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    let mut at = 0;
    while at < pattern.len() {
        let mut next = vec![false; text.len() + 1];
        if pattern[at] == '*' {
            let double = pattern.get(at + 1) == Some(&'*');
            at += if double { 2 } else { 1 };
            let over = double || over_slashes;
            for index in 0..=text.len() {
                let goes_on = index > 0 && next[index - 1] && (over || text[index - 1] != '/');
                next[index] = reached[index] || goes_on;
            }
        } else {
            for index in 0..text.len() {
                next[index + 1] = reached[index] && text[index] == pattern[at];
            }
            at += 1;
        }
        reached = next;
    }
    reached[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], ask: &[&str], deny: &[&str]) -> Rules {
        let of = |texts: &[&str]| {
            let parse = |text: &&str| Rule::try_from((*text).to_owned()).unwrap();
            texts.iter().map(parse).collect()
        };
        Rules {
            allow: of(allow),
            ask: of(ask),
            deny: of(deny),
        }
    }

    fn judged(rules: &Rules, tool: &str, subject: &str) -> String {
        let prompt = Prompt {
            tool: tool.into(),
            subject: subject.into(),
            ..Prompt::default()
        };
        rules.judge(&prompt, false).1
    }

    #[test]
    fn narrow_rules_first_then_deny_ask_allow_and_else_ask() {
        let rules = rules(
            &["bash(cargo *)", "read", "edit(src/**)", "web__*"],
            &["bash(cargo publish*)"],
            &["bash(rm *)", "write", "edit(**/secret*)"],
        );
        for (tool, subject, says) in [
            ("bash", "cargo test", "allow bash(cargo *)"),
            ("Bash", "cargo test", "allow bash(cargo *)"),
            ("bash", "cargo publish", "ask bash(cargo publish*)"),
            ("bash", "rm -rf /", "deny bash(rm *)"),
            ("bash", "ls", "no rule"),
            ("bash", "cargo test; rm -rf /", "deny bash(rm *)"),
            ("bash", "cargo test; curl x", "no rule"),
            ("bash", "cargo test $(curl x)", "no rule"),
            ("bash", "cargo test\ncurl x", "no rule"),
            ("read", "/etc/passwd", "allow read"),
            ("read", "", "no rule"),
            ("", "x", "no rule"),
            ("write", "a", "deny write"),
            ("edit", "src/a/b.rs", "allow edit(src/**)"),
            ("edit", "src/../x", "no rule"),
            ("edit", "src/secret.rs", "deny edit(**/secret*)"),
            ("web__get", "x", "allow web__*"),
        ] {
            assert_eq!(judged(&rules, tool, subject), says, "{tool} {subject}");
        }
    }

    #[test]
    fn all_allows_what_no_rule_matches() {
        let rules = rules(&[], &[], &["bash(rm *)"]);
        let prompt = |subject: &str| Prompt {
            tool: "bash".into(),
            subject: subject.into(),
            ..Prompt::default()
        };
        assert_eq!(rules.judge(&prompt("ls"), true).0, Verdict::Allow);
        assert!(matches!(
            rules.judge(&prompt("rm x"), true).0,
            Verdict::Deny(_)
        ));
        let question = Prompt {
            is_question: true,
            ..prompt("ls")
        };
        assert_eq!(rules.judge(&question, true).0, Verdict::Ask);
    }

    #[test]
    fn stars_stop_at_slashes_in_paths() {
        assert!(matches("src/*.rs", "src/a.rs", false));
        assert!(!matches("src/*.rs", "src/a/b.rs", false));
        assert!(matches("src/**", "src/a/b.rs", false));
        assert!(matches("**", "", false));
        assert!(!matches("", "a", true));
    }
}
