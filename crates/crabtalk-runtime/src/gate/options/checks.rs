//! Programs whose arguments are a language of their own.
//!
//! Invariant: what is not known in it is not harmless.

use super::spec::Spec;
use super::table::TAR;
use crate::gate::bash::plain::Word;

type Checked = Result<(), String>;

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

/// Operands of a walked list of options.
fn operands(spec: Spec, args: &[Word], spelled: usize) -> Result<Vec<String>, String> {
    Ok(spec.walk(args, spelled)?.words().collect())
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
    let is_in = |list: &str, word: &str| list.split_ascii_whitespace().any(|known| known == word);
    let mut words = args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let text = word.text();
        if word.has_glob() {
            return Err(text);
        }
        if is_in(FIND_VALUES, &text) {
            match words.next() {
                Some((_, value)) if value.has_glob() => return Err(value.text()),
                _ => {}
            }
        } else if text.starts_with('-') && !is_in(FIND_TESTS, &text) && at >= spelled {
            return Err(text);
        }
    }
    Ok(())
}

/// An awk program that only selects and prints.
pub(super) fn awk(args: &[Word], spelled: usize) -> Checked {
    const AWK: Spec = Spec::new("", "Fv", "version").stops();
    const RUNS: [&str; 8] = [
        "system",
        "getline",
        "close",
        "fflush",
        "extension",
        "PROCINFO",
        "@",
        "\\\n",
    ];
    let rest = AWK.walk(args, spelled)?;
    for (_, program) in &rest.operands {
        let text = program.text();
        let without = text.replace("||", "");
        let runs = RUNS.iter().any(|word| text.contains(word));
        if program.has_glob() || runs || without.contains(['|', '>']) {
            return Err(text);
        }
    }
    // GNU awk takes options behind the program too when it looks for them.
    all(rest.after.iter().map(|word| word.text()), |word| {
        !word.starts_with('-') || word == "-"
    })
}

/// A sed script that is one of the usual short forms.
pub(super) fn sed(args: &[Word], spelled: usize) -> Checked {
    const SED: Spec = Spec::new(
        "nErsuz",
        "e",
        "posix debug quiet silent regexp-extended help version",
    );
    let rest = SED.walk(args, spelled)?;
    let scripts: Vec<String> = rest.values(&["-e"]).map(str::to_owned).collect();
    let operands = rest.operands.iter().map(|(_, word)| *word);
    let mut operands = operands.chain(rest.after.iter().copied());
    let scripts = match operands.next() {
        Some(first) if scripts.is_empty() => vec![first.text()],
        _ => scripts,
    };
    let globs = args
        .iter()
        .any(|word| word.has_glob() && scripts.contains(&word.text()));
    all(scripts, |script| !globs && plain_sed(script))
}

/// `10,20p`, `$d`, `/text/p`, `s/a/b/g`, and lists of these.
fn plain_sed(script: &str) -> bool {
    let mut rest = script.trim();
    while !rest.is_empty() {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        for _ in 0..2 {
            rest = after_address(rest).trim_start_matches([' ', ',', '!', '~', '+']);
        }
        let mut chars = rest.chars();
        rest = match chars.next() {
            None => return true,
            Some('p' | 'd' | 'q' | '=') => chars.as_str(),
            Some(which @ ('s' | 'y')) => match after_swap(chars.as_str()) {
                Some(tail) if which == 's' => {
                    tail.trim_start_matches(|c: char| "gpiIM".contains(c) || c.is_ascii_digit())
                }
                Some(tail) => tail,
                None => return false,
            },
            Some(_) => return false,
        };
        if !rest.is_empty() && !rest.starts_with([';', '\n']) {
            return rest.trim().is_empty();
        }
    }
    true
}

/// What follows the two parts of `s/a/b/`.
fn after_swap(text: &str) -> Option<&str> {
    let mark = text.chars().next()?;
    if mark.is_alphanumeric() || !mark.is_ascii() || " \n\\;".contains(mark) {
        return None;
    }
    after_mark(after_mark(&text[1..], mark)?, mark)
}

