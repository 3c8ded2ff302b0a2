//! Programs with subcommands: each has its own options, and those that nobody
//! listed are not harmless, unless the rule names them.

use super::spec::{Rest, Spec};
use crate::gate::bash::plain::Word;

type Checked = Result<(), String>;

/// What is known of a program with subcommands.
pub(super) struct Program {
    /// Options before the subcommand.
    pub(super) before: Spec,
    /// Subcommands with their options. Several names are separated by blanks.
    pub(super) subcommands: &'static [(&'static str, Spec)],
}

/// A command of such a program.
pub(super) struct Sub<'w> {
    /// The subcommand, `None` where only options are.
    pub(super) name: Option<String>,
    /// What follows it.
    pub(super) rest: Rest<'w>,
}

impl Program {
    pub(super) fn walk<'w>(&self, args: &'w [Word], spelled: usize) -> Result<Sub<'w>, String> {
        let head = self.before.stops().walk(args, spelled)?;
        let Some((at, sub)) = head.operands.first() else {
            return Ok(Sub {
                name: None,
                rest: head,
            });
        };
        let name = sub.text();
        let is_it = |(names, _): &&(&str, Spec)| names.split_ascii_whitespace().any(|n| n == name);
        let spec = match self.subcommands.iter().find(is_it) {
            Some((_, spec)) if !sub.has_glob() => *spec,
            // A rule that names it means it; its options nobody knows.
            _ if *at < spelled => Spec::new("", "", ""),
            _ => return Err(name),
        };
        let tail = &args[at + 1..];
        let rest = spec.walk(tail, spelled.saturating_sub(at + 1))?;
        Ok(Sub {
            name: Some(name),
            rest,
        })
    }
}

fn known(program: &Program, args: &[Word], spelled: usize) -> Checked {
    program.walk(args, spelled).map(drop)
}

pub(super) fn cargo(args: &[Word], spelled: usize) -> Checked {
    const BUILD: Spec = Spec::new(
        "rqvh",
        "pjF",
        "release debug quiet verbose help package= workspace all exclude= jobs= features= \
         all-features no-default-features lib bin= bins example= examples test= tests bench= \
         benches all-targets profile= locked offline frozen message-format= color= keep-going \
         no-run no-fail-fast doc no-deps document-private-items timings future-incompat-report \
         target= ignore-rust-version",
    );
    const CARGO: Program = Program {
        before: Spec::new(
            "qvVh",
            "",
            "version list help verbose quiet offline locked frozen color=",
        ),
        subcommands: &[
            (
                "build b check c test t bench doc d clippy run r nextest",
                BUILD,
            ),
            (
                "fmt",
                Spec::new(
                    "qvhp",
                    "",
                    "all check help package= quiet verbose message-format=",
                ),
            ),
            (
                "tree",
                Spec::new(
                    "eidp",
                    "",
                    "depth= invert= duplicates edges= package= prefix= workspace \
                    no-dedupe charset= format= features= all-features no-default-features target= \
                    locked offline frozen help",
                ),
            ),
            (
                "metadata",
                Spec::new(
                    "qv",
                    "",
                    "format-version= no-deps features= all-features locked \
                offline frozen filter-platform= help",
                ),
            ),
            (
                "clean",
                Spec::new("pqvr", "", "release doc package= profile= dry-run help"),
            ),
            (
                "update",
                Spec::new(
                    "pqv",
                    "",
                    "package= workspace dry-run precise= offline locked help",
                ),
            ),
            (
                "search info pkgid version locate-project help",
                Spec::new("qvV", "", "limit= verbose help"),
            ),
        ],
    };
    // `+toolchain` is one that is installed.
    let first = args
        .first()
        .filter(|word| word.sure_start().starts_with('+'));
    match first {
        Some(word) if spelled == 0 => Err(word.text()),
        Some(_) => built(&CARGO, &args[1..], spelled - 1),
        None => built(&CARGO, args, spelled),
    }
}

/// What follows `--` goes to one's own program, but for those that have options.
fn built(cargo: &Program, args: &[Word], spelled: usize) -> Checked {
    let sub = cargo.walk(args, spelled)?;
    let name = sub.name.unwrap_or_default();
    let is_lint = |word: &str| {
        let level = word.strip_prefix('-').unwrap_or("D");
        level.starts_with(['D', 'W', 'A', 'F']) && !word.contains(['=', '@'])
    };
    if matches!(name.as_str(), "test" | "t" | "bench" | "nextest") {
        // Tests have options of their own, one of which writes a file.
        let after: Vec<Word> = sub.rest.after.iter().map(|word| (*word).clone()).collect();
        return HARNESS.walk(&after, 0).map(drop);
    }
    let odd = sub.rest.after.iter().map(|word| word.text());
    let mut odd = odd.filter(|word| match name.as_str() {
        "fmt" => word != "--check",
        "clippy" => !is_lint(word),
        _ => false,
    });
    odd.next().map_or(Ok(()), Err)
}

