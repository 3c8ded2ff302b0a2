//! docs/guide/configuration.md lists every key and its default.

use super::*;

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/configuration.md");
    std::fs::read_to_string(page).unwrap()
}

#[test]
fn page_lists_every_key() {
    let text = r#"
        [provider.p]
        kind = "openai"
        base_url = "http://127.0.0.1:1"
        api_key = "x"
        models = [{ name = "m", id = "i", context = 1, price = { input = 1.0, output = 1.0 }, images = true }]
        headers = { a = "b" }
        [mcp.program]
        command = "x"
        args = ["y"]
        env = { A = "b" }
        [mcp.address]
        url = "https://x.example"
        headers = { a = "b" }
        oauth = { client_id = "i", client_secret = "s", scopes = ["r"] }
        [memory]
        provider = "address"
        [tcp]
        listen = "127.0.0.1:0"
    "#;
    // Tables with names of the user's choice.
    const NAMED: [&str; 5] = ["provider", "mcp", "token", "headers", "env"];
    fn keys(value: &serde_json::Value, named: bool, found: &mut Vec<String>) {
        let Some(table) = value.as_object() else {
            if let Some(list) = value.as_array() {
                list.iter().for_each(|one| keys(one, false, found));
            }
            return;
        };
        for (key, below) in table {
            if !named {
                found.push(key.clone());
            }
            keys(below, !named && NAMED.contains(&key.as_str()), found);
        }
    }
    let mut found = Vec::new();
    keys(&config(text).effective_json(), false, &mut found);
    assert!(found.len() > 60, "{found:?}");
    let page = page();
    let is_told = |key: &str| {
        [format!("`{key}`"), format!("{key} ="), format!("[{key}")]
            .iter()
            .any(|form| page.contains(form.as_str()))
    };
    let untold: Vec<_> = found.iter().filter(|key| !is_told(key)).collect();
    assert!(
        untold.is_empty(),
        "docs/guide/configuration.md lacks {untold:?}"
    );
}

/// Rows whose default is described in words.
const IN_WORDS: [(&str, &str); 1] = [("owners", "the login name depends on who runs it")];

/// Tables with names of the user's choice, empty by default.
const OF_NAMES: [&str; 2] = ["provider.NAME", "mcp.NAME"];

#[test]
fn page_lists_the_defaults() {
    let shown = config("").effective_json();
    let (mut section, mut compared) = (String::new(), 0);
    for line in page().lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            section = heading
                .trim_matches(['`', '[', ']'])
                .replace("Top level", "");
        } else if line.starts_with("## ") {
            section = "none".to_owned();
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, keys, default, _, ..] = cells[..] else {
            continue;
        };
        let is_key = keys.starts_with('`') && section != "none";
        if !is_key || OF_NAMES.contains(&section.as_str()) {
            continue;
        }
        for key in keys.split(", ").map(|key| key.trim_matches('`')) {
            if IN_WORDS.iter().any(|(name, _)| *name == key) {
                continue;
            }
            let mut at = section
                .split('.')
                .chain([key])
                .filter(|part| !part.is_empty());
            let value = at.try_fold(&shown, |value, part| value.get(part));
            let value = value.unwrap_or_else(|| panic!("`config get` lacks {section}.{key}"));
            let told = default.trim_matches('`');
            let said = match default.starts_with('`') {
                true => serde_json::from_str(told).unwrap_or_else(|e| panic!("{line}: {e}")),
                false => serde_json::Value::Null,
            };
            assert_eq!(*value, said, "{line}");
            compared += 1;
        }
    }
    assert!(compared > 35, "{compared} defaults were compared");
}
