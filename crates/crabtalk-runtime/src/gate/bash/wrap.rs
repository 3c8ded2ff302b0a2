//! Knows the programs that run other programs, or change what later commands
//! mean.
//!
//! Invariant: such a command is allowed by a rule that spells it out, never by
//! a wildcard after its name; what it runs is found where it can be, so that
//! refusing rules reach it.

mod tables;

use crate::gate::pattern::{HOLE, Holes, command};
use tables::{EDITORS, INTERPRETERS, LEADING, SHELLS, STATEFUL, VALUE_OPTIONS, find_runner};

/// What is behind a command.
pub(super) struct Found {
    /// Why a wildcard does not allow it; continues the program's name.
    pub(super) guard: Option<String>,
    /// What it runs.
    pub(super) behind: Vec<Behind>,
}

/// Something that a command runs.
pub(super) enum Behind {
    /// A command of these words.
    Words(Vec<String>),
    /// A command that begins at one of these words.
    Somewhere(Vec<String>),
    /// Shell text.
    Script(String),
    /// Something that is not seen here.
    Unknown,
}

/// A program's name without its folder.
pub(in crate::gate) fn base_name(name: &str) -> &str {
    name.rsplit('/')
        .find(|part| !part.is_empty())
        .unwrap_or(name)
}

/// A name fit for a message.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Looks behind a command. `stdin` is what a here-document feeds it.
pub(super) fn look(base: &str, args: &[String], stdin: Option<&str>) -> Option<Found> {
    if SHELLS.contains(&base) {
        return guarded("runs a script", vec![shell(args, stdin)]);
    }
    if STATEFUL.contains(&base) {
        return guarded("changes what later commands do", stateful(base, args));
    }
    if LEADING.contains(&base) {
        return guarded("runs another command", leading(base, args));
    }
    if EDITORS.contains(&base) {
        return guarded("can run any command", vec![Behind::Unknown]);
    }
    let is_interpreter = |(name, _): &&(&str, &str)| {
        base.strip_prefix(name)
            .is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    };
    if let Some((_, letters)) = INTERPRETERS.iter().find(is_interpreter) {
        return interpreter(letters, args);
    }
    match base {
        "git" => git(args),
        "find" => find(args),
        "awk" | "gawk" | "mawk" | "nawk" => awk(args),
        "sed" | "gsed" => sed(args),
        "make" | "gmake" => dangerous_word(args, |w| w.contains('=') && !w.starts_with('-'))
            .or_else(|| runner(base, args)),
        "less" | "more" | "man" => {
            dangerous_word(args, |w| w.starts_with('+')).or_else(|| runner(base, args))
        }
        "test" | "[" | "printf" => match evaluated(args).collect::<Vec<_>>() {
            behind if behind.is_empty() => runner(base, args),
            behind => guarded("evaluates what it is given", behind),
        },
        _ => runner(base, args),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape that `look` returns")]
fn guarded(why: &str, behind: Vec<Behind>) -> Option<Found> {
    Some(Found {
        guard: Some(why.to_owned()),
        behind,
    })
}

fn unknown(why: &str) -> Option<Found> {
    guarded(why, vec![Behind::Unknown])
}

fn dangerous_word(args: &[String], is: impl Fn(&str) -> bool) -> Option<Found> {
    let word = args.iter().find(|w| is(w) || w.starts_with(HOLE))?;
    unknown(&format!("can run other commands with `{}`", visible(word)))
}

/// A word for a message, holes shown as dots.
fn visible(word: &str) -> String {
    shown(word).replace(HOLE, "...")
}

fn shell(args: &[String], stdin: Option<&str>) -> Behind {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg.contains(HOLE) {
            return Behind::Unknown;
        }
        if arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c') {
            // `-c` may be followed by options of its own before the text.
            let text = rest.find(|a| !a.starts_with(['-', '+']));
            return text.map_or(Behind::Unknown, |t| Behind::Script(t.clone()));
        }
        if arg != "-s" && !arg.starts_with(['-', '+']) {
            return Behind::Unknown;
        }
    }
    stdin.map_or(Behind::Unknown, |text| Behind::Script(text.to_owned()))
}

