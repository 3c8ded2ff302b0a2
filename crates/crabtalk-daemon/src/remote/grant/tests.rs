use super::*;
use std::path::PathBuf;

/// A configuration with one token, and whom it reaches of some.
fn reach(token: &str) -> String {
    let hash = "a".repeat(64);
    let text = format!(
        "owners = [\"user\", \"user/*\", \"ann\"]\n[token.phone]\nhash = \"sha256:{hash}\"\n{token}\n"
    );
    let parsed = Config::parse(&text, Path::new("config.toml"), &|_| None);
    let config = parsed.expect("a configuration").0;
    let grant = Grant::new(config.token[0].clone()).expect("a name");
    let senders = [
        "phone",
        "tg:1",
        "user",
        "user/p",
        "ann",
        "cron",
        "event:x",
        "delegate:7",
    ];
    let reached: Vec<&str> = senders
        .into_iter()
        .filter(|sender| grant.sender(&config, sender))
        .collect();
    format!(
        "{} owner={} all={}",
        reached.join(" "),
        grant.acts_for_owner(&config),
        grant.everything()
    )
}

#[test]
fn what_a_token_reaches_by_role_and_patterns() {
    for (token, want) in [
        ("role = \"talk\"", "phone owner=false all=false"),
        (
            "role = \"talk\"\nsenders = \"*\"",
            "phone tg:1 owner=false all=false",
        ),
        (
            "role = \"talk\"\nsenders = \"user\"",
            " owner=false all=false",
        ),
        (
            "role = \"talk\"\nsenders = [\"event:*\", \"tg:*\"]",
            "tg:1 event:x owner=false all=false",
        ),
        ("role = \"operate\"", "phone tg:1 owner=false all=false"),
        (
            "role = \"admin\"",
            "phone tg:1 user user/p ann cron event:x delegate:7 owner=true all=true",
        ),
        (
            "role = \"admin\"\nsenders = \"tg:*\"",
            "tg:1 owner=false all=false",
        ),
        (
            "role = \"admin\"\nsenders = \"ann\"",
            "ann owner=true all=false",
        ),
        (
            "role = \"admin\"\nagents = \"a\"",
            "phone tg:1 user user/p ann cron event:x delegate:7 owner=true all=false",
        ),
    ] {
        assert_eq!(reach(token), want, "{token}");
    }
}

#[test]
fn only_an_admin_who_names_an_owner_is_one() {
    let hash = "a".repeat(64);
    for (role, sender, named, owner) in [
        ("admin", "user", true, true),
        ("admin", "user", false, false),
        ("admin", "tg:1", true, false),
        ("operate", "user", true, false),
        ("talk", "user", true, false),
    ] {
        let text = format!("[token.phone]\nhash = \"sha256:{hash}\"\nrole = \"{role}\"\n");
        let parsed = Config::parse(&text, Path::new("config.toml"), &|_| None);
        let config = parsed.expect("a configuration").0;
        let grant = Grant::new(config.token[0].clone()).expect("a name");
        let principal = grant.principal(&config, sender, named);
        assert_eq!(principal.may_be_owner(), owner, "{role} as {sender}");
    }
}

#[test]
fn folders_are_those_below_its_own_once_links_are_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let root: PathBuf = folder.path().canonicalize().expect("it is there");
    std::os::unix::fs::symlink(&root, root.join("link")).expect("a link");
    let hash = "a".repeat(64);
    let text = format!(
        "[token.phone]\nhash = \"sha256:{hash}\"\nrole = \"talk\"\ncwd = \"{}/link\"\n",
        root.display()
    );
    let parsed = Config::parse(&text, Path::new("config.toml"), &|_| None);
    let config = parsed.expect("a configuration").0;
    let grant = Grant::new(config.token[0].clone()).expect("a name");
    assert!(grant.folder(&root) && grant.folder(&root.join("below")));
    let beside = PathBuf::from(format!("{}-beside", root.display()));
    assert!(!grant.folder(&beside) && !grant.folder(Path::new("/")));
}
