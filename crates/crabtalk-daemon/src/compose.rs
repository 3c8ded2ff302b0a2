//! Turns the configuration into values of the other crates.

use crate::login;
use crate::models::Chosen;
use crabtalk_config as config;
use crabtalk_domain::{AgentConfig, AgentName, Scope};
use crabtalk_guardian::SandboxConfig;
use crabtalk_model::{Kind, ModelConfig, Price, ProviderConfig, Secret};
use crabtalk_runtime::{Catalog, Limits};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The prompt of the built-in agent.
pub(crate) const DEFAULT_PROMPT: &str = "You are Crab, a capable assistant on the user's own machine. Use your \
     tools when they help, say briefly what you did, and ask when a decision is the user's.";

/// The name of the built-in agent (CONV-12).
pub(crate) const BUILT_IN: &str = "crab";

/// Largest configuration file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Everything that a reload replaces.
pub(crate) struct Composed {
    pub(crate) config: config::Config,
    pub(crate) catalog: Catalog,
    pub(crate) models: Chosen,
    /// The files from which it was made.
    pub(crate) source: InForce,
    /// Warnings and errors.
    pub(crate) report: Report,
}

/// The files of the configuration in force.
#[derive(Debug, Clone, Default)]
pub(crate) struct InForce {
    /// The text of `config.toml`; `None` if the file is absent.
    pub(crate) text: Option<String>,
    /// Agents that were read from a file.
    pub(crate) agents: BTreeMap<AgentName, Arc<AgentConfig>>,
}

/// Warnings and errors of a configuration that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Changed or ignored values.
    pub(crate) warnings: Vec<String>,
    /// Files or values that are not in force.
    pub(crate) errors: Vec<String>,
    /// Earlier values that remain in force because of errors.
    pub(crate) kept: Vec<String>,
}

impl Report {
    /// Writes the report to the log.
    pub(crate) fn log(&self) {
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
        for error in &self.errors {
            tracing::error!("{error}");
        }
        for kept in &self.kept {
            tracing::warn!("kept: {kept}");
        }
    }
}

/// Reads the whole configuration. A broken agent file is reported, and its agent keeps
/// its configuration of `before`, or is refused if it has none; a broken `config.toml` is
/// an error.
pub(crate) fn compose(home: &config::Home, before: &InForce) -> Result<Composed, String> {
    let mut report = Report::default();
    let env = login::env;
    let explain = |error: config::Error| error.with_causes();
    let file = home.config_file();
    let text = self::text(home).map_err(explain)?;
    let parsed = config::Config::parse(text.as_deref().unwrap_or_default(), &file, &env);
    let (config, warnings) = parsed.map_err(explain)?;
    report
        .warnings
        .extend(warnings.iter().map(ToString::to_string));
    let models = chosen(&config)?;
    for provider in &models.providers {
        if let Some(problem) = &provider.key_problem {
            report.warnings.push(problem.clone());
        }
    }
    let files = agent_files(home, &config, before, &mut report)?;
    let catalog = catalog(home, &config, &files, &mut report)?;
    let source = InForce {
        text,
        agents: files.agents,
    };
    Ok(Composed {
        config,
        catalog,
        models,
        source,
        report,
    })
}

/// The text of `config.toml`.
pub(crate) fn text(home: &config::Home) -> Result<Option<String>, config::Error> {
    config::read_limited(&home.config_file(), MAX_BYTES)
}

/// The models of a configuration.
pub(crate) fn chosen(config: &config::Config) -> Result<Chosen, String> {
    let providers = config.provider.iter().filter(|p| p.enabled).map(provider);
    let is_off = |model: &&String| {
        let mut off = config.provider.iter().filter(|p| !p.enabled);
        off.any(|p| p.models.iter().any(|m| m.name == **model))
    };
    // The configuration may name the active model of a disabled provider.
    let active = config.model.as_ref().filter(|model| !is_off(model));
    Ok(Chosen {
        providers: providers.collect::<Result<_, _>>()?,
        active: active.cloned(),
        detect: config.provider.is_empty(),
    })
}

/// The content of the agents' folder.
#[derive(Default)]
struct AgentFiles {
    agents: BTreeMap<AgentName, Arc<AgentConfig>>,
    refused: BTreeMap<AgentName, String>,
}