/// What a builtin runs: text, a program under another name, or what stands in
/// the subscript of a variable.
fn stateful(base: &str, args: &[String]) -> Vec<Behind> {
    let script = |text: &String| Behind::Script(text.clone());
    let mut behind: Vec<Behind> = match base {
        "eval" => vec![Behind::Script(args.join(" "))],
        "trap" => args
            .iter()
            .filter(|a| !a.starts_with('-'))
            .take(1)
            .map(script)
            .collect(),
        "alias" => {
            let meanings = args.iter().filter_map(|a| a.split_once('='));
            meanings
                .map(|(_, text)| Behind::Script(text.to_owned()))
                .collect()
        }
        // `-p FILE NAME`: the name means that file from now on.
        "hash" => {
            let programs = args.iter().flat_map(|file| as_program(file));
            let renames = args
                .iter()
                .any(|arg| arg.starts_with('-') && arg.contains('p'));
            programs.chain(renames.then_some(Behind::Unknown)).collect()
        }
        "mapfile" | "readarray" | "complete" | "compgen" => {
            let texts = args.iter().filter(|a| !a.starts_with('-'));
            let texts = texts.flat_map(|text| [script(text)].into_iter().chain(as_program(text)));
            texts.chain([Behind::Unknown]).collect()
        }
        "bind" => {
            let commands = args.iter().filter_map(|a| a.split_once(':'));
            commands
                .map(|(_, text)| Behind::Script(text.trim().to_owned()))
                .collect()
        }
        "jobs" => vec![Behind::Words(
            args.iter()
                .skip_while(|a| a.starts_with('-'))
                .cloned()
                .collect(),
        )],
        "source" | "." | "enable" | "fc" => vec![Behind::Unknown],
        _ => Vec::new(),
    };
    behind.extend(evaluated(args));
    behind
}

/// A file that may run with arguments that are not seen here.
fn as_program(text: &str) -> [Behind; 1] {
    let words = text.split_whitespace().map(str::to_owned);
    [Behind::Words(words.chain([HOLE.to_string()]).collect())]
}

/// What stands in the subscripts of variables is expanded once more.
fn evaluated(args: &[String]) -> impl Iterator<Item = Behind> {
    let runs = |arg: &&String| arg.contains("$(") || arg.contains('`');
    args.iter()
        .filter(runs)
        .map(|arg| Behind::Script(format!(": {arg}")))
}

/// A command that begins with another one's name after options.
fn leading(base: &str, args: &[String]) -> Vec<Behind> {
    let takes_value = VALUE_OPTIONS
        .iter()
        .find(|(name, _)| *name == base)
        .map_or("", |(_, o)| o);
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let is_assignment = base == "env" && arg.contains('=');
        if !arg.starts_with('-') && !is_assignment {
            break;
        }
        at += 1;
        if arg == "--" {
            break;
        }
        // `-n 5` takes the next word, `-n5` does not.
        let alone = arg.len() == 2 && arg.chars().last().is_some_and(|c| takes_value.contains(c));
        at += usize::from(alone);
    }
    // `timeout 5 cmd`, `chroot DIR cmd`, `flock FILE cmd`, `taskset MASK cmd`.
    at += usize::from(matches!(
        base,
        "timeout" | "chroot" | "flock" | "taskset" | "chrt" | "setarch" | "ssh" | "mosh" | "su"
    ));
    let mut command = args.get(at..).unwrap_or_default().to_vec();
    if matches!(base, "xargs" | "parallel") && !command.is_empty() {
        command.push(HOLE.to_string());
    }
    let mut behind = Vec::new();
    if matches!(
        base,
        "ssh" | "mosh" | "watch" | "su" | "runuser" | "script" | "flock" | "env"
    ) {
        // These join their words, or one of them, to shell text.
        behind.extend(
            args.iter()
                .filter(|a| a.contains(' '))
                .cloned()
                .map(Behind::Script),
        );
    }
    if command.is_empty()
        || matches!(
            base,
            "at" | "batch" | "crontab" | "parallel" | "tmux" | "screen"
        )
    {
        behind.push(Behind::Unknown);
    }
    behind.push(Behind::Words(command));
    behind.push(Behind::Somewhere(args.to_vec()));
    behind
}

