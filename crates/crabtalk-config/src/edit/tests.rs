use super::*;
use serde_json::json;
use std::fs;

const TEXT: &str = r#"# mine
model = "a" # the good one

# work
[provider.x] # at work
kind = "openai" # speaks it
api_key = "sk-1" # hush
headers = { a = "1" }
models = ["a"]

[memory]
enabled = true
"#;

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn open(&self) -> ConfigFile {
        ConfigFile::open(&self.path()).unwrap()
    }
}

fn no_env(_: &str) -> Option<std::ffi::OsString> {
    None
}

#[test]
fn edit_keeps_comments_and_masked_secrets() {
    let folder = Folder::with(TEXT);
    let mut file = folder.open();
    file.set(&["model"], &json!("b")).unwrap();
    let provider = json!({
        "kind": "anthropic", "api_key": "***", "headers": {"a": "***", "b": "2"},
        "models": ["a", {"name": "c", "context": 5}], "max_retries": 1,
    });
    file.set(&["provider", "x"], &provider).unwrap();
    let (config, warnings) = file.save(&no_env).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(config.provider[0].key().unwrap().unwrap().expose(), "sk-1");
    assert_eq!(
        folder.text(),
        r#"# mine
model = "b" # the good one

# work
[provider.x] # at work
kind = "anthropic" # speaks it
api_key = "sk-1" # hush
headers = { a = "1" , b = "2" }
models = ["a", { context = 5, name = "c" }]
max_retries = 1

[memory]
enabled = true
"#
    );
}

#[test]
fn tables_are_added_at_the_end_and_removed() {
    let folder = Folder::with("[memory]\nenabled = true\n");
    let mut file = folder.open();
    file.set(
        &["mcp", "m"],
        &json!({"command": "m", "env": {"K": "v"}, "args": null}),
    )
    .unwrap();
    file.save(&no_env).unwrap();
    let text = "[memory]\nenabled = true\n\n[mcp.m]\ncommand = \"m\"\nenv = { K = \"v\" }\n";
    assert_eq!(folder.text(), text);
    let mut file = folder.open();
    assert!(file.remove(&["mcp", "m"]));
    assert!(!file.remove(&["mcp", "m"]));
    assert!(!file.remove(&["nothing", "m"]));
    file.save(&no_env).unwrap();
    assert_eq!(folder.text(), "[memory]\nenabled = true\n");
}

#[test]
fn concurrent_change_is_a_conflict() {
    let folder = Folder::with(TEXT);
    let mut file = folder.open();
    file.set(&["model"], &json!("b")).unwrap();
    fs::write(folder.path(), "model = \"theirs\"\n").unwrap();
    assert!(matches!(file.save(&no_env), Err(Error::Conflict(_))));
    assert_eq!(folder.text(), "model = \"theirs\"\n");
    fs::remove_file(folder.path()).unwrap();
    assert!(
        matches!(file.save(&no_env), Err(Error::Conflict(_))),
        "removed is changed"
    );
}

#[test]
fn invalid_file_is_never_overwritten() {
    let folder = Folder::with("model = \n");
    let error = ConfigFile::open(&folder.path()).unwrap_err().to_string();
    assert!(error.contains("config.toml:1:"), "{error}");
    assert_eq!(folder.text(), "model = \n");
}

#[test]
fn edit_to_invalid_configuration_is_not_saved() {
    let folder = Folder::with(TEXT);
    let mut file = folder.open();
    file.set(&["provider", "x", "kind"], &json!("opnai"))
        .unwrap();
    let error = file.save(&no_env).unwrap_err().to_string();
    assert!(
        error.contains("config.toml:6:8: provider.x.kind: expected one of"),
        "{error}"
    );
    assert_eq!(folder.text(), TEXT);
}

#[test]
fn senseless_edits_are_refused() {
    let folder = Folder::with(TEXT);
    for (path, value, want) in [
        (&["model", "x"][..], json!(1), "model is not a table"),
        (
            &["provider", "y", "api_key"][..],
            json!("***"),
            "provider.y.api_key: *** keeps the present secret, but none is set: send the secret itself",
        ),
        (
            &["owners"][..],
            json!(["***"]),
            "owners: a list cannot keep a secret in it",
        ),
    ] {
        assert_eq!(
            folder.open().set(path, &value).unwrap_err().to_string(),
            want
        );
    }
}

#[test]
fn sections_are_read_in_three_languages() {
    for text in ["{\"kind\": \"openai\"}", "kind = 'openai'"] {
        assert_eq!(parse_section(text).unwrap(), json!({"kind": "openai"}));
    }
}

#[test]
fn missing_file_is_created() {
    let folder = Folder::with("");
    fs::remove_file(folder.path()).unwrap();
    let mut file = folder.open();
    file.set(&["model"], &json!("b")).unwrap();
    file.save(&no_env).unwrap();
    assert_eq!(folder.text(), "model = \"b\"\n");
}