/// Options of Rust's own tests.
const HARNESS: Spec = Spec::new(
    "qh",
    "",
    "nocapture no-capture show-output exact ignored include-ignored list quiet help test bench \
     test-threads= skip= color= format= report-time ensure-time shuffle shuffle-seed= \
     exclude-should-panic force-run-in-process",
);

pub(super) fn npm(args: &[Word], spelled: usize) -> Checked {
    const NPM: Program = Program {
        before: Spec::new("sqdv", "", "silent quiet version verbose"),
        subcommands: &[
            (
                "test t tst run run-script start stop restart ls list outdated view info audit ping \
                 why explain root prefix fund",
                Spec::new(
                    "sqw",
                    "",
                    "silent quiet if-present workspaces json long all depth= omit= \
                    production parseable loglevel=",
                ),
            ),
            (
                "ci install i",
                Spec::new(
                    "sq",
                    "",
                    "silent quiet ignore-scripts no-audit no-fund omit= production \
                    prefer-offline offline no-save frozen-lockfile",
                )
                .operands(0),
            ),
        ],
    };
    known(&NPM, args, spelled)
}

pub(super) fn yarn(args: &[Word], spelled: usize) -> Checked {
    const YARN: Program = Program {
        before: Spec::new("sv", "", "silent version"),
        subcommands: &[
            ("test run build start lint", Spec::new("s", "", "silent")),
            (
                "install",
                Spec::new(
                    "",
                    "",
                    "frozen-lockfile immutable offline ignore-scripts silent",
                )
                .operands(0),
            ),
            (
                "list why outdated info",
                Spec::new("", "", "depth= json silent pattern="),
            ),
        ],
    };
    known(&YARN, args, spelled)
}

pub(super) fn go(args: &[Word], spelled: usize) -> Checked {
    const BUILD: Spec = Spec::new(
        "",
        "",
        "v race n x a short json cover failfast benchmem run= count= timeout= bench= tags= mod= p= \
         parallel= cpu= benchtime= skip= shuffle= trimpath covermode= coverpkg= msan asan work",
    )
    .one_dash();
    const GO: Program = Program {
        before: Spec::new("", "", "").one_dash(),
        subcommands: &[
            ("build test vet install", BUILD),
            ("run", BUILD.stops()),
            ("fmt version", Spec::new("", "", "n x m").one_dash()),
            (
                "list",
                Spec::new("", "", "m json u deps test e f= tags= mod= versions find").one_dash(),
            ),
            ("mod", Spec::new("", "", "v x json go= e").one_dash()),
            ("env", Spec::new("", "", "json").one_dash()),
            (
                "doc help clean",
                Spec::new("", "", "all short src u c cmd testcache cache").one_dash(),
            ),
        ],
    };
    let first = args.first().map(Word::text).unwrap_or_default();
    // `go install x@v` and `go run x@v` fetch somebody else's program.
    let fetched = args.iter().skip(1).find(|word| {
        matches!(first.as_str(), "install" | "run" | "build") && word.text().contains('@')
    });
    match fetched {
        Some(word) => Err(word.text()),
        None => known(&GO, args, spelled),
    }
}

pub(super) fn pip(args: &[Word], spelled: usize) -> Checked {
    const PIP: Program = Program {
        before: Spec::new(
            "qvVh",
            "",
            "version help quiet verbose disable-pip-version-check no-color",
        ),
        subcommands: &[(
            "list show freeze check help index inspect debug",
            Spec::new(
                "qvlefou",
                "",
                "outdated uptodate editable local user format= verbose files \
                    not-required quiet",
            ),
        )],
    };
    known(&PIP, args, spelled)
}

pub(super) fn docker(args: &[Word], spelled: usize) -> Checked {
    const DOCKER: Program = Program {
        before: Spec::new("v", "", "version help"),
        subcommands: &[(
            "ps images logs inspect version info stats top port diff history search",
            Spec::new(
                "aqlsft",
                "n",
                "all quiet filter= format= last= latest no-trunc size tail= since= \
                until= timestamps follow details type= no-stream limit= human",
            ),
        )],
    };
    known(&DOCKER, args, spelled)
}

pub(super) fn kubectl(args: &[Word], spelled: usize) -> Checked {
    const KUBECTL: Program = Program {
        before: Spec::new("", "n", "namespace= help"),
        subcommands: &[(
            "get describe logs top version explain api-resources api-versions cluster-info events",
            Spec::new(
                "Awpf",
                "nolcL",
                "namespace= output= selector= all-namespaces watch show-labels \
                sort-by= field-selector= container= previous follow tail= since= all-containers \
                timestamps no-headers label-columns= client short",
            ),
        )],
    };
    known(&KUBECTL, args, spelled)
}