/// An interpreter runs its first plain argument as a file; anything else is
/// program text, or standard input.
fn interpreter(letters: &str, args: &[String]) -> Option<Found> {
    const HARMLESS: [&str; 5] = ["--version", "-V", "-v", "--help", "-h"];
    if let [only] = args
        && HARMLESS.contains(&only.as_str())
    {
        return None;
    }
    for arg in args {
        if arg.starts_with(HOLE) || arg == "-" {
            break;
        }
        if !arg.starts_with('-') {
            return None;
        }
        // `python -m module` names what it runs, like a file does.
        if arg == "-m" && letters == "c" {
            return None;
        }
        if arg.starts_with("--") || arg.chars().any(|c| letters.contains(c) || c == HOLE) {
            break;
        }
    }
    unknown("runs program text")
}

fn git(args: &[String]) -> Option<Found> {
    const RUNS: [&str; 5] = ["-c", "--config-env*", "--exec-path=*", "--git-dir*", "-C*"];
    let mut at = 0;
    let mut why = None;
    while let Some(arg) = args.get(at).filter(|a| a.starts_with(['-', HOLE])) {
        let dangerous = RUNS.iter().any(|d| command(d, arg, Holes::Maybe));
        // Abbreviations are not accepted here, but attached values are.
        if dangerous || arg.starts_with("-c") {
            why.get_or_insert_with(|| format!("can run other commands with `{}`", visible(arg)));
        }
        let takes_next = matches!(
            arg.as_str(),
            "-c" | "-C"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--config-env"
                | "--super-prefix"
        );
        at += 1 + usize::from(takes_next);
    }
    let rest = args.get(at..).unwrap_or_default();
    let sub = rest.first().map_or("", String::as_str);
    let hidden = tables::GIT.iter().find(|(name, words)| {
        *name == sub
            && (words.is_empty()
                || rest[1..]
                    .iter()
                    .any(|arg| words.iter().any(|w| option_is(arg, w))))
    });
    if hidden.is_some() {
        why.get_or_insert_with(|| format!("can run other commands with `{sub}`"));
    }
    if why.is_none() && at == 0 {
        return None;
    }
    let mut behind = Vec::new();
    if at > 0 {
        behind.push(Behind::Words([&["git".to_owned()], rest].concat()));
    }
    if why.is_some() {
        behind.push(Behind::Unknown);
    }
    Some(Found { guard: why, behind })
}

fn find(args: &[String]) -> Option<Found> {
    const RUNS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
    /// Nobody writes more; each copies the words after it.
    const MAX_RUNS: usize = 16;
    const WRITES: [&str; 5] = ["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"];
    let may_be = |arg: &str, list: &[&str]| list.iter().any(|d| command(d, arg, Holes::Maybe));
    let mut behind = Vec::new();
    let mut why = None;
    for (i, arg) in args.iter().enumerate() {
        let runs = may_be(arg, &RUNS);
        if !runs && !may_be(arg, &WRITES) {
            continue;
        }
        why.get_or_insert_with(|| format!("can run or write with `{}`", visible(arg)));
        if behind.len() == MAX_RUNS {
            behind.push(Behind::Unknown);
            break;
        }
        if arg.contains(HOLE) {
            behind.push(Behind::Unknown);
        } else if runs {
            let command = args[i + 1..].iter().take_while(|w| *w != ";" && *w != "+");
            let known = |w: &String| {
                if w == "{}" {
                    HOLE.to_string()
                } else {
                    w.clone()
                }
            };
            behind.push(Behind::Words(command.map(known).collect()));
        }
    }
    why.map(|why| Found {
        guard: Some(why),
        behind,
    })
}

/// An awk program that only selects and prints runs nothing.
fn awk(args: &[String]) -> Option<Found> {
    let risky = |w: &str| {
        w.contains(['|', '>', '@', HOLE])
            || ["system", "getline", "close", "print >"]
                .iter()
                .any(|f| w.contains(f))
            || ["-f", "-e", "-i", "-l", "-E", "--"]
                .iter()
                .any(|o| w.starts_with(o))
    };
    let word = args.iter().find(|w| risky(w))?;
    unknown(&format!("can run other commands with `{}`", visible(word)))
}

