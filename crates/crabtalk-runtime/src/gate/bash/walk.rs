//! Walks the syntax tree of a command and collects what is judged.
//!
//! Invariant: every node that can hold a command is entered; a kind of node
//! that is not listed is unknown, never skipped.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not listed is unknown, also in a later version of the parser"
)]

use super::word::{self, Found, Word};
use super::wrap::{self, Behind};
use super::{FileUse, Inner, MAX_NESTING, Part, SplitCommand};
use crate::gate::pattern::HOLE;
use crate::gate::plain::base_name;
use rable::{ListOperator, Node, NodeKind};

/// Most positions of a wrapper's arguments at which its command may begin;
/// more options than that stand before no command.
const MAX_CANDIDATES: usize = 16;

/// Most words of commands behind commands, all together: commands that hold
/// each other over and over would otherwise multiply.
const MAX_HIDDEN_WORDS: usize = 20_000;

/// Commands after which relative paths mean something else.
const MOVERS: [&str; 3] = ["cd", "pushd", "popd"];

/// Collects parts and files.
pub(super) struct Walk {
    script: SplitCommand,
    depth: usize,
    moves: bool,
    hidden_words: usize,
}

/// Takes apart the text of a call.
pub(super) fn script(text: &str) -> Result<SplitCommand, String> {
    let mut walk = Walk {
        script: SplitCommand::default(),
        depth: 0,
        moves: false,
        hidden_words: MAX_HIDDEN_WORDS,
    };
    walk.text(text)?;
    Ok(walk.script)
}

impl Walk {
    fn text(&mut self, text: &str) -> Result<(), String> {
        let nodes = rable::parse(text, false).map_err(|e| format!("it is not understood: {e}"))?;
        self.nodes(&nodes);
        if self.moves {
            for file in &mut self.script.files {
                file.moved = true;
            }
        }
        Ok(())
    }

    /// Takes apart a script within this one; its files count as this one's.
    fn nested(&mut self, text: &str, depth: usize) -> Result<Vec<Part>, String> {
        let mut walk = Self {
            script: SplitCommand::default(),
            depth,
            moves: false,
            hidden_words: self.hidden_words,
        };
        let result = walk.text(text);
        self.hidden_words = walk.hidden_words;
        self.moves |= walk.moves;
        self.script.files.extend(walk.script.files);
        result.map(|()| walk.script.parts)
    }

    /// Reads a word, and judges what it holds.
    fn word(&mut self, node: &Node) -> Word {
        let (word, found) = word::read(node);
        for found in found {
            match found {
                Found::Command(command) => self.node(command),
                Found::Unknown(reason) => self.unknown(reason),
            }
        }
        word
    }

