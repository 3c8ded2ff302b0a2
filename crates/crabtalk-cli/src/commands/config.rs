//! `config`: shows the effective configuration, and edits the file without losing comments.

use super::Context;
use crate::args::Config;
use crate::editor::Written;
use crate::error::Error;
use crabtalk_config::nearest;
use crabtalk_proto::{Client, GetConfig, SetConfigMsg};
use serde_json::{Value, json};

/// The initial text of a missing file.
const TEMPLATE: &str = "# The configuration of CrabTalk; the guide describes its keys.\n";

pub(super) async fn run(context: &mut Context, command: Config) -> Result<(), Error> {
    match command {
        Config::Get { key } => get(context, key).await,
        Config::Set { key, value } => {
            let value = value_of(&value);
            let said = format!("crabtalk: {key} is {value}");
            let request = SetConfigMsg {
                key: key.clone(),
                value: Some(value.to_string()),
                ..SetConfigMsg::default()
            };
            context.call(request).await?;
            context.done(json!({"key": key, "value": value}), &said)
        }
        Config::Unset { key } => {
            let request = SetConfigMsg {
                key: key.clone(),
                ..SetConfigMsg::default()
            };
            context.call(request).await?;
            let said = format!("crabtalk: {key} has its default again");
            context.done(json!({"key": key, "value": null}), &said)
        }
        Config::Edit { file } => edit(context, file).await,
        Config::Path => {
            let path = context.home.config_file().display().to_string();
            context.print(&json!({"path": path}), &path)
        }
    }
}

/// Parses a TOML value; other text is a string.
fn value_of(typed: &str) -> Value {
    let parsed: Result<toml::Table, _> = toml::from_str(&format!("value = {typed}\n"));
    let value = parsed.ok().filter(|table| table.len() == 1);
    let value = value.and_then(|table| serde_json::to_value(table.get("value")?).ok());
    value.unwrap_or_else(|| typed.into())
}

async fn get(context: &mut Context, key: Option<String>) -> Result<(), Error> {
    let answer = context.call(GetConfig {}).await?;
    let config: Value = serde_json::from_str(&answer.config)
        .map_err(|e| Error::Failed(format!("the daemon's configuration is not JSON: {e}")))?;
    let value = match &key {
        None => &config,
        Some(key) => at(&config, key)?,
    };
    let shown = match value.as_str() {
        Some(text) => text.to_owned(),
        None => serde_json::to_string_pretty(value).unwrap_or_default(),
    };
    context.print(value, &shown)
}

/// The value at a dotted key.
fn at<'a>(config: &'a Value, key: &str) -> Result<&'a Value, Error> {
    let mut value = config;
    for part in key.split('.') {
        let names = || value.as_object().into_iter().flat_map(|table| table.keys());
        value = value.get(part).ok_or_else(|| {
            let hint = match nearest(part, names().map(String::as_str)) {
                Some(near) => format!("; did you mean `{near}`?"),
                None if names().next().is_none() => String::new(),
                None => {
                    let names: Vec<&str> = names().map(String::as_str).collect();
                    format!("; there are: {}", names.join(", "))
                }
            };
            let of = match part == key {
                true => String::new(),
                false => format!(" of `{key}`"),
            };
            Error::Failed(format!("the configuration has no `{part}`{of}{hint}"))
        })?;
    }
    Ok(value)
}

async fn edit(context: &mut Context, file: Option<std::path::PathBuf>) -> Result<(), Error> {
    // Connects first, so that no edit is lost without a daemon.
    let mut connection = context.connection().await?;
    let path = context.home.config_file();
    let base = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(e) => return Err(Error::io(format_args!("read {}", path.display()), &e)),
    };
    let before = if base.is_empty() { TEMPLATE } else { &base };
    let written = Written::get(&context.home, file, "config.toml", before)?;
    let request = SetConfigMsg {
        text: written.text.clone(),
        base: base.clone(),
        ..SetConfigMsg::default()
    };
    let outcome = connection.set_config(request).await;
    written.settle(outcome.map_err(Error::from))?;
    let said = format!("crabtalk: {} is written and in force", path.display());
    context.done(json!({"path": path.display().to_string()}), &said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_toml_or_text() {
        for (typed, want) in [
            ("5", json!(5)),
            ("true", json!(true)),
            ("\"5\"", json!("5")),
            ("sonnet", json!("sonnet")),
            ("[\"a\", 'b']", json!(["a", "b"])),
            ("{ input = 3.0 }", json!({"input": 3.0})),
            ("it's", json!("it's")),
            ("1\nother = 2", json!("1\nother = 2")),
            ("", json!("")),
        ] {
            assert_eq!(value_of(typed), want, "{typed}");
        }
    }

    #[test]
    fn unknown_key_names_the_nearest() {
        let config = json!({"limits": {"queued_runs": 32}, "model": "m"});
        assert_eq!(at(&config, "limits.queued_runs").unwrap(), &json!(32));
        let error = |key: &str| at(&config, key).unwrap_err().to_string();
        assert!(error("limit").ends_with("did you mean `limits`?"));
        assert!(error("limits.x").ends_with("there are: queued_runs"));
        assert!(error("model.x").ends_with("of `model.x`"));
    }
}
