//! Searches memory and lists skills.

use super::Session;
use crate::error::Error;
use crabtalk_config::skills::{SkillSource, SkillSummary, Trust, content_hash};
use crabtalk_domain::ConversationKey;
use crabtalk_memory::{FoundIn, Hit};
use crabtalk_proto::*;
use std::sync::Arc;

/// Default number of hits.
const DEFAULT_HITS: usize = 10;

/// Maximum number of hits of one answer.
const MAX_HITS: usize = 100;

impl Session {
    /// Searches the entries and archives that the conversation may see (MEM-2).
    pub(super) async fn find(&self, request: SearchMsg) -> Result<SearchResults, Error> {
        if request.query.trim().is_empty() {
            return Err(crabtalk_runtime::Error::EmptyContent.into());
        }
        let key = self.key(&request.agent, &request.sender)?;
        let limit = super::as_many(request.limit, DEFAULT_HITS, MAX_HITS);
        let memory = self.node.memory();
        let viewer = memory.viewer(&key, &self.origin(&request.sender));
        let mut recalled = memory.recall(&viewer, &request.query, limit).await;
        recalled.hits.retain(|hit| match &hit.source {
            FoundIn::Entry { agent, .. } => self.reaches_note(agent),
            FoundIn::Archive { conversation, .. } => self.reaches_key(conversation),
        });
        Ok(SearchResults {
            incomplete: !recalled.complete,
            only_common_words: recalled.only_common,
            hits: recalled
                .hits
                .into_iter()
                .map(|hit| found(hit, &key))
                .collect(),
        })
    }

    /// All skills, including those of the client's project.
    pub(super) async fn skills(&self, request: ListSkillsMsg) -> Result<SkillList, Error> {
        let cwd = self.check_cwd(request.cwd.as_deref()).await?;
        let skills = Arc::clone(&self.node.skills);
        let disabled = self.node.config().skills.disabled.clone();
        let of = format!("a list of skills in {cwd:?}");
        let files = skills.files.clone();
        let listed = files.look(&of, move || {
            let listed = skills.library.list_all(cwd.as_deref());
            for warning in &listed.warnings {
                tracing::warn!("{warning}");
            }
            let trust = skills.trust.load().unwrap_or_else(|error| {
                tracing::warn!(%error, "the trust file cannot be read; nothing is trusted");
                Trust::default()
            });
            let info = |skill: SkillSummary| SkillInfo {
                enabled: !disabled
                    .iter()
                    .any(|off| off.eq_ignore_ascii_case(&skill.name)),
                trust: trust_of(&skill, &trust).into(),
                source_kind: match skill.source {
                    SkillSource::Home => SourceKind::Local.into(),
                    SkillSource::Project => SourceKind::Project.into(),
                    SkillSource::External => SourceKind::External.into(),
                },
                name: skill.name,
                source: skill.folder.to_string_lossy().into_owned(),
            };
            SkillList {
                skills: listed.skills.into_iter().map(info).collect(),
                warnings: listed.warnings.iter().map(ToString::to_string).collect(),
            }
        });
        let listed = listed.await.map(|mut listed| {
            if !self.reaches_everything() {
                // Warnings contain paths of the machine.
                listed.warnings.clear();
                for skill in &mut listed.skills {
                    skill.source.clear();
                }
            }
            listed
        });
        listed.map_err(|why| Error::Failed(format!("the skills could not be read: {why}")))
    }
}

/// Whether an owner trusts a skill, by its content or its project.
fn trust_of(skill: &SkillSummary, trust: &Trust) -> SkillTrust {
    if skill.source == SkillSource::Project {
        return match trust.reaches(&skill.folder) {
            true => SkillTrust::Trusted,
            false => SkillTrust::None,
        };
    }
    match trust.skill(&skill.folder) {
        None => SkillTrust::None,
        Some(trusted) => match content_hash(&skill.folder) {
            Ok(hash) if hash == trusted.sha256 => SkillTrust::Trusted,
            Ok(_) | Err(_) => SkillTrust::Changed,
        },
    }
}

fn found(hit: Hit, asked: &ConversationKey) -> SearchHit {
    let source = match hit.source {
        FoundIn::Entry { sender, .. } if sender.is_empty() => "memory".to_owned(),
        FoundIn::Entry { sender, .. } => format!("memory, from {sender}"),
        FoundIn::Archive {
            conversation,
            index,
            ..
        } if conversation == *asked => {
            format!("archive {index}")
        }
        FoundIn::Archive {
            conversation,
            index,
            ..
        } => format!("archive {index} of {conversation}"),
    };
    SearchHit {
        source,
        title: hit.title,
        snippet: hit.snippet,
        score: f64::from(hit.score),
        at: hit.at,
    }
}
