//! Parses shell text into plain words, for rules.
//!
//! Invariant: a text is plain only if every shell parses it as the same simple commands;
//! any other text is not plain, and only a rule for all commands allows it. The sandbox,
//! not this parser, limits what a command can do.

/// Characters with a special meaning in the shell.
const SHELL: &[char] = &[
    '$', '`', '\\', '(', ')', '{', '}', '<', '>', '!', '#', '~', '&',
];

/// Redirections that write to no file.
const HARMLESS: [&str; 6] = [
    "2>&1",
    "1>&2",
    ">&2",
    ">/dev/null",
    "2>/dev/null",
    "</dev/null",
];

/// The simple commands of a plain text, joined by `|`, `||`, `&&`, `;` and new lines;
/// `None` for any other text.
pub(crate) fn commands(text: &str) -> Option<Vec<Vec<String>>> {
    if text.chars().any(|c| c.is_control() && !"\n\t".contains(c)) {
        return None;
    }
    let mut done = Vec::new();
    let mut now: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix([' ', '\t']) {
            rest = after;
            continue;
        }
        let operator = ["&&", "||", "|", ";", "\n"]
            .into_iter()
            .find(|operator| rest.starts_with(operator));
        if let Some(operator) = operator {
            if !now.is_empty() {
                done.push(std::mem::take(&mut now));
            } else if operator != "\n" {
                return None;
            }
            rest = &rest[operator.len()..];
            continue;
        }
        let harmless = HARMLESS.into_iter().find(|r| {
            let after = rest.strip_prefix(r);
            after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\n', ';', '|']))
        });
        if let Some(redirection) = harmless.filter(|_| !now.is_empty()) {
            rest = &rest[redirection.len()..];
            continue;
        }
        let (word, after) = word(rest, c)?;
        now.push(word);
        rest = after;
    }
    if !now.is_empty() {
        done.push(now);
    }
    let named = |words: &Vec<String>| words.first().is_some_and(|name| is_program(name));
    (!done.is_empty() && done.iter().all(named)).then_some(done)
}

/// One word and the text after it; `None` if the shell would expand the word.
fn word(text: &str, first: char) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text;
    let mut next = Some(first);
    while let Some(c) = next {
        match c {
            ' ' | '\t' | '\n' | ';' | '|' => break,
            '\'' | '"' => {
                let (quoted, after) = rest[1..].split_once(c)?;
                if c == '"' && quoted.contains(['$', '`', '\\', '!']) {
                    return None;
                }
                word.push_str(quoted);
                rest = after;
            }
            c if SHELL.contains(&c) || (c.is_whitespace() && !c.is_ascii()) => return None,
            c => {
                word.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        next = rest.chars().next();
    }
    Some((word, rest))
}

/// Whether a first word is a program of `PATH` or an absolute path: not a relative
/// path, an assignment, a glob or a keyword of the shell.
fn is_program(name: &str) -> bool {
    const GRAMMAR: [&str; 21] = [
        "if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done", "case",
        "esac", "select", "function", "time", "coproc", "[[", "alias", "eval", ".",
    ];
    let is_relative_path = name.contains('/') && !name.starts_with('/');
    let is_odd = name.contains(['=', '*', '?', '[']);
    !name.is_empty() && !is_relative_path && !is_odd && !GRAMMAR.contains(&name)
}

/// The approximate words of any text, for rules that ask or deny: these should match as
/// much as is possible without a parser.
pub(crate) fn roughly(text: &str) -> Vec<Vec<String>> {
    let plain = |word: &str| word.replace(['\'', '"', '\\'], "");
    text.split([';', '|', '&', '\n', '(', ')', '{', '}', '`'])
        .map(|part| part.split_whitespace().map(plain).collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .map(|words| {
            let is_assignment = |word: &String| word.contains('=');
            words.into_iter().skip_while(is_assignment).collect()
        })
        .collect()
}

/// The prefix that "Allow prefix" offers for a command: the program, and the second word
/// if it looks like a subcommand. `None` for a text with several commands.
pub fn prefix(text: &str) -> Option<String> {
    let commands = commands(text)?;
    let [words] = commands.as_slice() else {
        return None;
    };
    let program = words.first()?;
    let is_subcommand = |word: &&String| {
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_:".contains(c);
        word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(rest)
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if !program.chars().all(plain) {
        return None;
    }
    Some(match words.get(1).filter(is_subcommand) {
        Some(subcommand) => format!("{program} {subcommand}"),
        None => program.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_split_into_commands() {
        for (text, want) in [
            ("ls", Some("ls")),
            ("cargo test -p 'my crate'", Some("cargo·test·-p·my crate")),
            ("a | b && c; d\ne || f", Some("a/b/c/d/e/f")),
            ("cargo test 2>&1 | tail -5", Some("cargo·test/tail·-5")),
            ("ls *.rs", Some("ls·*.rs")),
            (r#"git commit -m "a b""#, Some("git·commit·-m·a b")),
            ("ls\n", Some("ls")),
            ("", None),
            ("; ls", None),
            ("ls && ", Some("ls")),
            ("ls $HOME", None),
            (r#"echo "$(id)""#, None),
            ("echo `id`", None),
            ("ls > out", None),
            ("ls &", None),
            ("./run", None),
            ("sub/run", None),
            ("/usr/bin/git log", Some("/usr/bin/git·log")),
            ("X=1 make", None),
            ("l* x", None),
            ("if true; then ls; fi", None),
            ("echo 'open", None),
            ("ls ~/x", None),
            ("ls\u{a0}x", None),
            ("ls\u{7}", None),
            ("2>&1", None),
            ("# comment", None),
            ("eval ls", None),
        ] {
            let found = commands(text).map(|commands| {
                let lines: Vec<String> = commands.iter().map(|words| words.join("·")).collect();
                lines.join("/")
            });
            assert_eq!(found.as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn prefixes_are_a_program_and_its_subcommand() {
        for (text, want) in [
            ("cargo test -p store", Some("cargo test")),
            ("npm run test:unit", Some("npm run")),
            ("ls -la", Some("ls")),
            ("cargo +nightly test", Some("cargo")),
            ("cargo test && ls", None),
            ("cargo $(x)", None),
            ("./git log", None),
        ] {
            assert_eq!(prefix(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn rough_words_find_commands_in_any_text() {
        let found = roughly("X=1 git 'push' origin; (a && \"b\" c)");
        assert_eq!(
            found,
            [vec!["git", "push", "origin"], vec!["a"], vec!["b", "c"]]
        );
    }
}