    /// Records that something is not known.
    fn unknown(&mut self, reason: &str) {
        if !self
            .script
            .parts
            .iter()
            .any(|p| p.guard.as_deref() == Some(reason))
        {
            self.script.parts.push(Part::unknown(reason));
        }
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            self.node(node);
        }
    }

    /// Enters a node.
    fn node(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::Command {
                assignments,
                words,
                redirects,
            } => {
                self.simple(assignments, words, redirects);
            }
            NodeKind::Pipeline { commands, .. } => self.nodes(commands),
            NodeKind::List { items } => {
                for item in items {
                    self.node(&item.command);
                    if item.operator == Some(ListOperator::Background) {
                        self.unknown("a command in the background outlives the call");
                    }
                }
            }
            NodeKind::Subshell { body, redirects } | NodeKind::BraceGroup { body, redirects } => {
                self.node(body);
                self.redirects(redirects);
            }
            NodeKind::Negation { pipeline } | NodeKind::Time { pipeline, .. } => {
                self.node(pipeline);
            }
            NodeKind::Comment { .. } | NodeKind::Empty => {}
            _ => self.compound(node),
        }
    }

    fn compound(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::If {
                condition,
                then_body,
                else_body,
                redirects,
            } => {
                self.node(condition);
                self.node(then_body);
                if let Some(body) = else_body {
                    self.node(body);
                }
                self.redirects(redirects);
            }
            NodeKind::While {
                condition,
                body,
                redirects,
            }
            | NodeKind::Until {
                condition,
                body,
                redirects,
            } => {
                self.node(condition);
                self.node(body);
                self.redirects(redirects);
            }
            NodeKind::For {
                words,
                body,
                redirects,
                ..
            }
            | NodeKind::Select {
                words,
                body,
                redirects,
                ..
            } => {
                self.unknown("a loop sets a variable");
                for word in words.iter().flatten() {
                    self.word(word);
                }
                self.node(body);
                self.redirects(redirects);
            }
            NodeKind::Case {
                word,
                patterns,
                redirects,
            } => {
                self.word(word);
                for case in patterns {
                    for pattern in &case.patterns {
                        self.word(pattern);
                    }
                    if let Some(body) = &case.body {
                        self.node(body);
                    }
                }
                self.redirects(redirects);
            }
            _ => self.unjudged(node),
        }
    }

    /// What no narrow rule allows, whatever it holds.
    fn unjudged(&mut self, node: &Node) {
        match &node.kind {
            NodeKind::ForArith {
                body, redirects, ..
            } => {
                self.unknown("a loop evaluates an expression");
                self.node(body);
                self.redirects(redirects);
            }
            NodeKind::Function { body, .. } => {
                self.unknown("a function gives a name another meaning");
                self.node(body);
            }
            NodeKind::Coproc { command, .. } => {
                self.unknown("a coprocess runs beside the command");
                self.node(command);
            }
            NodeKind::ConditionalExpr { redirects, .. } => {
                self.unknown("`[[` evaluates its operands");
                self.redirects(redirects);
            }
            NodeKind::ArithmeticCommand { redirects, .. } => {
                self.unknown("`((` evaluates its operands");
                self.redirects(redirects);
            }
            _ => self.unknown("it holds something that is not understood"),
        }
    }

    fn simple(&mut self, assignments: &[Node], words: &[Node], redirects: &[Node]) {
        let set: Vec<String> = assignments.iter().map(|n| self.assignment(n)).collect();
        let words: Vec<String> = words.iter().map(|n| self.word(n).text).collect();
        let stdin = self.redirects(redirects);
        let part = (!words.is_empty()).then(|| self.part(&words, stdin.as_deref(), self.depth));
        let part = match (set.is_empty(), part) {
            (true, None) => return,
            (true, Some(part)) => part,
            (false, part) => Part {
                text: word::join(&[set.as_slice(), &words].concat()),
                exact: word::join_quoted(&[set.as_slice(), &words].concat()),
                words: [set.as_slice(), &words].concat(),
                guard: Some("it sets variables, which can change what commands do".into()),
                inner: part
                    .map(|part| Inner { part, sure: true })
                    .into_iter()
                    .collect(),
            },
        };
        self.script.parts.push(part);
    }

    /// Reads an assignment. Arrays are not taken apart, what they substitute
    /// is.
    fn assignment(&mut self, node: &Node) -> String {
        let NodeKind::Word { value, parts, .. } = &node.kind else {
            self.unknown("an assignment is not understood");
            return HOLE.to_string();
        };
        if !value.contains("=(") && !value.contains('[') {
            return self.word(node).text;
        }
        self.unknown("it sets an array");
        for part in parts {
            if let NodeKind::CommandSubstitution { command, .. }
            | NodeKind::ProcessSubstitution { command, .. } = &part.kind
            {
                self.node(command);
            }
        }
        HOLE.to_string()
    }

    /// Makes a part of the words of a simple command, with what is behind it.
    fn part(&mut self, words: &[String], stdin: Option<&str>, depth: usize) -> Part {
        let first = words[0].as_str();
        let mut part = Part {
            text: word::join(words),
            exact: word::join_quoted(words),
            words: words.to_vec(),
            guard: None,
            inner: Vec::new(),
        };
        if first.is_empty() || first.contains(|c: char| c == HOLE || c.is_whitespace()) {
            part.guard = Some("the name of the command is not known".into());
            part.inner.push(Inner {
                part: Part::unknown("a computed command"),
                sure: false,
            });
            return part;
        }
        let base = base_name(first);
        self.moves |= MOVERS.contains(&base);
        if base != first {
            let same = [&[base.to_owned()], &words[1..]].concat();
            part.inner.push(Inner {
                part: bare(&same),
                sure: true,
            });
        }
        let Some(found) = wrap::look(base, &words[1..], stdin) else {
            return part;
        };
        part.guard = found
            .guard
            .map(|why| format!("`{}` {why}", wrap::shown(base)));
        for behind in found.behind {
            self.behind(behind, depth, &mut part.inner);
        }
        part
    }

    fn behind(&mut self, behind: Behind, depth: usize, inner: &mut Vec<Inner>) {
        let cost = match &behind {
            Behind::Words(words) => words.len(),
            Behind::Somewhere(words) => words.len() * words.len().min(MAX_CANDIDATES),
            // Whatever it takes, text is not made of more words than bytes.
            Behind::Script(text) => text.len() / 2,
            Behind::Unknown => 0,
        };
        let left = self
            .hidden_words
            .checked_sub(cost)
            .filter(|_| depth < MAX_NESTING);
        let sure = match behind {
            _ if left.is_none() => Err("it nests too many commands".to_owned()),
            Behind::Unknown => Err("it runs what is not known here".into()),
            Behind::Words(words) if words.is_empty() => Ok(Vec::new()),
            Behind::Words(words) => {
                self.hidden_words -= cost;
                Ok(vec![self.part(&words, None, depth + 1)])
            }
            Behind::Script(text) if text.contains(HOLE) => Err("it runs computed text".into()),
            Behind::Script(text) => {
                self.hidden_words -= cost;
                self.nested(&text, depth + 1)
            }
            Behind::Somewhere(words) => {
                self.hidden_words -= cost;
                let starts = 0..words.len().min(MAX_CANDIDATES);
                inner.extend(starts.map(|i| Inner {
                    part: bare(&words[i..]),
                    sure: false,
                }));
                if words.len() > MAX_CANDIDATES || words.iter().any(|w| w.contains(HOLE)) {
                    Err("it runs what is not known here".to_owned())
                } else {
                    Ok(Vec::new())
                }
            }
        };
        match sure {
            Ok(parts) => inner.extend(parts.into_iter().map(|part| Inner { part, sure: true })),
            Err(reason) => {
                let part = Part::unknown(reason);
                inner.push(Inner { part, sure: false });
            }
        }
    }

    /// Collects files, and yields what a here-document feeds the command if it
    /// is known.
    fn redirects(&mut self, redirects: &[Node]) -> Option<String> {
        let mut stdin = None;
        for redirect in redirects {
            match &redirect.kind {
                NodeKind::Redirect {
                    op, target, varfd, ..
                } => {
                    if varfd.is_some() {
                        self.unknown("a redirection sets a variable");
                    }
                    let target = self.word(target);
                    if op == "<<<" {
                        stdin = Some(target.text);
                    } else {
                        self.file(op, target);
                    }
                }
                NodeKind::HereDoc {
                    delimiter,
                    content,
                    quoted,
                    complete,
                    ..
                } => {
                    // Where odd delimiters end is read differently by shells
                    // and the parser: `<<E[x>f` writes `f`.
                    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
                    if !complete || !delimiter.chars().all(plain) {
                        self.unknown("a here-document has no certain end");
                    }
                    stdin = Some(if *quoted {
                        content.clone()
                    } else {
                        self.here_doc(content)
                    });
                }
                _ => self.unknown("a redirection is not understood"),
            }
        }
        stdin
    }

    /// Reads an unquoted here-document: like a double-quoted word, but for
    /// quotes, which mean nothing in it.
    fn here_doc(&mut self, content: &str) -> String {
        if !content.contains(['$', '`', '\\']) {
            return content.to_owned();
        }
        let parsed = (!content.contains('"'))
            .then(|| rable::parse(&format!(": \"{content}\""), false).ok())
            .flatten();
        if let Some(
            [
                Node {
                    kind: NodeKind::Command { words, .. },
                    ..
                },
            ],
        ) = parsed.as_deref()
            && let [_, word] = words.as_slice()
        {
            return self.word(word).text;
        }
        self.unknown("a here-document is not understood");
        HOLE.to_string()
    }

    fn file(&mut self, op: &str, target: Word) {
        if matches!(op, ">&-" | "<&-") {
            return;
        }
        let duplicate = matches!(op, ">&" | "<&");
        let is_descriptor = target
            .text
            .trim_end_matches('-')
            .bytes()
            .all(|b| b.is_ascii_digit());
        if duplicate && is_descriptor && !target.text.is_empty() {
            return;
        }
        let (read, write) = match op {
            "<" => (true, false),
            "<>" => (true, true),
            ">" | ">>" | ">|" | "&>" | "&>>" | ">&" => (false, true),
            _ => return self.unknown("a redirection is not understood"),
        };
        let known = !target.text.contains(HOLE) && !target.text.is_empty();
        for (wanted, write) in [(read, false), (write, true)] {
            if wanted {
                self.script.files.push(FileUse {
                    path: known.then(|| target.text.clone()),
                    tilde: target.tilde,
                    moved: false,
                    write,
                });
            }
        }
    }
}

/// A part that is not looked behind.
fn bare(words: &[String]) -> Part {
    Part {
        text: word::join(words),
        exact: word::join_quoted(words),
        words: words.to_vec(),
        guard: None,
        inner: Vec::new(),
    }
}
