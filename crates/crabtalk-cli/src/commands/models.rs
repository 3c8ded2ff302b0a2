//! `models` and `providers`: lists and configures them.

use super::{Column, Context, switch};
use crate::args::{Models, Named, Providers};
use crate::error::Error;
use crate::{json, stdin};
use crabtalk_proto::{
    DeleteProviderMsg, ListModelsMsg, ListProvidersMsg, ModelInfo, ProviderInfo, ResourceKind,
    SetActiveModelMsg, SetProviderMsg, TestModelMsg,
};
use serde_json::{Value, json};
use std::path::Path;

/// The text shown if no model is configured.
const NONE_YET: &str =
    "crabtalk: no provider is configured; the first run looks for a key or a local server";

pub(super) async fn models(context: &mut Context, command: Models) -> Result<(), Error> {
    match command {
        Models::List => list_models(context).await,
        Models::Use { name } => {
            let request = SetActiveModelMsg {
                model: name.clone(),
            };
            context.call(request).await?;
            let said = format!("crabtalk: default model: {name}");
            context.done(json!({"model": name}), &said)
        }
        Models::Test { name } => {
            let model = name.unwrap_or_default();
            let test = context.call(TestModelMsg { model }).await?;
            super::init::told(context, &test)
        }
    }
}

async fn list_models(context: &mut Context) -> Result<(), Error> {
    let listed = context.call(ListModelsMsg {}).await?;
    let columns: &[Column<ModelInfo>] = &[
        ("model", |model| model.name.clone()),
        ("id", |model| model.id.clone()),
        ("provider", |model| model.provider.clone()),
        ("state", |model| state(model.active, model.enabled, "")),
        ("kind", |model| text_of(&json::of(model)["kind"])),
        ("context", |model| {
            model.context.map(|n| n.to_string()).unwrap_or_default()
        }),
        ("price in/out", price),
    ];
    context.list(&listed.models, columns, NONE_YET)
}

/// The state column.
fn state(active: bool, enabled: bool, on: &str) -> String {
    match (active, enabled) {
        (true, _) => "active",
        (false, true) => on,
        (false, false) => "off",
    }
    .to_owned()
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Prices of a million tokens; built-in prices have a tilde.
fn price(model: &ModelInfo) -> String {
    let about = if model.price_is_approximate { "~" } else { "" };
    match (model.input_price, model.output_price) {
        (Some(input), Some(output)) => format!("{about}{input}/{output}"),
        (Some(_) | None, _) => String::new(),
    }
}

pub(super) async fn providers(context: &mut Context, command: Providers) -> Result<(), Error> {
    match command {
        Providers::List => list_providers(context).await,
        Providers::Show(Named { name }) => show_provider(context, &name).await,
        Providers::Set { name, file } => {
            let config = table(&file)?;
            let request = SetProviderMsg {
                name: name.clone(),
                config,
            };
            context.call(request).await?;
            let said = format!("crabtalk: provider {name} saved");
            context.done(json!({"set": name}), &said)
        }
        Providers::Rm(Named { name }) => {
            let request = DeleteProviderMsg { name: name.clone() };
            context.call(request).await?;
            let said = format!("crabtalk: removed provider {name}");
            context.done(json!({"removed": name}), &said)
        }
        Providers::Enable(Named { name }) => {
            switch(context, ResourceKind::Provider, "provider", name, true).await
        }
        Providers::Disable(Named { name }) => {
            switch(context, ResourceKind::Provider, "provider", name, false).await
        }
    }
}

/// Reads a provider's table from a file or standard input, but not from the command
/// line, where other users could read the key.
fn table(file: &Path) -> Result<String, Error> {
    if file.as_os_str() == "-" {
        return stdin::read(std::io::stdin().lock());
    }
    std::fs::read_to_string(file)
        .map_err(|e| Error::io(format_args!("read {}", file.display()), &e))
}

async fn list(context: &mut Context) -> Result<Vec<ProviderInfo>, Error> {
    let listed = context.call(ListProvidersMsg {}).await?;
    Ok(listed.providers)
}

/// The settings of a provider as JSON.
fn config(provider: &ProviderInfo) -> Value {
    serde_json::from_str(&provider.config).unwrap_or_default()
}

async fn list_providers(context: &mut Context) -> Result<(), Error> {
    let providers = list(context).await?;
    let object = |provider| json::provider(provider, config(provider));
    if context.for_scripts(providers.iter().map(object))? {
        return Ok(());
    }
    let row = |provider: ProviderInfo| {
        let config = config(&provider);
        let models = config["models"].as_array().into_iter().flatten();
        // An entry is a name or a table with a name.
        let name = |model: &Value| {
            let name = model.as_str().or(model["name"].as_str());
            name.unwrap_or_default().to_owned()
        };
        vec![
            provider.name,
            text_of(&config["kind"]),
            state(provider.active, provider.enabled, "on"),
            models.map(name).collect::<Vec<_>>().join(", "),
            text_of(&config["base_url"]),
        ]
    };
    let rows = providers.into_iter().map(row);
    let header = ["provider", "kind", "state", "models", "address"];
    context.print_table(&header, rows, NONE_YET)
}

async fn show_provider(context: &mut Context, name: &str) -> Result<(), Error> {
    let providers = list(context).await?;
    let Some(provider) = providers.iter().find(|provider| provider.name == name) else {
        let known: Vec<&str> = providers.iter().map(|p| p.name.as_str()).collect();
        return Err(Error::Failed(format!(
            "unknown provider {name:?}; there are: {}",
            known.join(", ")
        )));
    };
    let value = config(provider);
    let shown = serde_json::to_string_pretty(&value).unwrap_or_default();
    context.print(&json::provider(provider, value), &shown)
}