pub(super) fn gh(args: &[Word], spelled: usize) -> Checked {
    const LIST: Spec = Spec::new(
        "c",
        "LsalAHBSRjqt",
        "limit= state= author= assignee= label= head= base= search= repo= json= jq= comments draft \
         name-only patch log log-failed job= exit-status help verbose",
    );
    const GH: Program = Program {
        before: Spec::new("", "", "version help"),
        subcommands: &[("pr issue release run workflow label search status", LIST)],
    };
    const SHOWN: [&str; 9] = [
        "list", "view", "status", "diff", "checks", "ls", "issues", "prs", "repos",
    ];
    let sub = GH.walk(args, spelled)?;
    let head = sub.rest.words().next();
    match head {
        Some(word) if !SHOWN.contains(&word.as_str()) && spelled < 2 => Err(word),
        _ => Ok(()),
    }
}

pub(super) fn systemctl(args: &[Word], spelled: usize) -> Checked {
    const SYSTEMCTL: Program = Program {
        before: Spec::new(
            "alqn",
            "",
            "no-pager all full user system version help quiet",
        ),
        subcommands: &[(
            "status show cat is-active is-enabled is-failed is-system-running list-units \
             list-unit-files list-timers list-sockets list-dependencies list-jobs",
            Spec::new(
                "alq",
                "npt",
                "no-pager all full user system lines= property= type= state= \
                output= no-legend plain value failed reverse",
            ),
        )],
    };
    known(&SYSTEMCTL, args, spelled)
}

pub(super) fn gradle(args: &[Word], spelled: usize) -> Checked {
    const GRADLE: Spec = Spec::new(
        "qidsSwvm",
        "x",
        "quiet info debug stacktrace full-stacktrace warn version offline continue no-daemon \
         parallel build-cache no-build-cache dry-run exclude-task= tests= rerun-tasks console=",
    );
    GRADLE.walk(args, spelled).map(drop)
}

pub(super) fn svn(args: &[Word], spelled: usize) -> Checked {
    const SVN: Program = Program {
        before: Spec::new("", "", "version help non-interactive"),
        subcommands: &[(
            "status st stat info log list ls blame praise cat update up add",
            Spec::new(
                "vquN",
                "rcl",
                "verbose quiet show-updates revision= change= limit= xml \
                stop-on-copy non-interactive depth= summarize",
            ),
        )],
    };
    known(&SVN, args, spelled)
}

/// A program of whose subcommands a few with the same options are known.
fn few(names: &'static str, options: Spec, args: &[Word], spelled: usize) -> Checked {
    let head = Spec::new("vVh", "", "version help").stops();
    let rest = head.walk(args, spelled)?;
    let Some((at, name)) = rest.operands.first() else {
        return Ok(());
    };
    let text = name.text();
    let known = names.split_ascii_whitespace().any(|known| known == text);
    let options = match known && !name.has_glob() {
        true => options,
        false if *at < spelled => Spec::new("", "", ""),
        false => return Err(text),
    };
    let spelled = spelled.saturating_sub(at + 1);
    options.walk(&args[at + 1..], spelled).map(drop)
}

pub(super) fn ruff(args: &[Word], spelled: usize) -> Checked {
    let options = Spec::new(
        "qvns",
        "",
        "quiet verbose no-cache select= ignore= extend-select= statistics show-files show-settings \
         watch diff check line-length= target-version= preview",
    );
    few("check format rule linter version", options, args, spelled)
}

pub(super) fn bundle(args: &[Word], spelled: usize) -> Checked {
    let options = Spec::new("", "j", "quiet local jobs= verbose dry-run");
    few(
        "install check list show outdated info platform",
        options,
        args,
        spelled,
    )
}

pub(super) fn composer(args: &[Word], spelled: usize) -> Checked {
    let options = Spec::new(
        "nqvD",
        "",
        "no-interaction quiet no-scripts no-plugins no-dev no-progress dry-run direct outdated",
    );
    let names = "install show outdated validate check-platform-reqs why why-not licenses status \
                 diagnose test";
    few(names, options, args, spelled)
}

pub(super) fn mix(args: &[Word], spelled: usize) -> Checked {
    let options = Spec::new(
        "",
        "",
        "force trace seed= max-failures= only= exclude= stale warnings-as-errors",
    );
    few(
        "test compile deps.get deps.tree format credo help",
        options,
        args,
        spelled,
    )
}

pub(super) fn dotnet(args: &[Word], spelled: usize) -> Checked {
    let options = Spec::new(
        "",
        "cv",
        "configuration= verbosity= no-restore no-build nologo filter= framework= outdated",
    );
    few("build test run restore list clean", options, args, spelled)
}
