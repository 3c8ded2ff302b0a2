//! The skills of a node: the slash command, the `skill` tool, and the rules of trusted
//! skills (SKILL-1, SKILL-2).
//!
//! Invariant: every use of a skill checks the scope for the skill's canonical name.

use crate::settings::Settings;
use crabtalk_config::skills::{Error, Library, Lookup, Skill, SkillSummary, TrustFile};
use crabtalk_domain::tool::{Invocation, Subject, ToolOutput, ToolProvider, ToolSpec};
use crabtalk_domain::{
    AgentConfig, BoxFuture, ConversationKey, Permission, PermissionRule, Refusal, RunContext, tags,
};
use crabtalk_gate::scope;
use crabtalk_tools::FileWork;
use serde_json::json;
use std::collections::HashMap;
use std::future::ready;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of skills in an agent's prompt; the tool finds more.
const MAX_ADVERTISED: usize = 50;

/// Maximum number of skills in use by one run.
const MAX_IN_USE: usize = 32;

/// The skills in use by a conversation's run.
struct InUse {
    run: u64,
    skills: Vec<Skill>,
}

pub(crate) struct Skills {
    settings: Arc<Settings>,
    pub(crate) library: Library,
    pub(crate) trust: TrustFile,
    spec: Arc<ToolSpec>,
    in_use: Mutex<HashMap<ConversationKey, InUse>>,
    /// The threads for file access.
    pub(crate) files: FileWork,
}

impl Skills {
    pub(crate) fn new(
        settings: Arc<Settings>,
        library: Library,
        trust: TrustFile,
        files: FileWork,
    ) -> Arc<Self> {
        let spec = Arc::new(ToolSpec {
            name: "skill".into(),
            description: "Load a skill: instructions for a kind of work, with its files. Give its \
                 name, or a word to search for; give nothing to list them all."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "the skill's name, or a search word"},
                    "arguments": {"type": "string", "description": "what the skill is to work on"}
                }
            })
            .into(),
            default_permission: Permission::Allow,
        });
        Arc::new(Self {
            settings,
            library: library.trusting(trust.clone()),
            trust,
            spec,
            in_use: Mutex::default(),
            files,
        })
    }

    fn in_use(&self) -> MutexGuard<'_, HashMap<ConversationKey, InUse>> {
        self.in_use.lock().expect("nothing panics under it")
    }

    fn start_using(&self, key: &ConversationKey, run: u64, skill: Skill) {
        let mut in_use = self.in_use();
        let entry = in_use.entry(key.clone()).or_insert(InUse {
            run,
            skills: Vec::new(),
        });
        if entry.run != run {
            *entry = InUse {
                run,
                skills: Vec::new(),
            };
        }
        entry
            .skills
            .retain(|known| known.summary.folder != skill.summary.folder);
        entry.skills.push(skill);
        if entry.skills.len() > MAX_IN_USE {
            entry.skills.remove(0);
        }
    }

    /// Ends the permissions of a run's skills.
    pub(crate) fn end_run(&self, key: &ConversationKey) {
        self.in_use().remove(key);
    }

    fn allows(&self, agent: &AgentConfig) -> impl Fn(&str) -> bool + Send + use<> {
        let patterns = agent.scope.clone();
        let config = self.settings.config();
        move |name: &str| {
            scope::allows_skill(&patterns, name)
                && !config
                    .skills
                    .disabled
                    .iter()
                    .any(|off| off.eq_ignore_ascii_case(name))
        }
    }

    /// Replaces a message that begins with `/skill` by the skill's text.
    pub(crate) async fn resolve_slash(
        self: &Arc<Self>,
        run: RunContext<'_>,
        content: String,
    ) -> Result<String, Refusal> {
        if !content.starts_with('/') {
            return Ok(no_block(content));
        }
        let (skills, allows) = (Arc::clone(self), self.allows(run.agent));
        let (cwd, said) = (run.cwd.to_owned(), content.clone());
        let of = run.key.to_string();
        let found = self.files.look(&of, move || {
            skills.library.resolve_slash(&said, Some(&cwd), &allows)
        });
        match found.await {
            Ok(Ok(Some(slash))) => {
                self.start_using(run.key, run.run, slash.skill);
                Ok(slash.text)
            }
            Ok(Ok(None)) => Ok(content),
            Ok(Err(error)) => Err(refusal(&error)),
            Err(why) => Err(Refusal {
                code: 500,
                message: format!("the skills could not be read: {why}"),
            }),
        }
    }

    /// The reason why an agent cannot use a skill; `None` if it can, or if that is unknown.
    pub(crate) async fn why_none(
        self: &Arc<Self>,
        agent: &AgentConfig,
        name: &str,
        cwd: Option<PathBuf>,
    ) -> Option<String> {
        let (skills, allows) = (Arc::clone(self), self.allows(agent));
        let said = format!("/{name}");
        let of = format!("the skill {name}");
        let found = self.files.look(&of, move || {
            skills.library.resolve_slash(&said, cwd.as_deref(), &allows)
        });
        match found.await.ok()? {
            Ok(Some(_)) => None,
            Ok(None) => Some(none_here(name)),
            Err(error) => Some(refusal(&error).message),
        }
    }

    /// Lists the skills `in_reach` of an agent's scope for its context. `untrusted` is the
    /// number of skills in untrusted folders.
    pub(crate) fn advertised(
        &self,
        run: RunContext<'_>,
        in_reach: &[SkillSummary],
        untrusted: usize,
    ) -> Option<String> {
        let config = self.settings.config();
        let has_tool = scope::allows_tool(&run.agent.scope, "skill", config.memory.enabled);
        if !has_tool || run.agent.as_guest {
            return None;
        }
        let allows = self.allows(run.agent);
        let listed = in_reach.iter().filter(|skill| allows(&skill.name));
        let listed: Vec<SkillSummary> = listed.cloned().collect();
        if listed.is_empty() && untrusted == 0 {
            return None;
        }
        let mut text =
            crabtalk_config::skills::render_list(&listed[..listed.len().min(MAX_ADVERTISED)]);
        if listed.len() > MAX_ADVERTISED {
            text.push_str(&format!(
                "\n({} more; search with the skill tool)",
                listed.len() - MAX_ADVERTISED
            ));
        }
        if untrusted > 0 {
            text.push_str(&format!(
                "\n({} of the project are left out, since its folder is not trusted. The owner can trust \
                 it with `crabtalk trust add {}`.)",
                untrusted,
                tags::line(&run.cwd.to_string_lossy())
            ));
        }
        Some(text)
    }

    /// Folders of installed skills in an agent's scope, whose files are readable in the
    /// otherwise hidden home (GATE-3).
    pub(crate) fn readable(&self, agent: &AgentConfig) -> Vec<PathBuf> {
        let listed = self.library.list(None, &self.allows(agent));
        listed
            .skills
            .into_iter()
            .map(|skill| skill.folder)
            .collect()
    }

    /// The rules of trusted skills in use.
    pub(crate) async fn preapproved(self: &Arc<Self>, call: &Invocation) -> Vec<PermissionRule> {
        let skills = {
            let in_use = self.in_use();
            let entry = in_use.get(&call.key).filter(|entry| entry.run == call.run);
            entry.map(|entry| entry.skills.clone()).unwrap_or_default()
        };
        if skills.iter().all(|skill| skill.allowed_tools.is_empty()) {
            return Vec::new();
        }
        let this = Arc::clone(self);
        let of = call.key.to_string();
        let patterns = self.files.look(&of, move || {
            let trust = this
                .trust
                .load()
                .map_err(|error| tracing::warn!(%error, "no trust"))
                .ok();
            let of = |skill: &Skill| trust.as_ref().map(|trust| trust.preapproved(skill));
            skills.iter().filter_map(of).flatten().collect::<Vec<_>>()
        });
        let rule = |pattern: crabtalk_config::skills::ToolPattern| PermissionRule {
            tool: pattern.tool,
            pattern: pattern.pattern,
            permission: Permission::Allow,
        };
        patterns
            .await
            .unwrap_or_default()
            .into_iter()
            .map(rule)
            .collect()
    }
}

