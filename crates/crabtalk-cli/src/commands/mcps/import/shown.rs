//! Shows a server for consent, without values that may be credentials.

use serde_json::Value;

/// The text in place of a hidden value.
const HIDDEN: &str = "...";

/// Minimum length of a word that may be a key.
const KEY_LENGTH: usize = 20;

/// Formats a server in one line: program and arguments or address, and the names of variables or headers.
pub(super) fn table(table: &Value) -> String {
    let text = |key: &str| table[key].as_str().unwrap_or_default();
    let mut shown = match table["url"].as_str() {
        Some(url) => address(url),
        None => [text("command").to_owned()]
            .into_iter()
            .chain(arguments(&table["args"]))
            .collect::<Vec<_>>()
            .join(" "),
    };
    for key in ["env", "headers"] {
        let names: Vec<&str> = table[key]
            .as_object()
            .into_iter()
            .flat_map(|map| map.keys().map(String::as_str))
            .collect();
        if !names.is_empty() {
            shown.push_str(&format!(", with {key} {}", names.join(", ")));
        }
    }
    shown
}

/// The address without user and query.
fn address(url: &str) -> String {
    let (base, query) = match url.split_once('?') {
        Some((base, _)) => (base, "?..."),
        None => (url, ""),
    };
    let base = match base.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => base.to_owned(),
    };
    format!("{base}{query}")
}

/// The arguments; values of options and possible keys are hidden.
fn arguments(args: &Value) -> Vec<String> {
    let args = args.as_array().into_iter().flatten();
    let mut is_value = false;
    let args = args.filter_map(Value::as_str).map(|arg| {
        let follows = std::mem::replace(&mut is_value, arg.starts_with("--") && !arg.contains('='));
        if let Some((option, _)) = arg.split_once('=') {
            return format!("{option}={HIDDEN}");
        }
        let is_path = arg.starts_with(['/', '.', '~', '@']);
        if (follows && !is_path && !arg.starts_with('-')) || is_key(arg) {
            return HIDDEN.to_owned();
        }
        arg.to_owned()
    });
    args.collect()
}

/// Whether a word may be a key: long, plain and with digits.
fn is_key(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+');
    word.len() >= KEY_LENGTH && word.chars().all(plain) && word.chars().any(|c| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn possible_secrets_are_hidden() {
        for (server, want) in [
            (
                json!({"command": "npx", "args": ["-y", "@scope/files@1.2", "/home/me/notes"]}),
                "npx -y @scope/files@1.2 /home/me/notes",
            ),
            (
                json!({"command": "x", "args": ["--token", "s3cret", "--key=s3cret", "--root", "/srv"], "env": {"KEY": "s3cret"}}),
                "x --token ... --key=... --root /srv, with env KEY",
            ),
            (
                json!({"command": "x", "args": ["sk_live_4242424242424242"]}),
                "x ...",
            ),
            (
                json!({"url": "https://me:s3cret@x.example/mcp?key=s3cret", "headers": {"Authorization": "Bearer s3cret"}}),
                "https://x.example/mcp?..., with headers Authorization",
            ),
        ] {
            assert_eq!(table(&server), want);
        }
    }
}
