//! Lists and configures providers and models.

use super::Session;
use super::mcps::check_has_mcp;
use crate::edit;
use crate::error::Error;
use crate::models::Models;
use crabtalk_config::{Config, ConfigFile, MASK, Provider, is_name, parse_section};
use crabtalk_model::Kind;
use crabtalk_proto::*;
use serde_json::{Value, json};

fn kind(kind: &str) -> ProviderKind {
    match Kind::parse(kind) {
        Some(Kind::OpenAi) => ProviderKind::Openai,
        Some(Kind::Anthropic) => ProviderKind::Anthropic,
        Some(Kind::Google) => ProviderKind::Google,
        Some(Kind::Bedrock) => ProviderKind::Bedrock,
        Some(Kind::Azure) => ProviderKind::Azure,
        Some(Kind::Ollama) => ProviderKind::Ollama,
        Some(Kind::Offline) | None => ProviderKind::Unknown,
    }
}

fn as_json(provider: &Provider) -> Value {
    serde_json::to_value(provider).expect("string keys and finite numbers are JSON")
}

fn unknown(config: &Config, name: &str) -> Error {
    let known: Vec<&str> = config.provider.iter().map(|p| p.name.as_str()).collect();
    let known = match known.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    Error::NotFound(format!(
        "config.toml has no provider {name:?}; there are: {known}"
    ))
}

fn provider<'a>(config: &'a Config, name: &str) -> Option<&'a Provider> {
    config.provider.iter().find(|p| p.name == name)
}

impl Session {
    fn models(&self) -> &Models {
        &self.node.models
    }

    pub(super) async fn providers(&self, _: ListProvidersMsg) -> Result<ProviderList, Error> {
        let config = self.node.config();
        let models = self.models().list();
        let active = models.iter().find(|m| m.active).map(|m| m.provider.clone());
        let is_active = |name: &str| active.as_deref() == Some(name);
        let configured = config.provider.iter().map(|provider| ProviderInfo {
            name: provider.name.clone(),
            active: is_active(&provider.name),
            config: as_json(provider).to_string(),
            enabled: provider.enabled,
        });
        let mut providers: Vec<_> = configured.collect();
        if let Some(found) = self.models().detected() {
            let models: Vec<&str> = found.models.iter().map(|m| m.name.as_str()).collect();
            let mut table = json!({"kind": found.kind.as_str(), "models": models});
            if let Some(url) = &found.base_url {
                table["base_url"] = url.as_str().into();
            }
            if found.api_key.is_some() {
                table["api_key"] = MASK.into();
            }
            providers.push(ProviderInfo {
                active: is_active(&found.name),
                name: found.name,
                config: table.to_string(),
                enabled: true,
            });
        }
        providers.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(ProviderList { providers })
    }

    pub(super) async fn every_model(&self, _: ListModelsMsg) -> Result<ModelList, Error> {
        Ok(self.model_list())
    }

    pub(super) fn model_list(&self) -> ModelList {
        let live = self.models().list().into_iter().map(|model| ModelInfo {
            kind: kind(model.kind.as_str()).into(),
            name: model.name,
            provider: model.provider,
            active: model.active,
            enabled: true,
            id: model.id,
            context: model.context,
            input_price: model.price.map(|price| price.input),
            output_price: model.price.map(|price| price.output),
            price_is_approximate: model.price_is_approximate,
            images: Some(model.images),
        });
        let config = self.node.config();
        let off = config.provider.iter().filter(|p| !p.enabled);
        let off = off.flat_map(|provider| {
            provider.models.iter().map(|model| ModelInfo {
                name: model.name.clone(),
                provider: provider.name.clone(),
                kind: kind(provider.kind.as_str()).into(),
                id: model.id.clone(),
                context: model.context,
                input_price: model.price.map(|price| price.input),
                output_price: model.price.map(|price| price.output),
                images: model.images,
                ..ModelInfo::default()
            })
        });
        ModelList {
            models: live.chain(off).collect(),
        }
    }

    pub(super) async fn put_provider(&self, request: SetProviderMsg) -> Result<(), Error> {
        let SetProviderMsg { name, config } = request;
        if !is_name(&name) {
            return Err(Error::Invalid(format!(
                "{name:?} is not a provider's name: use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit"
            )));
        }
        let mut table = parse_section(&config)
            .map_err(|e| Error::Invalid(format!("provider {name}: {}", e.with_causes())))?;
        if !table.is_object() {
            return Err(Error::Invalid(
                "the provider's config is not a table: send its keys as JSON, TOML or YAML".into(),
            ));
        }
        self.node
            .edit(move |file, config| {
                let known = provider(config, &name);
                let shown = known.and_then(|p| Some(p.base_url.as_ref()?.shown()));
                keep_masked_url(&mut table, shown.as_deref());
                Ok(file.set(&["provider", &name], &table)?)
            })
            .await
    }