/// Reads the agents' files. An invalid file is never replaced by something more
/// permissive, such as a default.
fn agent_files(
    home: &config::Home,
    config: &config::Config,
    before: &InForce,
    report: &mut Report,
) -> Result<AgentFiles, String> {
    let mut files = AgentFiles::default();
    let entries = config::load_agents(&home.agents_dir()).map_err(|e| e.with_causes())?;
    for entry in entries {
        let name = AgentName::new(&entry.name);
        match (entry.agent, name) {
            (Ok((file, warnings)), Ok(name)) => {
                report
                    .warnings
                    .extend(warnings.iter().map(ToString::to_string));
                let agent = agent(home, config, name.clone(), file);
                files.agents.insert(name, Arc::new(agent));
            }
            (Ok(_), Err(error)) => report.errors.push(error.to_string()),
            (Err(error), name) => {
                let why = error.with_causes();
                report.errors.push(why.clone());
                let Ok(name) = name else { continue };
                if let Some(good) = before.agents.get(&name) {
                    report
                        .kept
                        .push(format!("the agent {name} stays unchanged"));
                    files.agents.insert(name, Arc::clone(good));
                } else {
                    report.kept.push(format!(
                        "the agent {name} cannot be used until its file is fixed"
                    ));
                    files.refused.insert(name, why);
                }
            }
        }
    }
    Ok(files)
}

fn catalog(
    home: &config::Home,
    config: &config::Config,
    files: &AgentFiles,
    report: &mut Report,
) -> Result<Catalog, String> {
    let default_agent = AgentName::new(&config.default_agent).map_err(|e| e.to_string())?;
    let (mut agents, refused) = (files.agents.clone(), files.refused.clone());
    // The built-in agent exists unless a file has its name, even a broken one (CONV-12).
    let built_in = AgentName::new(BUILT_IN).map_err(|e| e.to_string())?;
    let has_file = |name: &AgentName| name.as_str().eq_ignore_ascii_case(BUILT_IN);
    if !agents.keys().chain(refused.keys()).any(has_file) {
        let mut crab = AgentConfig::new(built_in.clone(), DEFAULT_PROMPT);
        crab.mode = config.runs.mode;
        agents.insert(built_in, Arc::new(crab));
    }
    if !agents.contains_key(&default_agent) {
        report.warnings.push(format!(
            "the default agent {default_agent} does not exist: write {}, or set default_agent in {}",
            home.agents_dir()
                .join(format!("{default_agent}.md"))
                .display(),
            home.config_file().display()
        ));
    }
    Ok(Catalog {
        agents,
        refused,
        default_agent,
        owners: config.owners.clone(),
        user_home: home.user_home().map(|folder| settled(folder.into())),
        memory_enabled: config.memory.enabled,
        resume: config.runs.resume == config::Resume::Auto,
        prewarm: config.runs.prewarm,
        limits: Limits {
            queued_runs: config.limits.queued_runs as usize,
            delegate_depth: config.limits.delegate_depth,
            ask_timeout: Duration::from_secs(config.runs.ask_timeout_secs),
            answer_bytes: config.limits.answer_bytes as usize,
            answer_calls: config.limits.answer_calls as usize,
            tool_schema_bytes: config.limits.tool_schema_bytes as usize,
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
        permissions: settings.permissions,
        mode: settings.mode.or(config.runs.mode),
        cwd: settings.cwd.map(|cwd| settled(home.expand_tilde(&cwd))),
        budget: settings.budget,
        ..defaults
    }
}

/// Resolves a folder's links, once: links are followed when the owner names the folder
/// and never later. A folder that does not exist yet is unchanged.
fn settled(folder: PathBuf) -> PathBuf {
    folder.canonicalize().unwrap_or(folder)
}

pub(crate) fn provider(provider: &config::Provider) -> Result<ProviderConfig, String> {
    let kind = Kind::parse(provider.kind.as_str()).ok_or_else(|| {
        format!(
            "provider.{}: the kind {} is not supported; there are: {}",
            provider.name,
            provider.kind.as_str(),
            Kind::ALL.map(Kind::as_str).join(", ")
        )
    })?;
    // The daemon starts without the key; calls report it.
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

/// The node's settings of the sandbox (GATE-5).
pub(crate) fn sandbox(config: &config::Config) -> SandboxConfig {
    let sandbox = &config.sandbox;
    SandboxConfig {
        network: sandbox.network,
        read: sandbox.read.clone(),
        write: sandbox.write.clone(),
        ..SandboxConfig::default()
    }
}
