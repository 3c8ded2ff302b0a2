//! The daemon's hook: adds environment, memory, skills and project instructions to
//! agents and runs.
//!
//! Invariant: a project's instructions reach a model only after an owner has trusted
//! their folder (MEM-4).

use crate::cron::Cron;
use crate::mcp::{self, Mcps};
use crate::notify::{Notice, Notifier};
use crate::settings::Settings;
use crate::skills::{Skills, none_here};
use crate::surroundings::{Look, Surroundings};
use arc_swap::ArcSwap;
use crabtalk_domain::{
    AgentConfig, AgentEvent, AskOption, AskQuestion, BoxFuture, Clock, ConversationKey, Hook,
    Message, People, Refusal, Role, RunContext, SystemClock, stamp, tags,
};
use crabtalk_gate::scope;
use crabtalk_memory::{Memory, Viewer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time limit for the answers about all untrusted folders. A run without a client that
/// follows it does not wait.
const TRUST_WAIT: Duration = Duration::from_secs(120);

/// Time limit for a component that replaces the memory.
const MEMORY_WITHIN: Duration = Duration::from_secs(10);

/// The answer that trusts a folder.
const TRUST: &str = "Trust";

#[derive(Clone)]
pub(crate) struct Context {
    /// Replaced by a reload.
    pub(crate) memory: Arc<ArcSwap<Memory>>,
    pub(crate) skills: Arc<Skills>,
    pub(crate) surroundings: Arc<Surroundings>,
    pub(crate) cron: Cron,
    pub(crate) notifier: Notifier,
    pub(crate) mcps: Arc<Mcps>,
    pub(crate) settings: Arc<Settings>,
}

impl Hook for Context {
    fn on_build_agent<'a>(&'a self, agent: AgentConfig) -> BoxFuture<'a, AgentConfig> {
        Box::pin(self.build(agent))
    }

    fn preprocess<'a>(
        &'a self,
        run: RunContext<'a>,
        content: String,
    ) -> BoxFuture<'a, Result<String, Refusal>> {
        Box::pin(async move {
            // A slash at the beginning of a person's text may be accidental; in a cron entry that
            // names a skill it is not.
            let entry = self.cron.entry_of(run.key);
            let skill = entry.filter(|entry| entry.names_skill(&content));
            let resolved = self.skills.resolve_slash(run, content.clone()).await?;
            match skill {
                Some(entry) if resolved == content => Err(Refusal {
                    code: 404,
                    message: none_here(&entry.draft.skill),
                }),
                _ => Ok(resolved),
            }
        })
    }

    fn on_before_run<'a>(
        &'a self,
        run: RunContext<'a>,
        history: &'a [Arc<Message>],
        people: &'a dyn People,
    ) -> BoxFuture<'a, Vec<Message>> {
        Box::pin(self.before_run(run, history, people))
    }

    fn on_event(&self, key: &ConversationKey, event: &AgentEvent) {
        if let AgentEvent::End(_) = event {
            self.skills.end_run(key);
        }
        if let AgentEvent::AskUser(ask) = event
            && let Some(entry) = self.cron.entry_of(key)
        {
            self.notifier.notify(Notice::of_ask(key, entry.id, ask));
        }
        if let AgentEvent::Compacted { failed, .. } = event
            && failed.is_empty()
        {
            self.memory.load().archives().note(key);
        }
    }
}

/// Whether memory is enabled and in an agent's scope.
fn remembers(agent: &AgentConfig, memory: &Memory) -> bool {
    let enabled = memory.settings().enabled;
    enabled && scope::allows_tool(&agent.scope, "recall", enabled)
}

/// Describes the system that commands run on. Equal for all requests, so that a
/// provider's cache keeps the prompt.
fn environment() -> String {
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "sh".into());
    let system = format!(
        "os: {}\narchitecture: {}\nshell: {}",
        std::env::consts::OS,
        std::env::consts::ARCH,
        tags::line(&shell)
    );
    tags::block("system", &system)
}

impl Context {
    async fn build(&self, agent: AgentConfig) -> AgentConfig {
        let memory = self.memory.load_full();
        let remembers = remembers(&agent, &memory);
        let mut agent = memory.identify(agent).await;
        if remembers {
            agent = memory.on_build_agent(agent).await;
        }
        agent.prompt = format!("{}\n\n{}", agent.prompt.trim_end(), environment());
        agent
    }

    /// Recalls from a component instead of the built-in memory. A failure is reported, and
    /// the run continues without memory.
    async fn recalled_by(
        &self,
        provider: &str,
        viewer: &Viewer,
        run: RunContext<'_>,
        history: &[Arc<Message>],
        people: &dyn People,
    ) -> Vec<Message> {
        let mut said = history.iter().rev();
        let Some(said) = said.find(|m| m.role == Role::User && !m.auto_injected) else {
            return Vec::new();
        };
        let servers = &self.mcps.servers;
        let recalled = mcp::memory::recalled(servers, provider, viewer, run.key, &said.content);
        let recalled = tokio::time::timeout(MEMORY_WITHIN, recalled).await;
        let late = || format!("the memory {provider} did not answer in time");
        match recalled.unwrap_or_else(|_| Err(late())) {
            Ok(block) => block.into_iter().map(Message::injected).collect(),
            Err(why) => {
                tracing::warn!(%why, "a run continues without memory");
                people.tell(why);
                Vec::new()
            }
        }
    }

