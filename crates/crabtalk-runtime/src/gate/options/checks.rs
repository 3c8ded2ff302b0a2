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
    const RUNS: [&str; 12] = [
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

pub(super) fn make(args: &[Word], spelled: usize) -> Checked {
    const MAKE: Spec = Spec::new(
        "BbdehiknpqrRsSvw0123456789",
        "",
        "always-make keep-going dry-run just-print silent quiet question version help \
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
    let rest = RUSTC.walk(args, spelled)?;
    all(rest.words(), |file| !file.starts_with('@'))?;
    // `--emit=metadata=F` writes to F, and so does `--print`.
    let kinds = rest.values(&["--emit", "--print"]).map(str::to_owned);
    all(kinds, |kind| !kind.contains('='))
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

/// Fetches by HTTP. Other schemes read files or speak to other services, and
/// braces make addresses that nobody judged.
pub(super) fn curl(args: &[Word], spelled: usize) -> Checked {
    const CURL: Spec = Spec::new(
        "sSfLIiv46gGkN#",
        "mXA",
        "silent show-error fail fail-with-body location head include verbose ipv4 ipv6 globoff \
         get compressed max-time= connect-timeout= retry= retry-delay= user-agent= http1.1 http2 \
         no-progress-meter progress-bar no-buffer version",
    );
    let rest = CURL.walk(args, spelled)?;
    let addresses = rest.operands.iter().filter(|(at, _)| *at >= spelled);
    let addresses = addresses.map(|(_, word)| word.text());
    let after = rest.after.iter().map(|word| word.text());
    all(addresses.chain(after), |address| {
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

/// A filter that loads nothing but its input.
pub(super) fn jq(args: &[Word], spelled: usize) -> Checked {
    const JQ: Spec = Spec::new(
        "aceCMnrRjsS",
        "",
        "arg argjson args jsonargs compact-output color-output monochrome-output ascii-output \
         null-input raw-input raw-output join-output slurp sort-keys tab indent= exit-status \
         stream seq unbuffered version help",
    );
    let loads = |word: &str| word.contains("import") || word.contains("include");
    all(operands(JQ, args, spelled)?, |word| !loads(word))
}

/// A filter that loads nothing but its input.
pub(super) fn yq(args: &[Word], spelled: usize) -> Checked {
    const YQ: Spec = Spec::new(
        "cCMnPrejN",
        "oIp",
        "output-format= input-format= indent= prettyPrint no-colors colors null-input \
         unwrapScalar exit-status no-doc version help",
    );
    let loads = |word: &str| {
        ["load", "eval", "system", "import", "include"]
            .iter()
            .any(|name| word.contains(name))
    };
    // `yq eval F` is the older spelling of what it does anyway.
    all(operands(YQ, args, spelled)?, |word| {
        matches!(word, "eval" | "e" | "eval-all" | "ea") || !loads(word)
    })
}
