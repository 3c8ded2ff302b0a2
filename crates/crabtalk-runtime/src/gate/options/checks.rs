//! Programs whose arguments are a language of their own.
//!
//! Invariant: what is not known in it is not harmless.

use super::Checked;
use crate::gate::plain::Word;
use crate::gate::programs::{Program, lists};

/// Fails with the first word that is not as it has to be.
fn all(words: impl IntoIterator<Item = String>, fine: impl Fn(&str) -> bool) -> Checked {
    match words.into_iter().find(|word| !fine(word)) {
        Some(word) => Err(word),
        None => Ok(()),
    }
}

fn texts(args: &[Word]) -> impl Iterator<Item = String> {
    args.iter().map(Word::text)
}

/// Operands that the row lets pass and the rule does not spell out.
fn operands(
    program: &Program,
    args: &[Word],
    spelled: usize,
) -> Result<impl Iterator<Item = String>, String> {
    let words = program
        .listed(args, spelled)?
        .words()
        .copied()
        .collect::<Vec<_>>();
    let words = words.into_iter().filter(move |(at, _)| *at >= spelled);
    Ok(words.map(|(_, word)| word.text()))
}

/// Words of `find` that take no value.
const FIND_TESTS: &str = "-L -P -H -print -print0 -empty -not -o -or -a -and -prune -depth -xdev \
    -mount -readable -writable -executable -ls -quit -true -false -daystart -nouser -nogroup \
    -noleaf -help --help -version --version -warn -nowarn -ignore_readdir_race";

/// Words of `find` that take one.
const FIND_VALUES: &str = "-name -iname -path -ipath -wholename -iwholename -type -xtype -size \
    -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -newermt -newerct -maxdepth \
    -mindepth -perm -user -group -uid -gid -regex -iregex -regextype -printf -inum -links \
    -samefile -lname -ilname -fstype -used";

pub(super) fn find(args: &[Word], spelled: usize) -> Checked {
    let mut words = args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let text = word.text();
        if word.has_glob() {
            return Err(text);
        }
        if lists(FIND_VALUES, &text) {
            match words.next() {
                Some((_, value)) if value.has_glob() => return Err(value.text()),
                _ => {}
            }
        } else if text.starts_with('-') && !lists(FIND_TESTS, &text) && at >= spelled {
            return Err(text);
        }
    }
    Ok(())
}

/// An awk program that only selects and prints.
pub(super) fn awk(program: &Program, args: &[Word], spelled: usize) -> Checked {
    const RUNS: [&str; 13] = [
        // What only the shell knows.
        "\u{ffff}",
        "system",
        "getline",
        "close",
        "fflush",
        "extension",
        "PROCINFO",
        "@",
        "\\\n",
        // Files that nobody judged, by names that the program puts together.
        "ARGV",
        "ARGC",
        "SYMTAB",
        "FUNCTAB",
    ];
    let rest = program.listed(args, spelled)?;
    let mut words = rest.words().map(|(_, word)| *word);
    if let Some(program) = words.next() {
        let text = program.text();
        let without = text.replace("||", "");
        let runs = RUNS.iter().any(|word| text.contains(word));
        if program.has_glob() || runs || without.contains(['|', '>']) {
            return Err(text);
        }
    }
    // GNU awk takes options behind the program too when it looks for them.
    all(words.map(Word::text), |word| {
        !word.starts_with('-') || word == "-"
    })
}

/// `+toolchain` is one that is installed.
pub(super) fn cargo(program: &Program, args: &[Word], spelled: usize) -> Checked {
    let checked = match args.first() {
        Some(word) if word.sure_start().starts_with('+') => {
            let spelled = spelled.checked_sub(1).ok_or_else(|| word.text())?;
            program.listed(&args[1..], spelled)
        }
        _ => program.listed(args, spelled),
    };
    checked.map(drop)
}

/// `host:file` runs a program for the connection.
pub(super) fn rsync(program: &Program, args: &[Word], spelled: usize) -> Checked {
    all(operands(program, args, spelled)?, |word| {
        let host = word.split('/').next().unwrap_or_default();
        !host.contains([':', '*', '?', '['])
    })
}

pub(super) fn tar(program: &Program, args: &[Word], spelled: usize) -> Checked {
    let mut args = args.to_vec();
    if let Some(first) = args.first_mut()
        && !first.sure_start().starts_with('-')
    {
        // Letters without a dash take their values in order, `f` its own alone
        // only when it is the last one.
        let text = first.text();
        if text.trim_end_matches('f').contains('f') || text.ends_with("ff") || first.has_glob() {
            return Err(text);
        }
        *first = Word::of(&format!("-{text}"));
    }
    program.listed(&args, spelled).map(drop)
}

/// Names of variables are evaluated.
pub(super) fn test(args: &[Word]) -> Checked {
    all(texts(args), |word| !matches!(word, "-v" | "-R"))
}

pub(super) fn printf(args: &[Word]) -> Checked {
    let first = args.first().map(Word::text);
    all(first, |word| !word.starts_with('-') || word == "--")
}

pub(super) fn cd(args: &[Word]) -> Checked {
    if args.len() != 1 {
        return Err("more or less than one folder".into());
    }
    all(texts(args), |word| !word.starts_with(['-', '+'])).and(match args[0].has_glob() {
        true => Err(args[0].text()),
        false => Ok(()),
    })
}

/// Only its own safe mode keeps it from running commands.
pub(super) fn sqlite(program: &Program, args: &[Word], spelled: usize) -> Checked {
    let first = args.first().map(Word::text).unwrap_or_default();
    if !matches!(first.as_str(), "-safe" | "-version" | "-help") {
        return Err(first);
    }
    program.listed(args, spelled).map(drop)
}

pub(super) fn compiler(args: &[Word]) -> Checked {
    const WORDS: &str = "-c -S -E -v -w -g -shared -static -pipe -pedantic -pthread -ansi \
        -rdynamic -MD -MMD -fsyntax-only --version";
    const STARTS: [&str; 8] = ["-std=", "-D", "-U", "-I", "-L", "-l", "-O", "-g"];
    let mut words = texts(args);
    while let Some(word) = words.next() {
        if word == "-o" {
            let inside = |file: &String| {
                !file.starts_with(['-', '/']) && !file.split('/').any(|name| name == "..")
            };
            words.next().filter(inside).ok_or("-o")?;
            continue;
        }
        let starts = STARTS.iter().any(|start| word.starts_with(start));
        let warning = word.strip_prefix("-W").is_some_and(|w| !w.contains(','));
        let switch = word
            .strip_prefix("-f")
            .is_some_and(|f| !f.contains(['=', 'p']));
        let known = starts || (warning && word != "-Wrapper") || switch;
        let operand = !word.starts_with(['-', '@']);
        if !(operand || known || lists(WORDS, &word)) {
            return Err(word);
        }
    }
    Ok(())
}

/// Fetches by HTTP. Other schemes read files or speak to other services, and
/// braces make addresses that nobody judged.
pub(super) fn curl(program: &Program, args: &[Word], spelled: usize) -> Checked {
    all(operands(program, args, spelled)?, |address| {
        let (scheme, _) = address.split_once("://").unwrap_or(("http", ""));
        let known = ["http", "https"]
            .iter()
            .any(|s| scheme.eq_ignore_ascii_case(s));
        let is_file = address
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case("file:"));
        known && !is_file && !address.contains(['{', '}', '[', ']'])
    })
}
