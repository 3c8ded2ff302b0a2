//! The programs that are known to run other programs.
//!
//! A program that is missing here is allowed by its name like any other, so
//! when in doubt it belongs in.

/// Shells: what they run is in their arguments, their input or a file.
pub(super) const SHELLS: [&str; 15] = [
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "csh", "tcsh", "fish", "pwsh",
    "busybox", "toybox", "nu",
];

/// Builtins that change what later commands mean, or evaluate text.
pub(super) const STATEFUL: [&str; 31] = [
    "eval",
    "source",
    ".",
    "trap",
    "alias",
    "unalias",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "set",
    "shopt",
    "read",
    "mapfile",
    "readarray",
    "let",
    "getopts",
    "bind",
    "complete",
    "compgen",
    "compopt",
    "enable",
    "hash",
    "fc",
    "history",
    "jobs",
    "wait",
    "ulimit",
    "umask",
];

/// Programs whose arguments hold another command. `coproc` and `!` are words
/// of the shell, but no program of that name may hide a command behind `xargs`.
pub(super) const LEADING: [&str; 63] = [
    "coproc",
    "!",
    "env",
    "sudo",
    "doas",
    "nohup",
    "nice",
    "ionice",
    "timeout",
    "time",
    "stdbuf",
    "setsid",
    "chroot",
    "unshare",
    "nsenter",
    "strace",
    "ltrace",
    "command",
    "builtin",
    "exec",
    "xargs",
    "parallel",
    "watch",
    "ssh",
    "mosh",
    "flock",
    "script",
    "su",
    "runuser",
    "setpriv",
    "chrt",
    "taskset",
    "systemd-run",
    "at",
    "batch",
    "crontab",
    "tmux",
    "screen",
    "unbuffer",
    "firejail",
    "proot",
    "fakeroot",
    "linux32",
    "linux64",
    "setarch",
    "prlimit",
    "numactl",
    "run-parts",
    "entr",
    "rlwrap",
    "dbus-run-session",
    "xvfb-run",
    "pkexec",
    "run0",
    "start-stop-daemon",
    "bwrap",
    "daemonize",
    "torsocks",
    "proxychains",
    "proxychains4",
    "chpst",
    "gosu",
    "catchsegv",
];

/// Of those, short options that take the next word.
pub(super) const VALUE_OPTIONS: [(&str, &str); 12] = [
    ("env", "uCS"),
    ("sudo", "ugphCDRrTtU"),
    ("doas", "uC"),
    ("nice", "n"),
    ("ionice", "cnpPu"),
    ("timeout", "ks"),
    ("stdbuf", "ioe"),
    ("xargs", "InPLdaEs"),
    ("exec", "a"),
    ("ssh", "bcDEeFIiJLlmOopQRSWw"),
    ("flock", "wEc"),
    ("chrt", "TPD"),
];

/// Editors, pagers of last resort and debuggers with a shell of their own.
pub(super) const EDITORS: [&str; 20] = [
    "vi",
    "vim",
    "nvim",
    "view",
    "vimdiff",
    "rvim",
    "gvim",
    "ex",
    "ed",
    "emacs",
    "emacsclient",
    "nano",
    "gdb",
    "lldb",
    "expect",
    "ftp",
    "sftp",
    "telnet",
    "socat",
    "ncat",
];

/// Interpreters, and the letters among their short options after which a
/// program may follow.
pub(super) const INTERPRETERS: [(&str, &str); 20] = [
    ("python", "c"),
    ("pypy", "c"),
    ("perl", "eEMmIpndx"),
    ("ruby", "erIpnx"),
    ("node", "eprC"),
    ("nodejs", "eprC"),
    ("deno", "er"),
    ("bun", "epr"),
    ("php", "rBREzd"),
    ("lua", "eil"),
    ("luajit", "eilj"),
    ("Rscript", "e"),
    ("tclsh", "c"),
    ("guile", "cel"),
    ("julia", "eEL"),
    ("elixir", "er"),
    ("osascript", "el"),
    ("sqlite", "cbi"),
    ("irb", "erI"),
    ("ghci", "e"),
];

