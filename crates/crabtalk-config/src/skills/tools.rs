//! Converts entries of `allowed-tools` to rules of the gate.
//!
//! Invariant: an ambiguous entry pre-approves nothing.

use std::fmt;

/// A tool that a trusted skill pre-approves, in the form of a permission rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    /// The tool's name at the gate.
    pub tool: String,
    /// The pattern of commands or paths; `None` for all.
    pub pattern: Option<String>,
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

/// Splits a list at commas and white space outside of parentheses.
pub(crate) fn split(list: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (mut word, mut depth) = (String::new(), 0_usize);
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            out.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    out.push(word);
    out.retain(|word| !word.is_empty());
    out
}

/// The rules of an entry of `allowed-tools`; empty if it is malformed.
pub(crate) fn patterns(entry: &str) -> Vec<ToolPattern> {
    let (tool, pattern) = match entry.split_once('(') {
        None => (entry, None),
        Some((tool, rest)) => match rest.strip_suffix(')') {
            Some(pattern) if !pattern.trim().is_empty() => (tool, Some(pattern.trim())),
            Some(_) | None => return Vec::new(),
        },
    };
    // A wildcard would approve tools that are not named.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if tool.is_empty() || !tool.chars().all(plain) {
        return Vec::new();
    }
    let tool = ours(tool);
    let rule = |pattern: Option<String>| ToolPattern {
        tool: tool.clone(),
        pattern,
    };
    // `git:*` means "git with any arguments", which needs two rules.
    match pattern.map(|p| (p, p.strip_suffix(":*"))) {
        Some((_, Some(prefix))) if tool == "bash" => match prefix.trim() {
            "" => Vec::new(),
            prefix => vec![
                rule(Some(prefix.to_owned())),
                rule(Some(format!("{prefix} *"))),
            ],
        },
        Some((pattern, _)) => vec![rule(Some(pattern.to_owned()))],
        None => vec![rule(None)],
    }
}

/// The gate's name of a tool.
fn ours(tool: &str) -> String {
    match tool {
        "Bash" => "bash".to_owned(),
        "Read" => "read".to_owned(),
        "Edit" | "MultiEdit" => "edit".to_owned(),
        "Write" => "write".to_owned(),
        other => other.strip_prefix("mcp__").unwrap_or(other).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_outside_of_parentheses() {
        for (list, words) in [
            ("", vec![]),
            ("Read", vec!["Read"]),
            (
                "Bash(git add:*) Bash(jq:*), Read",
                vec!["Bash(git add:*)", "Bash(jq:*)", "Read"],
            ),
            (" Read ,, Write ", vec!["Read", "Write"]),
            ("Bash(a, b) Read)", vec!["Bash(a, b)", "Read)"]),
            ("Bash(a Read", vec!["Bash(a Read"]),
        ] {
            assert_eq!(split(list), words, "{list}");
        }
    }

    #[test]
    fn entries_become_rules_of_the_gate_or_nothing() {
        for (entry, rules) in [
            ("Read", vec!["read"]),
            ("Bash", vec!["bash"]),
            ("Bash(git:*)", vec!["bash(git)", "bash(git *)"]),
            (
                "Bash(git status:*)",
                vec!["bash(git status)", "bash(git status *)"],
            ),
            ("bash(git status*)", vec!["bash(git status*)"]),
            ("Edit(src/**)", vec!["edit(src/**)"]),
            ("mcp__search__query", vec!["search__query"]),
            ("WebFetch", vec!["WebFetch"]),
            ("*", vec![]),
            ("mcp__search__*", vec![]),
            ("Bash(:*)", vec![]),
            ("Bash()", vec![]),
            ("Bash(a", vec![]),
            ("Bash)", vec![]),
            ("(x)", vec![]),
            ("Bash\"", vec![]),
        ] {
            let got: Vec<String> = patterns(entry).iter().map(ToString::to_string).collect();
            assert_eq!(got, rules, "{entry}");
        }
    }
}
