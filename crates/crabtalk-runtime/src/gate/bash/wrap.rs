//! Knows the programs that run other programs, or change what later commands
//! mean.
//!
//! Invariant: such a command is allowed by a rule that spells it out, never by
//! a wildcard after its name; what it runs is found where it can be, so that
//! refusing rules reach it.

use crate::gate::options;
use crate::gate::pattern::{HOLE, Holes, command};
use crate::gate::plain::Word;
use crate::gate::programs::{self, Check, Kind, Program};

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

/// A name fit for a message.
pub(super) fn shown(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Looks behind a command. `stdin` is what a here-document feeds it.
pub(super) fn look(base: &str, args: &[String], stdin: Option<&str>) -> Option<Found> {
    let program = programs::find(base)?;
    match program.kind {
        Kind::Shell => return guarded("runs a script", vec![shell(args, stdin)]),
        Kind::Builtin => return guarded("changes what later commands do", stateful(base, args)),
        Kind::Wrapper => return guarded("runs another command", leading(program, base, args)),
        Kind::Editor => return unknown("can run any command"),
        Kind::Listed | Kind::Other => {}
    }
    if !program.program_text.is_empty() {
        return interpreter(&program.program_text, args);
    }
    if program.evaluates {
        let behind: Vec<Behind> = evaluated(args).collect();
        if !behind.is_empty() {
            return guarded("evaluates what it is given", behind);
        }
    }
    match program.check {
        Some(Check::Git) => git(program, args),
        Some(Check::Find) => find(args),
        Some(Check::Awk | Check::Sed) => text(program, args),
        _ => runner(program, args),
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
            // Whatever is written behind the new name becomes its arguments.
            let meanings = args.iter().filter_map(|a| a.split_once('='));
            let texts = meanings.map(|(_, text)| text.to_owned());
            texts
                .flat_map(|text| [script(&text)].into_iter().chain(as_program(&text)))
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
fn leading(program: &Program, base: &str, args: &[String]) -> Vec<Behind> {
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
        let alone = arg.len() == 2
            && arg
                .chars()
                .last()
                .is_some_and(|c| program.values.contains(c));
        at += usize::from(alone);
    }
    // `timeout 5 cmd`, `chroot DIR cmd`, `flock FILE cmd`, `taskset MASK cmd`.
    at += usize::from(program.operand_first);
    let mut command = args.get(at..).unwrap_or_default().to_vec();
    if program.adds_words && !command.is_empty() {
        command.push(HOLE.to_string());
    }
    let mut behind = Vec::new();
    if program.joins_words {
        let texts = args.iter().filter(|a| a.contains(' '));
        behind.extend(texts.cloned().map(Behind::Script));
    }
    if command.is_empty() || program.hides {
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

fn git(program: &Program, args: &[String]) -> Option<Found> {
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
    let runs = |row: &Program| {
        let mut options = row.runs.split_ascii_whitespace();
        options.any(|o| o == "*" || rest[1..].iter().any(|arg| option_is(arg, o)))
    };
    if program.subcommand(sub).is_some_and(runs) {
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

/// A program of awk or sed that is not known to be harmless.
fn text(program: &Program, args: &[String]) -> Option<Found> {
    let words: Vec<Word> = args.iter().map(|arg| Word::of(arg)).collect();
    // What only the shell knows may be an option.
    let loose = args.iter().find(|arg| arg.starts_with(HOLE)).cloned();
    let word = loose.or_else(|| options::check(program, &words, 0).err())?;
    unknown(&format!("can run or write with `{}`", visible(&word)))
}

/// Programs with a few options that run something.
fn runner(program: &Program, args: &[String]) -> Option<Found> {
    if program.runs.is_empty() && program.runs_letters.is_empty() && !program.runs_operands {
        return None;
    }
    let of_operand = |arg: &str| {
        program.runs_operands
            && (arg.starts_with(HOLE) || (!arg.starts_with('-') && !program.operand.admit(arg)))
    };
    let word = args.iter().enumerate().find(|(i, arg)| {
        let bundle = arg
            .strip_prefix('-')
            .filter(|b| !b.starts_with('-'))
            .or_else(|| {
                // `tar xzf` bundles its options without a dash.
                (program.bare_bundle && *i == 0).then_some(arg.as_str())
            });
        let risky = |c: char| program.runs_letters.contains(c) || c == HOLE;
        let mut options = program.runs.split_ascii_whitespace();
        bundle.is_some_and(|b| b.contains(risky))
            || options.any(|option| option_is(arg, option))
            || (arg.starts_with(HOLE) && !program.runs.is_empty())
            || of_operand(arg)
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
