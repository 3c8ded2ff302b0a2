//! Commands of all of bash's syntax, by a seed.

/// Random numbers that come again with their seed (SplitMix64).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below an usize")
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// A word for the print alone: quotes, globs, odd characters.
    pub(super) fn quoted_word(&mut self) -> String {
        let mut word = String::new();
        for _ in 0..1 + self.below(3) {
            let inner: String = (0..self.below(5)).map(|_| self.one(CHARACTERS)).collect();
            match self.below(4) {
                0 => word.push_str(&format!("'{}'", inner.replace('\'', ""))),
                1 => word.push_str(&format!("\"{inner}\"")),
                2 => word.push_str(self.one(&["*", "?", "[ab]", "sub/", "a", "--x=", "~", "#"])),
                _ => word.push_str(&inner),
            }
        }
        word
    }
}

/// Characters that words are made of.
const CHARACTERS: &[&str] = &[
    "a",
    "b",
    "-",
    "--",
    "=",
    ".",
    "/",
    " ",
    "\t",
    "\n",
    "*",
    "?",
    "[",
    "]",
    "{",
    "}",
    ",",
    "~",
    "#",
    "!",
    "^",
    "@",
    "%",
    "+",
    ":",
    "(",
    ")",
    "<",
    ">",
    "|",
    "&",
    ";",
    "$",
    "`",
    "\\",
    "\\\\",
    "\\\"",
    "é",
    "日",
    "'",
    "1",
    "..",
    "$x",
    "\u{1f980}",
];

/// Templates of commands: `A` a command, `W` a word, `T` text, `E` an end mark.
const COMMANDS: &[&str] = &[
    "A | A",
    "A && A",
    "A || A",
    "A; A",
    "A\nA",
    "A & A",
    "A |& A",
    "A &",
    "( A )",
    "{ A; }",
    "if A; then A; fi",
    "while A; do A; break; done",
    "until A; do A; done",
    "for i in W W; do A; done",
    "for ((i=0;i<1;i++)); do A; done",
    "case W in W) A;; *) A;; esac",
    "select i in W; do A; done",
    "f() { A; }; f",
    "function f { A; }; f",
    "[[ W ]] && A",
    "[[ W -eq W ]]",
    "(( W ))",
    "coproc A",
    "coproc N { A; }",
    "time A",
    "! A",
    "A <<E\nT\nE",
    "A <<'E'\nT\nE\nA",
    "A <<-E\n\tT\n\tE",
    "A <<E \nT\nE \nA",
    "A <<E <<F\nT\nE\nT\nF",
    "A <<\"E F\"\nT\nE F",
    "A <<E\nT\nE\nE",
    "A <<\\E\nT\nE",
    "A # A",
    "A # W\nA",
    "A > W",
    "A >> W",
    "A < W",
    "A <<< W",
    "A 2>&1",
    "A >/dev/null",
    "A &>/dev/null",
    "A 2>W",
    "A >| W",
    "A <> W",
    "A {x}>W",
    "X=W A",
    "X=W",
    "A W",
    "A W W",
    "W A",
    "trap 'A' EXIT; A",
    "eval 'A'",
    "A \\\nW",
    "\\\nA",
    ";A",
    "A;;",
    "alias a='A'; A",
    "exec A",
    "A 3>&1 >W",
    "A >&W",
];

/// Templates of words.
const WORDS: &[&str] = &[
    "a",
    "--x",
    "-x",
    "W=W",
    "'T'",
    "\"T\"",
    "$'T'",
    "$\"T\"",
    "$(A)",
    "`A`",
    "\"$(A)\"",
    "\"`A`\"",
    "$((W))",
    "$[W]",
    "${x:-W}",
    "${x:=W}",
    "${x@P}",
    "${x/W/W}",
    "${!x}",
    "${x[$(A)]}",
    "{W,W}",
    "{1..W}",
    "{a..$(A)}",
    "{W,<(A)}",
    "<(A)",
    ">(A)",
    "*",
    "?",
    "[a-c]",
    "[W]",
    "a*",
    "*W",
    "~",
    "~/x",
    "~W",
    "\\W",
    "\\",
    "WW",
    "a#W",
    "#W",
    "!W",
    "!(W)",
    "@(W|W)",
    "''",
    "\"\"",
    "$x",
    "$@",
    "$",
    "a[$(A)]",
    "a\\\nW",
    "--x=W",
    "'a'W",
    "\"a\"W",
    "`# T\nA`",
    "`\\`A\\``",
    "$(A # T\n)",
    "$'\\x41'",
    "${ A; }",
];

