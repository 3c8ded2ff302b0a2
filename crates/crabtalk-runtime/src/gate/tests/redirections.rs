//! Redirections are files, and no narrow rule allows them.

use super::*;

#[test]
fn rules_for_files_hold_for_redirections() {
    check(&[
        ("bash(a*): allow\nwrite(out/*): allow", "a > out/x", Ask),
        (
            "bash: allow\nwrite: ask\nwrite(out/*): allow",
            "a > out/x",
            Allow,
        ),
        (
            "bash: allow\nwrite: ask\nedit(out/*): allow",
            "a >> out/x",
            Allow,
        ),
        (
            "bash: allow\nwrite: ask\nwrite(out/*): allow",
            "a > out/x/y",
            Ask,
        ),
        (
            "bash: allow\nwrite: ask\nwrite(out/*): allow",
            "a > out/../x",
            Ask,
        ),
        (
            "bash: allow\nwrite: ask\nwrite(out/*): allow",
            "cd y; a > out/x",
            Ask,
        ),
        ("bash: allow\nwrite(/etc/**): deny", "a > /etc/x", Deny),
        (
            "bash: allow\nedit(/etc/**): deny",
            "sh -c 'a > /etc/x'",
            Deny,
        ),
        ("bash: allow\nwrite(/etc/**): deny", "a > $x", Ask),
        ("bash: allow\nwrite: ask", "a > x", Ask),
        ("bash: allow\nread(/etc/**): deny", "a < /etc/x", Deny),
        ("bash(a*): allow", "a < /w/p/x", Ask),
        (
            "bash: allow\nread: ask\nread(~/**): allow",
            "a < ~/x",
            Allow,
        ),
        (
            "bash: allow\nread: ask\nread(~/**): allow",
            "a < '~/x'",
            Ask,
        ),
        ("bash: allow\nread: deny", "a < x", Deny),
        ("bash: allow", "a > /proc/self/cwd/../x", Ask),
    ]);
}

#[test]
fn links_in_redirections_are_followed() {
    let leads_out = |_: &Path| Some(PathBuf::from("/etc/passwd"));
    let dangling = |_: &Path| None;
    let rules = "bash: allow\nwrite(out/*): allow\nwrite(/etc/**): deny";
    let call = Call {
        resolve: &leads_out,
        ..Call::bash(rules, "a > out/x")
    };
    assert_eq!(call.says(), Deny);
    assert_eq!(
        Call {
            resolve: &dangling,
            ..Call::bash(rules, "a > out/x")
        }
        .says(),
        Ask
    );
}
