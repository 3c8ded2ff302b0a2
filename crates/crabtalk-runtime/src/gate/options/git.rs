//! git: harmless options per subcommand.

use super::spec::Spec;
use super::subcommands::Program;
use crate::gate::bash::plain::Word;

/// Subcommands that show diffs: they may run what converts files for that,
/// unless they are told not to.
const SHOWS_DIFFS: [&str; 3] = ["diff", "log", "show"];

/// What turns that off.
const NO_CONVERSION: [&str; 2] = ["--no-ext-diff", "--no-textconv"];

const LOG: Spec = Spec::new(
    "puszabwWRrtqcmiEFPgh0123456789",
    "SGInLl",
    "patch no-patch raw patch-with-raw stat numstat shortstat dirstat summary compact-summary \
     patch-with-stat name-only name-status color no-color color-words word-diff word-diff-regex= \
     color-moved no-color-moved minimal patience histogram diff-algorithm= anchored= \
     ignore-all-space ignore-space-change ignore-space-at-eol ignore-cr-at-eol \
     ignore-blank-lines function-context inter-hunk-context= unified= find-renames find-copies \
     find-copies-harder diff-filter= pickaxe-all pickaxe-regex text full-index binary abbrev \
     no-renames check relative no-relative exit-code quiet no-prefix default-prefix src-prefix= \
     dst-prefix= line-prefix= cached staged merge-base cc combined-all-paths no-ext-diff \
     no-textconv ignore-submodules irreversible-delete ita-invisible-in-index oneline graph \
     no-graph all branches tags remotes decorate no-decorate decorate-refs= \
     decorate-refs-exclude= pretty format= date= since= until= after= before= author= committer= \
     grep= all-match invert-grep regexp-ignore-case extended-regexp fixed-strings perl-regexp \
     basic-regexp max-count= skip= merges no-merges min-parents= max-parents= first-parent \
     reverse follow left-right left-only right-only cherry cherry-mark cherry-pick topo-order \
     date-order author-date-order abbrev-commit no-abbrev-commit parents children full-history \
     simplify-merges simplify-by-decoration ancestry-path walk-reflogs boundary source log-size \
     notes no-notes no-walk do-walk show-pulls diff-merges= no-diff-merges remerge-diff mailmap \
     use-mailmap no-mailmap relative-date encoding= count not bisect ours theirs base numbered \
     exclude= glob= objects end-of-options z",
)
.attached("MCBDXU");