/// The message about an unknown skill.
pub(crate) fn none_here(name: &str) -> String {
    format!("unknown skill {name:?}")
}

/// Escapes a message that imitates the block of a slash command.
fn no_block(content: String) -> String {
    match content.strip_prefix("<skill ") {
        Some(rest) => format!("&lt;skill {rest}"),
        None => content,
    }
}

fn refusal(error: &Error) -> Refusal {
    let message = error.to_string();
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "only the first concerns rights"
    )]
    let code = match error {
        // The runtime counts and logs this code as a violation.
        Error::OutOfScope { .. } => 403,
        _ => 400,
    };
    Refusal { code, message }
}

/// The `skill` tool.
pub(crate) struct SkillTool(pub(crate) Arc<Skills>);

impl ToolProvider for SkillTool {
    fn specs(&self) -> Vec<Arc<ToolSpec>> {
        vec![Arc::clone(&self.0.spec)]
    }

    fn subject<'a>(&'a self, _: &'a Invocation) -> BoxFuture<'a, Result<Subject, String>> {
        Box::pin(ready(Ok(Subject::Other)))
    }

    fn out_of_scope<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let query = call.arguments["name"].as_str()?.trim().to_owned();
            if call.agent.scope.skills.is_empty() {
                return None;
            }
            let (skills, scope) = (Arc::clone(&self.0), call.agent.scope.clone());
            let cwd = call.cwd.clone();
            let of = call.key.to_string();
            let found = self.0.files.look(&of, move || {
                let allows = |name: &str| scope::allows_skill(&scope, name);
                skills.library.find(&query, Some(&cwd), &allows)
            });
            match found.await {
                Ok(Err(Error::OutOfScope(name))) => Some(name),
                Ok(Ok(_) | Err(_)) | Err(_) => None,
            }
        })
    }

    fn call<'a>(&'a self, call: &'a Invocation, _: &'a Subject) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let text = |name: &str| call.arguments[name].as_str().unwrap_or_default().to_owned();
            let (query, arguments) = (text("name"), text("arguments"));
            let skills = Arc::clone(&self.0);
            let (allows, cwd) = (self.0.allows(&call.agent), call.cwd.clone());
            let of = call.key.to_string();
            let found = self.0.files.look(&of, move || {
                skills.library.find(query.trim(), Some(&cwd), &allows)
            });
            match found.await {
                Ok(Ok(Lookup::Skill(skill))) => {
                    let output = skill.render(&arguments);
                    self.0.start_using(&call.key, call.run, *skill);
                    ToolOutput::ok(output)
                }
                Ok(Ok(Lookup::Matches(matches))) if matches.is_empty() => {
                    ToolOutput::error("no skill matches; call without a name to list them all")
                }
                Ok(Ok(Lookup::Matches(matches))) => {
                    ToolOutput::ok(crabtalk_config::skills::render_list(&matches))
                }
                Ok(Err(error)) => ToolOutput::error(error.to_string()),
                Err(why) => ToolOutput::error(format!("the skills could not be read: {why}")),
            }
        })
    }
}
