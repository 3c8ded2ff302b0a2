//! Search and the list of skills.

use super::{Session, status};
use crabtalk_domain::{ConversationKey, Origin};
use crabtalk_memory::{Hit, Source};
use crabtalk_proto::*;
use crabtalk_runtime::Error;
use crabtalk_skills::Source as SkillSource;
use std::sync::Arc;

/// Hits when the client does not say how many.
const DEFAULT_HITS: usize = 10;

/// Most hits of one answer.
const MAX_HITS: usize = 100;

impl Session {
    /// Searches entries and archives as the conversation sees them (MEM-2).
    pub(super) async fn find(&self, request: SearchMsg) -> Result<SearchResults, Status> {
        self.mark_modern();
        if request.query.trim().is_empty() {
            return Err(status(&Error::EmptyContent));
        }
        let key = self.key(&request.agent, &request.sender)?;
        let limit = match request.limit as usize {
            0 => DEFAULT_HITS,
            limit => limit.min(MAX_HITS),
        };
        let memory = self.node.memory();
        let viewer = memory.viewer(&key, &Origin::local());
        let hits = memory.recall(&viewer, &request.query, limit).await;
        Ok(SearchResults {
            hits: hits.into_iter().map(|hit| found(hit, &key)).collect(),
        })
    }

    pub(super) async fn skills(&self) -> Result<SkillList, Status> {
        let skills = Arc::clone(self.node.skills());
        let listed = tokio::task::spawn_blocking(move || skills.library().list(None, &|_| true));
        let listed = listed
            .await
            .map_err(|_| Status::internal("the skills could not be read"))?;
        for warning in &listed.warnings {
            tracing::warn!("{warning}");
        }
        let disabled = self.node.config().skills.disabled.clone();
        let info = |skill: crabtalk_skills::Summary| SkillInfo {
            enabled: !disabled
                .iter()
                .any(|off| off.eq_ignore_ascii_case(&skill.name)),
            name: skill.name,
            source: skill.folder.to_string_lossy().into_owned(),
            source_kind: match skill.source {
                SkillSource::Home | SkillSource::Project => SourceKind::Local.into(),
                SkillSource::External => SourceKind::External.into(),
            },
        };
        Ok(SkillList {
            skills: listed.skills.into_iter().map(info).collect(),
        })
    }
}

fn found(hit: Hit, asked: &ConversationKey) -> SearchHit {
    let source = match hit.source {
        Source::Entry { sender } if sender.is_empty() => "memory".to_owned(),
        Source::Entry { sender } => format!("memory, from {sender}"),
        Source::Archive {
            conversation,
            index,
            ..
        } if conversation == *asked => {
            format!("archive {index}")
        }
        Source::Archive {
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