/// Subcommands of git that run something; with words, only if one is given.
pub(super) const GIT: [(&str, &[&str]); 20] = [
    ("config", &[]),
    ("filter-branch", &[]),
    ("difftool", &[]),
    ("mergetool", &[]),
    ("send-email", &[]),
    ("daemon", &[]),
    ("hook", &[]),
    ("shell", &[]),
    ("submodule", &["foreach", "--recurse-submodules"]),
    ("bisect", &["run", "visualize", "view"]),
    ("rebase", &["-x", "--exec", "-i", "--interactive"]),
    ("grep", &["-O", "--open-files-in-pager"]),
    (
        "clone",
        &["-u", "--upload-pack", "-c", "--config", "--template"],
    ),
    ("fetch", &["--upload-pack"]),
    ("pull", &["--upload-pack", "--exec"]),
    ("ls-remote", &["--upload-pack", "--exec"]),
    ("push", &["--receive-pack", "--exec"]),
    ("archive", &["--exec", "-o", "--output"]),
    ("init", &["--template"]),
    ("for-each-repo", &[]),
];

/// A program with options that run or write something.
pub(super) struct Runner {
    names: &'static [&'static str],
    /// Options by name, and words of the kind `-exec`.
    pub(super) options: &'static [&'static str],
    /// Letters that do so within a bundle of short options.
    pub(super) short: &'static str,
    /// Whether the first argument may be a bundle without a dash.
    pub(super) bundles: bool,
}

const fn row(
    names: &'static [&'static str],
    options: &'static [&'static str],
    short: &'static str,
) -> Runner {
    Runner {
        names,
        options,
        short,
        bundles: false,
    }
}

/// The table.
pub(super) const RUNNERS: [Runner; 25] = [
    Runner {
        names: &["tar", "bsdtar", "gtar"],
        options: &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
        ],
        short: "IF",
        bundles: true,
    },
    row(&["rsync"], &["--rsh", "--rsync-path", "--daemon"], "e"),
    row(&["scp"], &["-S", "-o"], ""),
    row(&["fd", "fdfind"], &["--exec", "--exec-batch"], "xX"),
    row(&["rg"], &["--pre", "--hostname-bin"], ""),
    row(&["ag", "ack", "bat", "batcat"], &["--pager"], ""),
    row(&["sort"], &["--compress-program", "--output"], "o"),
    row(&["split"], &["--filter"], ""),
    row(&["zip"], &["--unzip-command", "-TT"], "T"),
    row(
        &["make", "gmake"],
        &["--eval", "--file", "--makefile"],
        "fE",
    ),
    row(&["cargo"], &["--config"], ""),
    row(&["go"], &["-toolexec", "-exec", "-vettool"], ""),
    row(&["wget"], &["--use-askpass", "--execute", "--config"], "e"),
    row(&["curl"], &["--config"], "K"),
    row(
        &["gcc", "g++", "cc", "c++", "clang"],
        &["-wrapper", "-fplugin", "-specs"],
        "B",
    ),
    row(&["tcpdump"], &[], "zw"),
    row(&["less", "more"], &[], "kKo"),
    row(&["man"], &["--pager", "--html", "--config-file"], "PHC"),
    row(&["ip"], &["exec", "-batch"], "b"),
    row(&["test", "["], &["-v", "-R"], ""),
    row(&["printf"], &["-v"], ""),
    row(&["psql"], &["--command", "--file"], "cf"),
    row(&["mysql", "mariadb"], &["--execute", "--pager"], "e"),
    row(&["dc", "bc"], &["--expression", "--file"], "ef"),
    row(&["openssl"], &["-engine", "-provider", "-config"], ""),
];

/// The row of a program.
pub(super) fn find_runner(name: &str) -> Option<&'static Runner> {
    const TABLE: &[Runner] = &RUNNERS;
    TABLE.iter().find(|row| row.names.contains(&name))
}