const PROGRAM: Program = Program {
    before: Spec::new(
        "vhP",
        "",
        "no-pager version help no-optional-locks literal-pathspecs \
        glob-pathspecs noglob-pathspecs icase-pathspecs no-replace-objects no-lazy-fetch no-advice",
    ),
    subcommands: &[
        (
            "status",
            Spec::new(
                "sbvz",
                "",
                "short branch porcelain long verbose untracked-files ignored \
            ignore-submodules column no-column ahead-behind no-ahead-behind renames no-renames \
            find-renames show-stash no-show-stash null",
            )
            .attached("u"),
        ),
        (
            "diff log show diff-tree diff-index diff-files range-diff rev-list reflog",
            LOG,
        ),
        (
            "shortlog",
            Spec::new(
                "nsecwh",
                "",
                "numbered summary email committer group= all branches \
            tags remotes no-merges since= until= author= grep=",
            ),
        ),
        (
            "blame annotate",
            Spec::new(
                "bltfnpscewh",
                "LS",
                "line-porcelain porcelain root show-stats \
            show-name show-number show-email date= since= first-parent abbrev incremental reverse \
            no-textconv",
            )
            .attached("MC"),
        ),
        (
            "rev-parse",
            Spec::new(
                "q",
                "",
                "verify abbrev-ref short symbolic symbolic-full-name \
            show-toplevel show-prefix show-cdup git-dir git-common-dir absolute-git-dir \
            is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all \
            branches tags remotes quiet end-of-options show-superproject-working-tree \
            show-object-format default= revs-only no-revs flags no-flags path-format= git-path=",
            ),
        ),
        (
            "ls-files",
            Spec::new(
                "cdmoistukzvfr",
                "x",
                "cached deleted modified others ignored stage \
            unmerged killed directory no-empty-directory exclude= exclude-standard error-unmatch \
            full-name abbrev deduplicate eol debug format=",
            ),
        ),
        (
            "ls-tree",
            Spec::new(
                "drtlz",
                "",
                "long name-only name-status object-only full-name \
            full-tree abbrev format=",
            ),
        ),
        (
            "cat-file",
            Spec::new(
                "tspe",
                "",
                "batch-all-objects unordered allow-unknown-type \
            batch batch-check buffer",
            ),
        ),
        (
            "describe name-rev",
            Spec::new(
                "",
                "",
                "all tags contains abbrev candidates= exact-match \
            debug long match= exclude= always first-parent dirty broken name-only refs= no-undefined",
            ),
        ),
        (
            "merge-base cherry",
            Spec::new(
                "av",
                "",
                "all octopus independent is-ancestor fork-point abbrev",
            ),
        ),
        (
            "branch",
            Spec::new(
                "avrqdDmMcCfilt",
                "u",
                "all verbose remotes quiet delete move copy force \
            list show-current contains= no-contains= merged no-merged points-at= sort= format= \
            color no-color column no-column abbrev no-abbrev set-upstream-to= unset-upstream track \
            no-track ignore-case create-reflog",
            ),
        ),
        (
            "tag",
            Spec::new(
                "aldfnie0123456789",
                "mF",
                "annotate list delete force message= file= contains= \
            no-contains= merged no-merged points-at= sort= format= color column no-column ignore-case \
            no-sign cleanup=",
            ),
        ),
        ("remote", Spec::new("v", "", "verbose all push")),
        (
            "stash",
            Spec::new(
                "uqka",
                "m",
                "include-untracked stat all quiet keep-index \
            no-keep-index message= index only-untracked staged name-only name-status",
            ),
        ),
        (
            "add stage",
            Spec::new(
                "AunvfN",
                "",
                "all update dry-run verbose force intent-to-add \
            ignore-errors ignore-missing refresh no-all renormalize ignore-removal chmod= sparse",
            ),
        ),
        (
            "commit",
            Spec::new(
                "asqnv",
                "mFCc",
                "all signoff no-signoff quiet no-verify verbose message= \
            file= amend no-edit allow-empty allow-empty-message fixup= squash= author= date= dry-run \
            short branch porcelain long cleanup= reuse-message= reset-author only include status \
            no-status no-gpg-sign no-post-rewrite untracked-files",
            ),
        ),
        (
            "checkout switch restore",
            Spec::new(
                "bBcCqfdSWlmt",
                "s",
                "quiet force branch detach create= \
            force-create= orphan= track no-track ours theirs merge conflict= guess no-guess \
            source= staged worktree discard-changes progress no-progress overlay no-overlay \
            ignore-unmerged ignore-other-worktrees ignore-skip-worktree-bits overwrite-ignore",
            ),
        ),
        (
            "fetch pull",
            Spec::new(
                "aptqvnkfr46",
                "jX",
                "all append prune prune-tags tags no-tags quiet verbose \
            dry-run keep force depth= deepen= unshallow shallow-since= ff ff-only no-ff rebase \
            no-rebase autostash no-autostash stat no-stat squash no-squash commit no-commit no-edit \
            progress no-progress multiple ipv4 ipv6 atomic jobs= no-recurse-submodules \
            allow-unrelated-histories no-verify signoff log no-log porcelain",
            ),
        ),
        (
            "ls-remote",
            Spec::new(
                "htq",
                "",
                "heads branches tags refs quiet exit-code get-url symref sort=",
            ),
        ),
        (
            "push",
            Spec::new(
                "uqvn46",
                "",
                "set-upstream quiet verbose dry-run tags follow-tags all branches \
            porcelain progress no-progress atomic force-with-lease force-if-includes no-verify thin \
            no-thin no-recurse-submodules no-signed ipv4 ipv6",
            ),
        ),
        (
            "clone",
            Spec::new(
                "qvnl46",
                "bj",
                "quiet verbose no-checkout depth= branch= single-branch \
            no-single-branch no-tags filter= progress shallow-since= no-local jobs= bare sparse \
            no-hardlinks ipv4 ipv6",
            ),
        ),
        (
            "init",
            Spec::new("q", "b", "quiet initial-branch= bare object-format=").operands(1),
        ),
        (
            "merge",
            Spec::new(
                "nqv",
                "mX",
                "ff no-ff ff-only squash no-squash commit no-commit no-edit \
            message= abort continue quit stat no-stat log no-log quiet verbose strategy-option= \
            allow-unrelated-histories autostash no-autostash no-verify signoff no-gpg-sign",
            ),
        ),
        (
            "rebase",
            Spec::new(
                "qvnf",
                "X",
                "onto= abort quit autostash no-autostash \
            autosquash no-autosquash quiet verbose stat no-stat fork-point no-fork-point root \
            keep-base update-refs no-update-refs strategy-option= no-verify force-rebase \
            rebase-merges signoff show-current-patch no-gpg-sign ignore-whitespace",
            ),
        ),
        (
            "reset",
            Spec::new("qN", "", "soft mixed hard merge keep quiet no-refresh"),
        ),
        (
            "rm",
            Spec::new("frnq", "", "force dry-run cached quiet ignore-unmatch"),
        ),
        ("mv", Spec::new("fknv", "", "force dry-run verbose")),
        (
            "cherry-pick revert",
            Spec::new(
                "xns",
                "mX",
                "continue abort skip quit no-commit no-edit signoff \
            ff mainline= strategy-option= allow-empty keep-redundant-commits allow-empty-message \
            no-gpg-sign",
            ),
        ),
        (
            "clean",
            Spec::new("ndfxXq", "e", "dry-run force quiet exclude="),
        ),
        (
            "grep",
            Spec::new(
                "niIlLwcEFPGhHrvoqzpWa0123456789",
                "eABCm",
                "line-number ignore-case \
            word-regexp count extended-regexp fixed-strings perl-regexp basic-regexp \
            files-with-matches files-without-match name-only invert-match only-matching quiet null \
            show-function function-context heading break color no-color context= after-context= \
            before-context= cached untracked and or not all-match full-name max-depth= text column \
            recursive no-recursive threads= max-count= exclude-standard no-textconv",
            ),
        ),
        (
            "for-each-ref show-ref",
            Spec::new(
                "dqs",
                "",
                "count= sort= format= points-at= merged no-merged \
            contains= no-contains= ignore-case heads branches tags verify hash head dereference quiet \
            exclude= omit-empty exists abbrev",
            ),
        ),
        (
            "count-objects",
            Spec::new("vH", "", "verbose human-readable"),
        ),
        (
            "check-ignore check-attr check-ref-format",
            Spec::new(
                "qvznca",
                "",
                "quiet verbose non-matching \
            no-index all branch normalize allow-onelevel",
            ),
        ),
        (
            "format-patch",
            Spec::new(
                "nkspN0123456789",
                "",
                "stdout numbered no-numbered signoff stat \
            cover-letter subject-prefix= no-stat base= zero-commit root ignore-if-in-upstream",
            ),
        ),
        (
            "archive",
            Spec::new("lv0123456789", "", "list verbose format= prefix="),
        ),
        (
            "apply",
            Spec::new(
                "vR",
                "pC",
                "stat numstat summary check index cached 3way reverse verbose \
            whitespace= reject exclude= include= recount ignore-whitespace ignore-space-change quiet",
            ),
        ),
        (
            "bisect",
            Spec::new("", "", "no-checkout first-parent term-old term-new"),
        ),
        (
            "worktree",
            Spec::new("nvq", "", "porcelain verbose dry-run expire="),
        ),
        (
            "config",
            Spec::new(
                "lz",
                "",
                "get get-all get-regexp list show-origin show-scope name-only \
            local global system worktree type= bool int default= includes null all regexp value=",
            ),
        ),
        (
            "gc fsck",
            Spec::new(
                "qv",
                "",
                "quiet auto aggressive prune no-prune full strict connectivity-only \
            unreachable dangling no-dangling no-reflogs root tags cache verbose progress no-progress",
            ),
        ),
        (
            "version help",
            Spec::new("", "", "build-options").operands(0),
        ),
    ],
};

