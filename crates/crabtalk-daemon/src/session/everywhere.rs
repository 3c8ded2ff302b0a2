//! Full-text search over all conversations.

use super::{Session, wanted};
use crate::error::Error;
use crate::remote::Grant;
use crabtalk_domain::ConversationKey;
use crabtalk_domain::storage::{Hit, Search};
use crabtalk_proto::*;
use std::sync::Arc;

/// Default number of hits.
const DEFAULT_FOUND: usize = 20;

/// Maximum number of hits.
const MAX_FOUND: usize = 500;

/// Maximum bytes of a query.
const MAX_QUERY: usize = 1024;

fn words(query: &str) -> Result<Vec<String>, Error> {
    if query.len() > MAX_QUERY {
        return Err(Error::Invalid(format!(
            "the query is longer than {MAX_QUERY} bytes"
        )));
    }
    let words: Vec<_> = query.split_whitespace().map(str::to_owned).collect();
    match words.is_empty() {
        true => Err(Error::Invalid("the query is empty; name some words".into())),
        false => Ok(words),
    }
}

fn found(hit: Hit) -> FoundMessage {
    let (index, role) = hit.message.unzip();
    FoundMessage {
        agent: hit.key.agent.to_string(),
        sender: hit.key.sender.to_string(),
        title: hit.title,
        index,
        role: role.map_or("", |role| role.as_str()).to_owned(),
        at: hit.at,
        snippet: hit.snippet,
    }
}

impl Session {
    pub(super) async fn search_everywhere(
        &self,
        request: SearchConversationsMsg,
    ) -> Result<FoundMessageList, Error> {
        let (grant, config) = (self.grant().cloned(), self.config());
        let reaches = move |key: &ConversationKey| {
            let pair = |grant: &Arc<Grant>| grant.pair(&config, key);
            grant.as_ref().is_none_or(pair)
        };
        let search = Search {
            words: words(&request.query)?,
            agent: wanted(&request.agent).map(str::to_owned),
            sender: wanted(&request.sender).map(str::to_owned),
            reach: Arc::new(reaches),
            limit: super::as_many(request.limit, DEFAULT_FOUND, MAX_FOUND),
        };
        let storage = self.node.runtime.storage();
        let hits = storage.search(search).await?;
        Ok(FoundMessageList {
            messages: hits.hits.into_iter().map(found).collect(),
            incomplete: hits.incomplete,
        })
    }
}
