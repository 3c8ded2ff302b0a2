//! Configuration into the values that the other crates take.

use crate::edit;
use crate::login;
use crate::models::Chosen;
use crabtalk_config as config;
use crabtalk_domain::{AgentConfig, AgentName, Budget, Permission, PermissionRule, Sandbox, Scope};
use crabtalk_model::{Kind, ModelConfig, Price, ProviderConfig, Secret};
use crabtalk_runtime::{Catalog, Limits};
use crabtalk_store::SyncPolicy;
use crabtalk_tools::SandboxConfig;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The prompt of the agent that is there without any file.
pub(crate) const DEFAULT_PROMPT: &str = "You are Crab, a capable assistant on the user's own machine. Use your \
     tools when they help, say briefly what you did, and ask when a decision is the user's.";

/// Everything that a reload replaces.
pub(crate) struct Composed {
    pub(crate) config: config::Config,
    pub(crate) catalog: Catalog,
    pub(crate) models: Chosen,
    /// What `config.toml` said.
    pub(crate) text: Option<String>,
}

/// Reads the whole configuration. A broken agent file is reported and left
/// out; a broken `config.toml` is an error.
pub(crate) fn compose(home: &config::Home) -> Result<Composed, String> {
    let env = login::env;
    let explain = |error: config::Error| error.with_causes();
    let file = home.config_file();
    let text = edit::text(home).map_err(explain)?;
    let parsed = config::Config::parse(text.as_deref().unwrap_or_default(), &file, &env);
    let (config, warnings) = parsed.map_err(explain)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let models = chosen(&config)?;
    let catalog = catalog(home, &config)?;
    Ok(Composed {
        config,
        catalog,
        models,
        text,
    })
}

/// The models that a configuration chooses.
pub(crate) fn chosen(config: &config::Config) -> Result<Chosen, String> {
    let providers = config.provider.iter().filter(|p| p.enabled).map(provider);
    let is_off = |model: &&String| {
        let mut off = config.provider.iter().filter(|p| !p.enabled);
        off.any(|p| p.models.iter().any(|m| m.name == **model))
    };
    // The active model stays noted while its provider is switched off.
    let active = config.model.as_ref().filter(|model| !is_off(model));
    Ok(Chosen {
        providers: providers.collect::<Result<_, _>>()?,
        active: active.cloned(),
        detect: config.provider.is_empty(),
    })
}

fn catalog(home: &config::Home, config: &config::Config) -> Result<Catalog, String> {
    let mut agents = BTreeMap::new();
    let entries = config::load_agents(&home.agents_dir()).map_err(|e| e.with_causes())?;
    let files = entries.len();
    for entry in entries {
        match entry.agent {
            Ok((file, warnings)) => {
                for warning in warnings {
                    tracing::warn!("{warning}");
                }
                let name = AgentName::new(&entry.name).map_err(|e| e.to_string())?;
                agents.insert(name.clone(), Arc::new(agent(home, config, name, file)));
            }
            Err(error) => tracing::error!("{}; the agent is left out", error.with_causes()),
        }
    }
    let default_agent = AgentName::new(&config.default_agent).map_err(|e| e.to_string())?;
    // A broken file is no reason to put another agent in its place.
    if files == 0 {
        let mut crab = AgentConfig::new(default_agent.clone(), DEFAULT_PROMPT);
        crab.sandbox = sandbox_mode(config.runs.sandbox);
        agents.insert(default_agent.clone(), Arc::new(crab));
    }
    if !agents.contains_key(&default_agent) {
        tracing::warn!(
            "there is no agent {default_agent}, the default one: write {}, or set default_agent in {}",
            home.agents_dir()
                .join(format!("{default_agent}.md"))
                .display(),
            home.config_file().display()
        );
    }
    Ok(Catalog {
        agents,
        default_agent,
        owners: config.owners.clone(),
        user_home: home.user_home().map(|folder| settled(folder.into())),
        memory_enabled: config.memory.enabled,
        resume: config.runs.resume == config::Resume::Auto,
        limits: Limits {
            queued_runs: config.limits.queued_runs as usize,
            delegate_depth: config.limits.delegate_depth,
            ask_timeout: Duration::from_secs(config.runs.ask_timeout_secs),
            answer_bytes: config.limits.answer_bytes as usize,
            answer_calls: config.limits.answer_calls as usize,
            answer_time: Duration::from_secs(config.limits.answer_secs),
        },
    })
}