    async fn before_run(
        &self,
        run: RunContext<'_>,
        history: &[Arc<Message>],
        people: &dyn People,
    ) -> Vec<Message> {
        let memory = self.memory.load_full();
        let remembered = async {
            if !remembers(run.agent, &memory) {
                Vec::new()
            } else if let Some(provider) = &self.settings.config().memory.provider {
                let viewer = memory.viewer(run.key, run.origin);
                self.recalled_by(provider, &viewer, run, history, people)
                    .await
            } else {
                memory.before_run(run, history).await
            }
        };
        let around = self.surroundings.of(run.cwd);
        // Each may wait for the disk or a program's start, so they run concurrently.
        let scope = &run.agent.scope;
        let tools = self.mcps.first_look(scope);
        let (look, remembered, ()) = futures_util::join!(around, remembered, tools);
        let (in_reach, untrusted) = (&look.skills, look.untrusted_skills);
        let skills = self.skills.advertised(run, in_reach, untrusted);
        let project = self.project(run, people, look).await;
        let mut around = format!(
            "working directory: {}\ndate: {:.10}",
            tags::line(&run.cwd.to_string_lossy()),
            SystemClock.now().to_string()
        );
        if let Some(servers) = mcp::in_reach(&self.mcps.servers, scope)
            && !run.agent.as_guest
        {
            around.push_str(&format!("\nMCP servers:\n{servers}"));
        }
        let mut notes = vec![tags::block("environment", &around)];
        notes.extend(project);
        notes.extend(skills.map(|skills| tags::block("skills", &skills)));
        let mut messages = vec![Message::injected(notes.join("\n\n"))];
        messages.extend(remembered);
        messages
    }

    /// Returns the project's instructions if an owner trusts them, else a note that they are
    /// omitted.
    async fn project(
        &self,
        run: RunContext<'_>,
        people: &dyn People,
        mut look: Look,
    ) -> Option<String> {
        if !look.project.untrusted.is_empty() && run.for_owner {
            let asking = self.ask_for_trust(&look.project.untrusted, people);
            // One timeout for all folders. Dropping a question withdraws it.
            let answered = tokio::time::timeout(TRUST_WAIT, asking).await;
            look = self.surroundings.of(run.cwd).await;
            if !answered.unwrap_or_default() {
                let untrusted = look.project.untrusted.iter();
                untrusted.for_each(|folder| people.tell(left_out(folder)));
            }
        }
        let project = &look.project;
        for warning in &project.warnings {
            tracing::warn!("{}: {}", warning.file.display(), warning.reason);
        }
        let mut text = project.block();
        for folder in &project.untrusted {
            tracing::info!(folder = %folder.display(), "untrusted project instructions are left out");
            text.push_str(&tags::block("project", &left_out(folder)));
            text.push('\n');
        }
        (!text.is_empty()).then_some(text)
    }

    /// Asks about the folders one after another. Returns `true` if all were answered.
    async fn ask_for_trust(&self, folders: &[PathBuf], people: &dyn People) -> bool {
        for folder in folders {
            match people.ask(trust_question(folder)).await.as_deref() {
                Some(TRUST) => self.trust(folder).await,
                Some(_) => {}
                None => return false,
            }
        }
        true
    }

    async fn trust(&self, folder: &Path) {
        let (skills, folder) = (Arc::clone(&self.skills), folder.to_owned());
        let at = stamp(SystemClock.now());
        let kept = tokio::task::spawn_blocking(move || {
            skills
                .trust
                .add_folder(&folder, &at, "client:local")
                .map_err(|e| e.to_string())
        });
        let kept = kept.await;
        let kept = kept.map_err(|e| e.to_string());
        if let Err(error) = kept.and_then(|kept| kept.map(drop)) {
            tracing::warn!(%error, "the trust in a folder could not be written");
        }
    }
}

/// The note about untrusted instructions.
fn left_out(folder: &Path) -> String {
    let folder = tags::line(&folder.to_string_lossy());
    format!(
        "The instructions in {folder} are left out, since that folder is not trusted. The owner can \
         trust it with `crabtalk trust add {folder}`."
    )
}

fn trust_question(folder: &Path) -> AskQuestion {
    let option = |label: &str, description: &str| AskOption {
        label: label.into(),
        description: description.into(),
    };
    AskQuestion {
        question: format!(
            "Follow the agent instructions in {} from now on?",
            folder.display()
        ),
        header: "Trust".into(),
        options: vec![
            option(TRUST, "agents read them in every run there"),
            option("Not now", "they are left out; the question comes again"),
        ],
        multi_select: false,
    }
}
