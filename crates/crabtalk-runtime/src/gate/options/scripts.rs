//! Interpreters: they run a script that is named, and nothing else.
//!
//! Program text among the arguments, a module, or standard input is something
//! that a rule for scripts does not mean.

use super::spec::Spec;
use crate::gate::bash::plain::Word;

type Checked = Result<(), String>;

/// Only these options before the script, and a script unless one of them only
/// tells something.
fn script(spec: Spec, tells: &[&str], args: &[Word], spelled: usize) -> Checked {
    let rest = spec.stops().walk(args, spelled)?;
    let told = rest
        .options
        .iter()
        .any(|(name, _)| tells.contains(&name.as_str()));
    match rest.operands.first() {
        Some((_, script)) if script.text() != "-" && !script.has_glob() => Ok(()),
        Some((_, other)) => Err(other.text()),
        // The words after `--` begin with a script as well.
        None => match rest.after.first() {
            Some(script) if script.text() != "-" && !script.has_glob() => Ok(()),
            Some(other) => Err(other.text()),
            None if told => Ok(()),
            None => Err("no script".into()),
        },
    }
}

const TELLS: [&str; 4] = ["--version", "-v", "--help", "-h"];

pub(super) fn python(args: &[Word], spelled: usize) -> Checked {
    script(
        Spec::new("bBdEhIOPqsSuvVx", "", "version help"),
        &["--version", "-V", "-VV", "--help", "-h"],
        args,
        spelled,
    )
}

pub(super) fn perl(args: &[Word], spelled: usize) -> Checked {
    script(
        Spec::new("wWXtTv", "", "version help"),
        &TELLS,
        args,
        spelled,
    )
}

pub(super) fn ruby(args: &[Word], spelled: usize) -> Checked {
    script(Spec::new("wWvh", "", "version help"), &TELLS, args, spelled)
}

pub(super) fn node(args: &[Word], spelled: usize) -> Checked {
    let spec = Spec::new(
        "vhc",
        "",
        "version help check test watch enable-source-maps no-warnings trace-warnings \
         test-name-pattern= test-only trace-uncaught experimental-strip-types",
    );
    script(
        spec,
        &["--version", "-v", "-h", "--help", "--test"],
        args,
        spelled,
    )
}

pub(super) fn php(args: &[Word], spelled: usize) -> Checked {
    script(
        Spec::new("lqnvhmi", "", "version help"),
        &["-v", "-h", "-m", "-i"],
        args,
        spelled,
    )
}

pub(super) fn lua(args: &[Word], spelled: usize) -> Checked {
    script(Spec::new("vWE", "", ""), &["-v"], args, spelled)
}

pub(super) fn deno(args: &[Word], spelled: usize) -> Checked {
    first(
        &[
            "test",
            "lint",
            "check",
            "fmt",
            "info",
            "types",
            "--version",
            "--help",
        ],
        args,
        spelled,
    )
}

pub(super) fn bun(args: &[Word], spelled: usize) -> Checked {
    first(&["test", "install", "--version", "--help"], args, spelled)
}

/// One of these words, and no options behind it that are not spelled out.
fn first(known: &[&str], args: &[Word], spelled: usize) -> Checked {
    let head = args.first().map(Word::text).unwrap_or_default();
    if !known.contains(&head.as_str()) && spelled == 0 {
        return Err(head);
    }
    Spec::new("", "", "")
        .walk(args.get(1..).unwrap_or_default(), spelled.saturating_sub(1))
        .map(drop)
}