fn agent(
    home: &config::Home,
    config: &config::Config,
    name: AgentName,
    file: config::AgentFile,
) -> AgentConfig {
    let settings = file.settings;
    let defaults = AgentConfig::new(name, file.prompt);
    AgentConfig {
        description: settings.description.unwrap_or_default(),
        model: settings.model.unwrap_or_default(),
        fallback: settings.fallback,
        thinking: settings.thinking.unwrap_or_default(),
        max_iterations: settings.max_iterations.unwrap_or(defaults.max_iterations),
        compact_threshold: match settings.compact_threshold {
            Some(config::CompactThreshold::Off) => None,
            Some(config::CompactThreshold::Tokens(tokens)) => Some(tokens),
            None => defaults.compact_threshold,
        },
        compact_prompt: settings.compact_prompt,
        scope: Scope {
            tools: settings.tools,
            skills: settings.skills,
            mcps: settings.mcps,
            members: settings.members,
        },
        permissions: settings.permissions.into_iter().map(rule).collect(),
        sandbox: sandbox_mode(settings.sandbox.unwrap_or(config.runs.sandbox)),
        cwd: settings.cwd.map(|cwd| settled(home.expand_tilde(&cwd))),
        budget: Budget {
            tokens_per_day: settings.budget.tokens_per_day,
            money_per_day: settings.budget.money_per_day,
        },
        ..defaults
    }
}

/// A folder without links on its way, which are followed when the owner says
/// which folder it is and never after. One that does not exist yet is taken as
/// it is written.
fn settled(folder: PathBuf) -> PathBuf {
    folder.canonicalize().unwrap_or(folder)
}

fn sandbox_mode(mode: config::SandboxMode) -> Sandbox {
    match mode {
        config::SandboxMode::Off => Sandbox::Off,
        config::SandboxMode::On => Sandbox::On,
        config::SandboxMode::Strict => Sandbox::Strict,
    }
}

fn rule(rule: config::PermissionRule) -> PermissionRule {
    PermissionRule {
        tool: rule.tool,
        pattern: rule.pattern,
        permission: match rule.permission {
            config::Permission::Allow => Permission::Allow,
            config::Permission::Ask => Permission::Ask,
            config::Permission::Deny => Permission::Deny,
        },
    }
}

pub(crate) fn provider(provider: &config::Provider) -> Result<ProviderConfig, String> {
    let kind = Kind::parse(provider.kind.as_str()).ok_or_else(|| {
        format!(
            "provider.{}: the kind {} is not built yet; there are: {}",
            provider.name,
            provider.kind.as_str(),
            Kind::ALL.map(Kind::as_str).join(", ")
        )
    })?;
    // A missing key is no reason not to start: calls say what is missing.
    let (api_key, key_problem) = match provider.key() {
        Ok(key) => (key.map(|key| Secret::new(key.expose())), None),
        Err(error) => (None, Some(error.with_causes())),
    };
    let headers = provider.headers.iter();
    Ok(ProviderConfig {
        base_url: provider.base_url.as_ref().map(|url| url.value().to_owned()),
        api_key,
        key_problem,
        models: provider.models.iter().map(model).collect(),
        headers: headers
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .collect(),
        max_retries: provider.max_retries,
        timeout: Duration::from_secs(provider.timeout_secs),
        ..ProviderConfig::new(&provider.name, kind)
    })
}

fn model(model: &config::Model) -> ModelConfig {
    ModelConfig {
        name: model.name.clone(),
        id: model.id.clone(),
        context: model.context,
        price: model
            .price
            .map(|price| Price::new(price.input, price.output)),
        images: model.images,
    }
}

pub(crate) fn sync_policy(policy: config::SyncPolicy) -> SyncPolicy {
    match policy {
        config::SyncPolicy::Step => SyncPolicy::Step,
        config::SyncPolicy::Run => SyncPolicy::Run,
        config::SyncPolicy::Never => SyncPolicy::Never,
    }
}

/// GATE-5. Whether it holds for an agent is in the agent's own settings.
pub(crate) fn sandbox(config: &config::Config) -> SandboxConfig {
    let sandbox = &config.sandbox;
    SandboxConfig {
        network: sandbox.network,
        read: sandbox.read.clone(),
        write: sandbox.write.clone(),
        ..SandboxConfig::default()
    }
}
