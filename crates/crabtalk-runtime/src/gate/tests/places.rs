//! Places: `/proc`, the closed home, and links before what is compared.

use super::*;

/// `/home/u` and `/lib` are links, as is `/w/p/link` to CrabTalk's home.
fn linked(path: &Path) -> Option<PathBuf> {
    let clean = lexical(path)?;
    if clean.starts_with("/proc") {
        return None;
    }
    for (link, target) in [
        ("/home/u", "/data/u"),
        ("/lib", "/usr/lib"),
        ("/w/p/link", "/data/u/.crabtalk"),
        ("/w/p/up", "/data"),
        ("/shortcut", "/w/p"),
        ("/w/p/out", "/etc"),
    ] {
        if let Ok(rest) = clean.strip_prefix(link) {
            return lexical(&Path::new(target).join(rest));
        }
    }
    Some(clean)
}

fn reach(path: &Path) -> Reach {
    let home = Path::new("/data/u/.crabtalk");
    if path.starts_with(home.join("config/skills")) {
        Reach::Readable
    } else if path.starts_with(home) {
        Reach::Closed
    } else if home.starts_with(path) {
        Reach::Above
    } else {
        Reach::Open
    }
}

fn says(rules: &str, command: &str) -> Permission {
    let call = Call {
        resolve: &linked,
        reach: &reach,
        ..Call::bash(rules, command)
    };
    call.says()
}

const RULES: &str = "bash(cat *): allow\nbash(grep *): allow\nbash(cp *): allow\nbash(cd *): allow\n\
    bash(ls*): allow\nbash(unknown *): allow\nbash(curl *): allow\nbash(rg *): allow";

#[test]
fn the_closed_home_is_closed_to_arguments() {
    for command in [
        "cat ~/.crabtalk/config/config.toml",
        "cat /home/u/.crabtalk/config/config.toml",
        "cat ../../home/u/.crabtalk/x",
        "cat link/config/config.toml",
        "cat link",
        "unknown --file=/home/u/.crabtalk/x",
        "unknown --file=link/x",
        "unknown --file=link",
        "unknown -flink/x",
        "unknown -flink",
        "unknown type=bind,src=/home/u/.crabtalk,dst=/x",
        "unknown a:/home/u/.crabtalk/x",
        "unknown 'x /home/u/.crabtalk/y'",
        "curl file:///home/u/.crabtalk/x",
        "curl file:///home/u/%2ecrabtalk/x",
        "cd /home/u && cat .crabtalk/config/config.toml",
        "cd ..; cd ..; cd home/u; cat .crabtalk/x",
        "cd link && cat config.toml",
        "cp x ~/.crabtalk/config/skills/s/SKILL.md",
        "grep -r key /home/u",
        "grep -r key /",
        "cp -r up/u x",
        "cd ~ && rg key",
    ] {
        assert_ne!(says(RULES, command), Allow, "{command}");
    }
    for (command, want) in [("cat link/x", Deny), ("grep -r key /home/u", Ask)] {
        assert_eq!(says(RULES, command), want, "{command}");
    }
    for command in [
        "cat x/y --z=1 https://example.com/home/u",
        "cat ~/.crabtalk/config/skills/s/SKILL.md",
        "ls /home/u",
        "cd src && cat x",
        "cat ~/.crabtalk2/x",
    ] {
        assert_eq!(says(RULES, command), Allow, "{command}");
    }
    for (command, want) in [
        ("cat ~/.crabtalk/x", Deny),
        ("sh -c 'cat /home/u/.crabtalk/x'", Deny),
        ("echo x > ~/.crabtalk/config/agents/crab.md", Deny),
        ("echo x > link/x", Deny),
        ("cat < link/x", Deny),
        ("cat < link/config/skills/s", Allow),
        ("echo x >> link/config/skills/s", Deny),
        ("cd link; echo x > y", Deny),
        ("ls ~", Allow),
    ] {
        assert_eq!(says("bash: allow", command), want, "{command}");
    }
}

#[test]
fn what_lies_below_proc_is_asked_about() {
    for command in [
        "cat /proc/self/cwd/../x",
        "cat /proc/1/environ",
        "cat ../../proc/self/environ",
        "unknown --f=/proc/self/x",
    ] {
        assert_eq!(says(RULES, command), Ask, "{command}");
    }
    for command in [
        "a > /proc/self/cwd/../x",
        "a < /proc/self/environ",
        "cat /proc/self/environ",
        "cat /proc/12/mem",
    ] {
        assert_eq!(
            says("bash: allow\nread: allow\nwrite: allow", command),
            Ask,
            "{command}"
        );
    }
}

#[test]
fn rules_and_paths_are_both_resolved() {
    for (rules, tool, path, cwd, want) in [
        (
            "read: allow\nread(~/.ssh/**): deny",
            "read",
            "/data/u/.ssh/id",
            "/w/p",
            Deny,
        ),
        (
            "read: allow\nread(/lib/**): deny",
            "read",
            "/usr/lib/x",
            "/w/p",
            Deny,
        ),
        (
            "read: allow\nread(secret/*): deny",
            "read",
            "/w/p/secret/x",
            "/shortcut",
            Deny,
        ),
        (
            "edit: ask\nedit(src/**): allow",
            "edit",
            "/w/p/src/x",
            "/shortcut",
            Allow,
        ),
        // A link that the work brings along opens nothing.
        (
            "edit: ask\nedit(out/**): allow",
            "edit",
            "/etc/x",
            "/w/p",
            Ask,
        ),
        // Below the home that is a link nothing is read unasked.
        ("", "read", "/data/u/.ssh/id", "/home/u", Ask),
        ("", "read", "/data/u/.ssh/id", "/data/u", Ask),
        ("", "read", "/data/u/.ssh/id", "/data", Ask),
        ("", "read", "/w/p/x", "/shortcut", Allow),
    ] {
        let call = Call {
            resolve: &linked,
            cwd,
            ..Call::file(rules, tool, path)
        };
        assert_eq!(call.says(), want, "{rules} {tool} {path} in {cwd}");
    }
}