/// First words behind a subcommand that do no more than it says.
const FIRST_WORDS: [(&str, &[&str]); 4] = [
    ("remote", &["get-url", "show"]),
    ("worktree", &["list", "prune"]),
    (
        "bisect",
        &[
            "start", "good", "bad", "new", "old", "skip", "reset", "log", "terms", "next",
        ],
    ),
    ("config", &["get", "list"]),
];

pub(super) fn check(args: &[Word], spelled: usize) -> Result<(), String> {
    let sub = PROGRAM.walk(args, spelled)?;
    let Some(name) = sub.name else {
        return Ok(());
    };
    let operands = || sub.rest.words();
    // Entries of the log of references are removed by these words.
    let removes = |word: &String| ["expire", "delete", "drop"].contains(&word.as_str());
    if let Some(first) = operands().next().filter(|w| name == "reflog" && removes(w)) {
        return Err(first);
    }
    if let Some((_, known)) = FIRST_WORDS.iter().find(|(listed, _)| *listed == name)
        && let Some(first) = operands()
            .next()
            .filter(|word| !known.contains(&word.as_str()))
    {
        let reads = sub
            .rest
            .options
            .iter()
            .any(|(option, _)| option.starts_with("--get"));
        // `git config NAME` reads, `git config NAME VALUE` writes.
        if !(name == "config" && (reads || operands().count() == 1)) && spelled < 2 {
            return Err(first);
        }
    }
    let talks = ["fetch", "pull", "push", "clone", "ls-remote"].contains(&name.as_str());
    let odd = |word: &String| word.contains("::") || word.starts_with('-');
    match operands().find(|word| talks && odd(word)) {
        Some(word) => Err(word),
        None => Ok(()),
    }
}

/// The words without conversions of files for diffs.
pub(super) fn tamed(words: &[Word]) -> Option<Vec<Word>> {
    let texts: Vec<String> = words.iter().map(Word::text).collect();
    let at = (1..texts.len()).find(|at| !texts[*at].starts_with('-'))?;
    if !SHOWS_DIFFS.contains(&texts[at].as_str()) {
        return None;
    }
    let mut tamed = words.to_vec();
    let at = at + 1;
    tamed.splice(at..at, NO_CONVERSION.map(Word::of));
    Some(tamed)
}