    pub(super) async fn remove_provider(
        &self,
        DeleteProviderMsg { name }: DeleteProviderMsg,
    ) -> Result<(), Error> {
        self.node
            .edit(move |file, config| {
                let gone = provider(config, &name).ok_or_else(|| unknown(config, &name))?;
                file.remove(&["provider", &name]);
                // The first remaining model becomes the active one.
                let active = config.model.as_deref();
                if gone.models.iter().any(|m| Some(m.name.as_str()) == active) {
                    file.remove(&["model"]);
                }
                Ok(())
            })
            .await
    }

    pub(super) async fn choose_model(
        &self,
        SetActiveModelMsg { model }: SetActiveModelMsg,
    ) -> Result<(), Error> {
        if model.trim().is_empty() {
            return Err(Error::Invalid("name the model to use".into()));
        }
        let models = self.model_list().models;
        match models.iter().find(|known| known.name == model) {
            Some(known) if known.enabled => {}
            Some(known) => {
                return Err(Error::Invalid(format!(
                    "the provider {} of {model:?} is switched off; switch it on first",
                    known.provider
                )));
            }
            None => {
                let known: Vec<&str> = models.iter().map(|m| m.name.as_str()).collect();
                let nearest = crabtalk_config::nearest(&model, known.iter().copied());
                let hint = match (nearest, known.is_empty()) {
                    (Some(near), _) => format!("; did you mean {near:?}?"),
                    (None, true) => "; none is configured yet".to_owned(),
                    (None, false) => format!("; there are: {}", known.join(", ")),
                };
                return Err(Error::NotFound(format!("unknown model {model:?}{hint}")));
            }
        }
        self.node
            .edit(move |file, _| Ok(file.set(&["model"], &model.into())?))
            .await
    }

    /// Changes one key of the configuration, or all of it.
    pub(super) async fn change_config(&self, request: SetConfigMsg) -> Result<(), Error> {
        let SetConfigMsg {
            key,
            value,
            text,
            base,
        } = request;
        if key.is_empty() {
            let base = Some(base).filter(|base| !base.is_empty());
            return self.node.replace_config(base, text).await;
        }
        let value: Option<serde_json::Value> = value
            .map(|value| serde_json::from_str(&value))
            .transpose()
            .map_err(|e| Error::Invalid(format!("the value of {key} is not JSON: {e}")))?;
        self.node
            .edit(move |file, _| edit::set(file, &key, value.as_ref()))
            .await
    }

    pub(super) async fn switch(&self, request: SetEnabledMsg) -> Result<(), Error> {
        let SetEnabledMsg {
            kind,
            name,
            enabled,
        } = request;
        match ResourceKind::try_from(kind) {
            Ok(ResourceKind::Provider) => {
                self.node
                    .edit(move |file, config| {
                        provider(config, &name).ok_or_else(|| unknown(config, &name))?;
                        Ok(file.set(&["provider", &name, "enabled"], &enabled.into())?)
                    })
                    .await
            }
            Ok(ResourceKind::Mcp) => {
                self.node
                    .edit(move |file, config| {
                        check_has_mcp(config, &name)?;
                        Ok(file.set(&["mcp", &name, "enabled"], &enabled.into())?)
                    })
                    .await
            }
            Ok(ResourceKind::Skill) => {
                let skills = self.skills(ListSkillsMsg::default()).await?.skills;
                let is_it = |known: &SkillInfo| known.name.eq_ignore_ascii_case(&name);
                if !skills.iter().any(is_it) {
                    return Err(Error::NotFound(format!("unknown skill {name:?}")));
                }
                self.node
                    .edit(move |file, config| switch_skill(file, config, &name, enabled))
                    .await
            }
            Ok(ResourceKind::Unknown | ResourceKind::ExternalSource) | Err(_) => {
                Err(Error::Invalid(
                    "give a kind to switch: a provider, an MCP server or a skill".into(),
                ))
            }
        }
    }
}

fn switch_skill(
    file: &mut ConfigFile,
    config: &Config,
    name: &str,
    enabled: bool,
) -> Result<(), Error> {
    let mut disabled = config.skills.disabled.clone();
    let before = disabled.len();
    disabled.retain(|off| !off.eq_ignore_ascii_case(name));
    if !enabled {
        disabled.push(name.to_owned());
    }
    if before == disabled.len() && enabled {
        return Ok(());
    }
    Ok(file.set(&["skills", "disabled"], &disabled.into())?)
}

/// Restores the masked password of a URL that the client sent back unchanged.
fn keep_masked_url(table: &mut Value, shown: Option<&str>) {
    let Some(shown) = shown.filter(|shown| shown.contains(MASK)) else {
        return;
    };
    if table["base_url"].as_str() == Some(shown) {
        table["base_url"] = MASK.into();
    }
}