fn after_address(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix('/') {
        return after_mark(rest, '/').unwrap_or(text);
    }
    text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '$')
}

/// What follows the next `mark` that no backslash escapes. A set in brackets
/// may hold the mark in some programs and not in others, so there is none.
fn after_mark(text: &str, mark: char) -> Option<&str> {
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        if c == mark && !escaped {
            let within = &text[..i];
            let open = within.contains('[') && mark != '|' && mark != ',' && mark != '#';
            return (!open || within.contains(']')).then(|| &text[i + c.len_utf8()..]);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

pub(super) fn make(args: &[Word], spelled: usize) -> Checked {
    const MAKE: Spec = Spec::new(
        "BbdehiknpqrRsStvw0123456789",
        "",
        "always-make keep-going dry-run just-print silent quiet question touch version help \
         print-data-base warn-undefined-variables jobs output-sync ignore-errors no-print-directory \
         no-builtin-rules trace debug print-directory",
    )
    .attached("jO");
    let rest = MAKE.walk(args, spelled)?;
    let targets = rest.operands.iter().filter(|(at, _)| *at >= spelled);
    let mut targets = targets
        .map(|(_, word)| *word)
        .chain(rest.after.iter().copied());
    // `SHELL=...` is a variable, and a file may be named so.
    match targets.find(|word| word.has_glob() || word.text().contains(['=', ':'])) {
        Some(word) => Err(word.text()),
        None => Ok(()),
    }
}

pub(super) fn rsync(args: &[Word], spelled: usize) -> Checked {
    const RSYNC: Spec = Spec::new(
        "avrnzhPuptgoDicxqH",
        "",
        "archive verbose recursive dry-run compress human-readable progress partial update perms \
         times group owner checksum itemize-changes one-file-system quiet stats exclude= include= \
         size-only ignore-existing existing cvs-exclude max-size= min-size= version help info=",
    );
    // `host:file` runs a program for the connection.
    all(operands(RSYNC, args, spelled)?, |word| {
        !word
            .split('/')
            .next()
            .unwrap_or_default()
            .contains([':', '*', '?', '['])
    })
}

pub(super) fn tar(args: &[Word], spelled: usize) -> Checked {
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
    let rest = TAR.walk(&args, spelled)?;
    let archives = rest.values(&["-f", "--file"]).map(str::to_owned);
    all(archives, |file| !file.contains([':', '*', '?', '[']))
}

/// Names of variables are evaluated.
pub(super) fn test(args: &[Word], _: usize) -> Checked {
    all(texts(args), |word| !matches!(word, "-v" | "-R"))
}

pub(super) fn printf(args: &[Word], _: usize) -> Checked {
    let first = args.first().map(Word::text);
    all(first, |word| !word.starts_with('-') || word == "--")
}

pub(super) fn cd(args: &[Word], _: usize) -> Checked {
    if args.len() != 1 {
        return Err("more or less than one folder".into());
    }
    all(texts(args), |word| !word.starts_with(['-', '+'])).and(match args[0].has_glob() {
        true => Err(args[0].text()),
        false => Ok(()),
    })
}

/// Only its own safe mode keeps it from running commands.
pub(super) fn sqlite(args: &[Word], spelled: usize) -> Checked {
    const SQLITE: Spec = Spec::new(
        "",
        "",
        "safe readonly header noheader csv json column line list box table markdown html tabs \
         quote bail batch version help separator= nullvalue=",
    )
    .one_dash();
    let first = args.first().map(Word::text).unwrap_or_default();
    if !matches!(first.as_str(), "-safe" | "-version" | "-help") {
        return Err(first);
    }
    SQLITE.walk(args, spelled).map(drop)
}

pub(super) fn compiler(args: &[Word], _: usize) -> Checked {
    const WORDS: [&str; 17] = [
        "-c",
        "-S",
        "-E",
        "-v",
        "-w",
        "-g",
        "-shared",
        "-static",
        "-pipe",
        "-pedantic",
        "-pthread",
        "-ansi",
        "-rdynamic",
        "-MD",
        "-MMD",
        "-fsyntax-only",
        "--version",
    ];
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
        if !(operand || known || WORDS.contains(&word.as_str())) {
            return Err(word);
        }
    }
    Ok(())
}

pub(super) fn rustc(args: &[Word], spelled: usize) -> Checked {
    const RUSTC: Spec = Spec::new(
        "gOVvh",
        "W",
        "edition= crate-type= crate-name= cfg= emit= explain= \
        test version verbose help print= color= error-format=",
    );
    operands(RUSTC, args, spelled).and_then(|files| all(files, |file| !file.starts_with('@')))
}

pub(super) fn java(args: &[Word], spelled: usize) -> Checked {
    const JAVA: Spec = Spec::new("", "", "version ea showversion help")
        .one_dash()
        .stops();
    let rest = JAVA.walk(args, spelled)?;
    all(rest.operands.iter().map(|(_, word)| word.text()), |word| {
        !word.starts_with('@')
    })
}

pub(super) fn javac(args: &[Word], spelled: usize) -> Checked {
    const JAVAC: Spec =
        Spec::new("", "", "version g nowarn verbose Xlint deprecation help").one_dash();
    operands(JAVAC, args, spelled).and_then(|files| all(files, |file| !file.starts_with('@')))
}

/// `+command` runs when the pager starts.
fn pager(spec: Spec, args: &[Word], spelled: usize) -> Checked {
    all(operands(spec, args, spelled)?, |word| {
        !word.starts_with('+')
    })
}

pub(super) fn less(args: &[Word], spelled: usize) -> Checked {
    const LESS: Spec = Spec::new(
        "aBcCdeEfFgGiIJKLmMnNqQrRsSuUVwWX~0123456789",
        "",
        "LINE-NUMBERS RAW-CONTROL-CHARS chop-long-lines no-init quit-if-one-screen QUIT-AT-EOF \
         quit-at-eof ignore-case IGNORE-CASE squeeze-blank-lines help version",
    );
    pager(LESS, args, spelled)
}

pub(super) fn more(args: &[Word], spelled: usize) -> Checked {
    const MORE: Spec = Spec::new(
        "dflpcsu0123456789",
        "n",
        "silent logical no-pause print-over clean-print squeeze plain lines= help version",
    );
    pager(MORE, args, spelled)
}

/// Words that are no format would set the clock.
pub(super) fn date(args: &[Word], spelled: usize) -> Checked {
    const DATE: Spec = Spec::new(
        "uR",
        "dr",
        "date= iso-8601 rfc-email rfc-3339= reference= utc universal debug help version",
    )
    .attached("I");
    all(operands(DATE, args, spelled)?, |word| word.starts_with('+'))
}

/// `plugin:goal` may be one that runs programs.
pub(super) fn mvn(args: &[Word], spelled: usize) -> Checked {
    const MVN: Spec = Spec::new(
        "qBoUeXVn",
        "T",
        "quiet batch-mode offline update-snapshots errors debug version fail-fast fail-at-end \
         no-transfer-progress help",
    );
    all(operands(MVN, args, spelled)?, |word| !word.contains(':'))
}

/// Shows addresses, links and routes; other words change them or run programs.
pub(super) fn ip(args: &[Word], spelled: usize) -> Checked {
    const IP: Spec = Spec::new(
        "",
        "",
        "4 6 j c o s d br brief color json stats oneline details",
    )
    .one_dash();
    const SHOWN: [&str; 14] = [
        "a", "addr", "address", "l", "link", "r", "route", "n", "neigh", "rule", "s", "show",
        "list", "ls",
    ];
    let words = operands(IP, args, spelled)?;
    all(words.into_iter().take(2), |word| SHOWN.contains(&word))
}