/// What the simple commands are.
const SIMPLE: &[&str] = &[
    "git status",
    "git status -s",
    "ls",
    "ls -l",
    "cat a",
    "grep x a",
    "show",
    "show a",
    "sort a",
    "echo a",
    "printf '%s' a",
    "cargo test",
    "[ a = a ]",
    "cd sub",
    "env show",
    "canary",
    "touch O",
    "./canary",
    "rm a",
    "sh -c canary",
    "git status O",
    "test a",
];

/// What is put anywhere into a text.
const NOISE: &[&str] = &[
    "'",
    "\"",
    "`",
    "\\",
    "$",
    "(",
    ")",
    "{",
    "}",
    " ",
    "\n",
    "\t",
    "\r",
    ";",
    "&",
    "|",
    "<",
    ">",
    "#",
    "!",
    "~",
    "*",
    "[",
    "]",
    "=",
    "\u{a0}",
    "\u{200b}",
    "\0",
    "\u{1b}",
    "canary",
    "$(canary)",
    "`canary`",
    "E",
    "\\\n",
];

/// A command of any syntax.
pub(super) fn command(dice: &mut Dice) -> String {
    let depth = 1 + dice.below(3);
    let mut text = expand(dice, "A", depth);
    for _ in 0..[0, 0, 0, 1, 1, 2, 4][dice.below(7)] {
        let at = text.floor_char_boundary(dice.below(text.len() + 1));
        match dice.below(3) {
            0 | 1 => text.insert_str(at, dice.one(NOISE)),
            _ if at < text.len() => drop(text.remove(at)),
            _ => {}
        }
    }
    text
}

/// Replaces the letters of a template.
fn expand(dice: &mut Dice, template: &str, depth: usize) -> String {
    let mut out = String::new();
    for c in template.chars() {
        match c {
            'A' if depth == 0 => out.push_str(dice.one(SIMPLE)),
            'A' if dice.below(3) == 0 => out.push_str(dice.one(SIMPLE)),
            'A' => {
                let template = dice.one(COMMANDS);
                out.push_str(&expand(dice, template, depth - 1));
            }
            'W' if depth == 0 => out.push_str(dice.one(&["a", "O", "b.rs", "sub", "-x", "''"])),
            'W' => {
                let template = dice.one(WORDS);
                out.push_str(&expand(dice, template, depth - 1));
            }
            'T' => out.extend((0..dice.below(6)).map(|_| dice.one(CHARACTERS))),
            c => out.push(c),
        }
    }
    out
}

/// Programs that the rules name, and subcommands.
const READERS: &[&str] = &[
    "git log",
    "git status",
    "git diff",
    "git show",
    "git grep",
    "git ls-files",
    "git blame",
    "git rev-parse",
    "git ls-remote",
    "git branch --list",
    "git log -p",
    "sort",
    "uniq",
    "find .",
    "find",
    "sed",
    "awk",
    "shuf",
    "make",
    "grep",
    "less",
    "python3",
    "perl",
    "tar -t",
    "tar t",
    "tar -tf",
    "xargs",
    "env",
    "cat",
    "head",
    "date",
    "diff",
    "split",
    "tee",
    "dd",
    "let",
    "hash",
    "printf",
    "test",
    "file",
    "sqlite3",
    "man",
    "gcc -fsyntax-only",
    "tree",
];

