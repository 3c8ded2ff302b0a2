//! Reads, changes and applies the configuration.

use super::Node;
use crate::compose::{Composed, InForce, Report, compose, sandbox};
use crate::edit;
use crate::error::Error;
use crate::memory::memory;
use crate::skills::Skills;
use crabtalk_config::skills::{Folder, SkillSource};
use crabtalk_config::{Config, ConfigFile, Home};
use std::sync::Arc;

/// Maximum number of findings about skills in the report of a start or reload;
/// `crabtalk skills` lists all.
const MAX_SKILL_WARNINGS: usize = 20;

impl Node {
    /// Applies the present files, or changes nothing (OPS-4).
    pub(crate) async fn reload(&self) -> Result<Report, String> {
        self.take(&mut *self.in_force.lock().await).await
    }

    /// Changes `config.toml` and applies it, or changes nothing.
    pub(crate) async fn edit(
        &self,
        change: impl FnOnce(&mut ConfigFile, &Config) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        self.write_config(move |home, in_force| edit::edit(home, in_force, change))
            .await
    }

    /// Replaces the text of `config.toml` and applies it, or changes nothing.
    pub(crate) async fn replace_config(
        &self,
        base: Option<String>,
        text: String,
    ) -> Result<(), Error> {
        self.write_config(move |home, _| edit::replace(home, base.as_deref(), &text))
            .await
    }

    async fn write_config(
        &self,
        write: impl FnOnce(&Home, Option<&str>) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let mut source = self.in_force.lock().await;
        let (home, in_force) = (self.home.clone(), source.text.clone());
        let edited = tokio::task::spawn_blocking(move || write(&home, in_force.as_deref()));
        edited.await??;
        let taken = self.take(&mut source).await;
        taken.map(drop).map_err(|why| {
            Error::Failed(format!(
                "config.toml was changed, but cannot be applied: {why}"
            ))
        })
    }

    async fn take(&self, in_force: &mut InForce) -> Result<Report, String> {
        let (home, before) = (self.home.clone(), in_force.clone());
        let reading = tokio::task::spawn_blocking(move || compose(&home, &before));
        let Composed {
            config,
            catalog,
            models,
            source,
            mut report,
        } = reading.await.map_err(|error| error.to_string()).flatten()?;
        self.models.replace(models)?;
        self.approvals.reload(&mut report).await;
        *in_force = source;
        self.runtime.set_catalog(catalog);
        self.tools.set_sandbox(sandbox(&config));
        self.settings.replace(config);
        self.mcps.configure(&self.settings.config()).await;
        let archives = self.memory().archives().clone();
        let memory = memory(&self.home, &self.settings, self.runtime.storage(), archives);
        self.memory.store(Arc::new(memory));
        self.skills
            .library
            .look_in(folders(&self.home, &self.settings.config()));
        report_skills(&self.skills, &mut report).await;
        self.cron.reload(&mut report).await;
        self.bus.reload(&mut report).await;
        let config = self.settings.config();
        self.remote.apply(&config, &mut report).await;
        report.log();
        tracing::info!("configuration reloaded");
        Ok(report)
    }
}

/// Reports ignored, refused and duplicate skills.
pub(super) async fn report_skills(skills: &Arc<Skills>, report: &mut Report) {
    let skills = Arc::clone(skills);
    let listed = tokio::task::spawn_blocking(move || skills.library.list_all(None)).await;
    let warnings = listed.map(|listed| listed.warnings).unwrap_or_default();
    let warnings = warnings.iter().take(MAX_SKILL_WARNINGS);
    report.warnings.extend(warnings.map(ToString::to_string));
}

/// The folders of skills in order: installed, configured, imported.
pub(super) fn folders(home: &Home, config: &Config) -> Vec<Folder> {
    let mut folders = vec![Folder {
        path: home.skills_dir(),
        source: SkillSource::Home,
    }];
    folders.extend(config.skills.paths.iter().map(|path| Folder {
        path: home.expand_tilde(path),
        source: SkillSource::External,
    }));
    if config.skills.import
        && let Some(user_home) = home.user_home()
    {
        folders.push(Folder {
            path: user_home.join(".claude/skills"),
            source: SkillSource::External,
        });
    }
    folders
}