/// A sed script is harmless when it is one of the usual short forms.
fn sed(args: &[String]) -> Option<Found> {
    const FLAGS: [&str; 14] = [
        "-n", "-E", "-r", "-u", "-s", "-z", "-nE", "-En", "-nr", "-rn", "--posix", "--debug",
        "--quiet", "--silent",
    ];
    let mut has_script = args.iter().any(|arg| arg == "-e");
    let mut script_next = false;
    for arg in args {
        let harmless = if std::mem::take(&mut script_next) {
            plain_sed(arg)
        } else if arg == "-e" {
            script_next = true;
            true
        } else if arg.starts_with(['-', HOLE]) && arg != "-" {
            FLAGS.contains(&arg.as_str())
        } else if !has_script {
            has_script = true;
            plain_sed(arg)
        } else {
            true
        };
        if !harmless {
            return unknown(&format!("can run or write with `{}`", visible(arg)));
        }
    }
    None
}

/// `10,20p`, `$d`, `/text/p`, `s/a/b/g`, and lists of these.
fn plain_sed(script: &str) -> bool {
    let mut rest = script.trim();
    if rest.contains(HOLE) {
        return false;
    }
    while !rest.is_empty() {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        for _ in 0..2 {
            rest = after_address(rest).trim_start_matches([' ', ',', '!', '~', '+']);
        }
        let mut chars = rest.chars();
        rest = match chars.next() {
            None => return true,
            Some('p' | 'd' | 'q' | '=') => chars.as_str(),
            Some(which @ ('s' | 'y')) => match chars.next() {
                Some(mark) if !mark.is_alphanumeric() && !" \n\\;".contains(mark) => {
                    let tail = after_mark(chars.as_str(), mark).and_then(|t| after_mark(t, mark));
                    match tail {
                        Some(tail) if which == 's' => tail.trim_start_matches(|c: char| {
                            "gpiIM".contains(c) || c.is_ascii_digit()
                        }),
                        Some(tail) => tail,
                        None => return false,
                    }
                }
                _ => return false,
            },
            Some(_) => return false,
        };
        if !rest.is_empty() && !rest.starts_with([';', '\n', ' ']) {
            return false;
        }
        if rest.starts_with(' ') && !rest.trim_start().starts_with([';', '\n']) {
            return rest.trim().is_empty();
        }
    }
    true
}

fn after_address(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('/') {
        return after_mark(rest, '/').unwrap_or(text);
    }
    text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$')
}

/// What follows the next `mark` that no backslash escapes.
fn after_mark(text: &str, mark: char) -> Option<&str> {
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        if c == mark && !escaped {
            return Some(&text[i + c.len_utf8()..]);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

/// Programs with a few options that run something.
fn runner(base: &str, args: &[String]) -> Option<Found> {
    let row = find_runner(base)?;
    let word = args.iter().enumerate().find(|(i, arg)| {
        let bundle = arg
            .strip_prefix('-')
            .filter(|b| !b.starts_with('-'))
            .or_else(|| {
                // `tar xzf` bundles its options without a dash.
                (row.bundles && *i == 0).then_some(arg.as_str())
            });
        bundle.is_some_and(|b| b.contains(|c: char| row.short.contains(c) || c == HOLE))
            || row.options.iter().any(|option| option_is(arg, option))
            || (arg.starts_with(HOLE) && !row.options.is_empty())
    });
    let (_, word) = word?;
    unknown(&format!("can run or write with `{}`", visible(word)))
}

/// Whether an argument is, abbreviates or may be an option, value attached or
/// not.
fn option_is(arg: &str, option: &str) -> bool {
    let name = arg.split_once('=').map_or(arg, |(name, _)| name);
    if name.contains(HOLE) {
        return command(&format!("{option}*"), name, Holes::Maybe);
    }
    if option.starts_with("--") {
        return name.len() > 3 && name.starts_with("--") && option.starts_with(name);
    }
    if option.starts_with('-') && option.len() == 2 {
        return arg.starts_with(option);
    }
    name == option
}