/// Options and operands, dangerous ones among them.
const ARGUMENTS: &[&str] = &[
    "a",
    "b.rs",
    "sub",
    "*",
    "*.rs",
    "-*",
    "O",
    "./canary",
    "canary",
    "HEAD",
    "--",
    "-",
    "x",
    "1",
    ".",
    "-n",
    "-o",
    "-e",
    "-c",
    "-f",
    "-i",
    "-x",
    "-p",
    "-r",
    "-s",
    "-u",
    "-w",
    "-z",
    "-O",
    "-S",
    "-U",
    "-C",
    "-I",
    "-F",
    "-T",
    "-W",
    "-m",
    "-k",
    "-t",
    "-v",
    "-oO",
    "-nO./canary",
    "-O./canary",
    "-fO",
    "-iO",
    "--output=O",
    "--output",
    "--o=O",
    "--outp=O",
    "--ou",
    "--upload-pack=./canary",
    "--u=./canary",
    "--exec=./canary",
    "--open-files-in-pager=./canary",
    "--ext-diff",
    "--textconv",
    "--paginate",
    "--compress-program=./canary",
    "--comp=./canary",
    "-delete",
    "-exec",
    "-fprint",
    "-fls",
    "-ok",
    ";",
    "{}",
    "+",
    "--filter=./canary",
    "--f=./canary",
    "--eval=$(./canary)",
    "--f=O",
    "--makefile=O",
    "SHELL=./canary",
    "--to-command=./canary",
    "--checkpoint-action=exec=./canary",
    "--checkpoint=1",
    "--use-compress-program=./canary",
    "-I./canary",
    "BEGIN{system(\"./canary\")}",
    "BEGIN{print > \"O\"}",
    "BEGIN{\"./canary\" | getline}",
    "w O",
    "1e ./canary",
    "s/a/b/w O",
    "s/a/b/e",
    "p",
    "s/a/b/g",
    "$!d",
    "import os; os.system('./canary')",
    "exec",
    "print 1",
    ":memory:",
    ".shell ./canary",
    "--in-place",
    "of=O",
    "a[$(./canary)]=1",
    "+!./canary",
];

/// What scripts of sed and awk are made of.
const SCRIPT: &[&str] = &[
    "s",
    "s/",
    "s|",
    "s,",
    "y/",
    "/",
    "|",
    ",",
    "#",
    "[",
    "]",
    "[^",
    "[]",
    "[[:alpha:]",
    "[:",
    "\\",
    "\\/",
    "\n",
    ";",
    "a",
    ".",
    "*",
    "^",
    "$",
    "&",
    "1",
    "g",
    "p",
    "i",
    "I",
    "d",
    "q",
    "w O",
    "w O\n",
    "e",
    "e\n#",
    "e ./canary",
    "r a",
    "W O",
    "{",
    "}",
    "!",
    "~",
    "+",
    " ",
    "print",
    "BEGIN{",
    "\"O\"",
    ">",
    "||",
    "getline",
    "system(\"./canary\")",
    "@",
    "ARGV[1]=",
];

/// A script for one of them.
fn script(dice: &mut Dice) -> String {
    let text: String = (0..2 + dice.below(12)).map(|_| dice.one(SCRIPT)).collect();
    match dice.below(3) {
        // A whole exchange, with something behind it.
        0 => format!("s|{}|{};s,|{},a,", dice.one(SCRIPT), dice.one(SCRIPT), text),
        _ => text,
    }
}

/// A program with options, to be run for real.
pub(super) fn options(dice: &mut Dice) -> String {
    let mut text = String::new();
    for at in 0..=[0, 0, 0, 1][dice.below(4)] {
        if at > 0 {
            text.push_str(dice.one(&[" | ", "; ", " && ", " || "]));
        }
        let reader = dice.one(READERS);
        text.push_str(reader);
        let scripted = matches!(reader, "sed" | "awk");
        for _ in 0..dice.below(5) {
            let mut word = match scripted && dice.below(2) == 0 {
                true => script(dice),
                false => dice.one(ARGUMENTS).to_owned(),
            };
            // Abbreviations and bundles.
            if word.starts_with("--") && dice.below(4) == 0 {
                let name = word.find('=').unwrap_or(word.len());
                let cut = 3.max(dice.below(name.max(1)));
                if cut < name {
                    word.replace_range(cut..name, "");
                }
            }
            if word.starts_with('-') && !word.starts_with("--") && dice.below(4) == 0 {
                word.push_str(dice.one(&["n", "o", "O", "e", "f", "x", "u", "1"]));
            }
            let glob = word.contains('*') && dice.below(2) == 0;
            let plain = |c: char| c.is_ascii_alphanumeric() || "-=./_".contains(c);
            text.push(' ');
            if glob || word.chars().all(plain) {
                text.push_str(&word);
            } else {
                text.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
            }
        }
    }
    text
}
