//! A server's list of tools as it comes, page by page.
//!
//! Invariants: it is bounded in number, pages and bytes; what is no tool costs itself
//! alone; what is left out is named.

use crate::http::chain;
use crate::link::Link;
use crate::said;
use rmcp::model::{
    ClientRequest, ErrorCode, ListToolsRequest, ListToolsResult, PaginatedRequestParams,
    ServerResult, Tool,
};
use rmcp::service::ServiceError;
use serde::Deserialize;

/// Tools of one server; the largest have a hundred or two.
const MAX_TOOLS: usize = 512;

/// Pages of a list, so that one without an end has one.
const MAX_PAGES: usize = 64;

/// Bytes of all tools together, as the server sends them; the largest lists have some
/// hundred thousand. Lists are held for as long as their server is wanted.
const MAX_BYTES: usize = 4 << 20;

/// Letters of a name and of a reason that are shown of what is left out.
pub(crate) const MAX_SHOWN: usize = 80;
const MAX_WHY: usize = 200;

/// What a server answers of its tools.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    /// What all of them take.
    bytes: usize,
    /// What of it cannot be taken, and why.
    pub(crate) left_out: Vec<String>,
}

impl Listed {
    /// Takes a page, as far as it fits; what is beyond, if it does not.
    fn take(&mut self, page: Vec<Tool>) -> Option<String> {
        for tool in page {
            let bytes = serde_json::to_vec(&tool).map_or(usize::MAX, |written| written.len());
            self.bytes = self.bytes.saturating_add(bytes);
            if self.bytes > MAX_BYTES {
                return Some(format!("what is beyond {MAX_BYTES} bytes of tools"));
            }
            if self.tools.len() == MAX_TOOLS {
                return Some(format!("what is beyond {MAX_TOOLS} tools"));
            }
            self.tools.push(tool);
        }
        None
    }
}

impl From<Vec<Tool>> for Listed {
    fn from(tools: Vec<Tool>) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }
}

/// Asks a server for its tools, page by page. One that is none costs itself alone.
pub(crate) async fn fetch(link: &Link) -> Result<Listed, String> {
    let mut listed = Listed::default();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = match link.peer.list_tools(Some(params.clone())).await {
            Ok(page) => page,
            Err(ServiceError::UnexpectedResponse) => salvaged(link, params, &mut listed).await?,
            // It has said that it has none, so it need not know the question.
            Err(ServiceError::McpError(error))
                if error.code == ErrorCode::METHOD_NOT_FOUND && !link.has_tools =>
            {
                return Ok(listed);
            }
            Err(error) => return Err(refused(&error)),
        };
        if let Some(beyond) = listed.take(page.tools) {
            listed.left_out.push(beyond);
            return Ok(listed);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(listed);
        }
    }
    Err(format!("its list of tools has more than {MAX_PAGES} pages"))
}

/// A page in which something is no tool: what is one is taken.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else it is, it is no list of tools"
)]
async fn salvaged(
    link: &Link,
    params: PaginatedRequestParams,
    listed: &mut Listed,
) -> Result<ListToolsResult, String> {
    let request = ListToolsRequest {
        params: Some(params),
        ..ListToolsRequest::default()
    };
    let asked = ClientRequest::ListToolsRequest(request);
    let answer = link.peer.send_request(asked).await;
    let page = match answer.map_err(|error| refused(&error))? {
        ServerResult::ListToolsResult(page) => return Ok(page),
        ServerResult::CustomResult(page) => page.0,
        _ => return Err(UNREADABLE.into()),
    };
    let tools = page["tools"].as_array().ok_or(UNREADABLE)?;
    let mut taken = Vec::new();
    for tool in tools.iter().take(MAX_TOOLS + 1) {
        match Tool::deserialize(tool) {
            Ok(tool) => taken.push(tool),
            Err(why) => {
                let name = &tool["name"];
                let name = name
                    .as_str()
                    .map_or_else(|| name.to_string(), str::to_owned);
                let name: String = name.chars().take(MAX_SHOWN).collect();
                let why: String = why.to_string().chars().take(MAX_WHY).collect();
                listed.left_out.push(format!("{name}: {why}"));
            }
        }
    }
    let mut result = ListToolsResult::with_all_items(taken);
    result.next_cursor = page["nextCursor"].as_str().map(str::to_owned);
    Ok(result)
}

const UNREADABLE: &str = "its list of tools cannot be read";

/// Why there is no list, in words.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's list is open, and its words do for the rest"
)]
fn refused(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            said::sentence(format!("it refused to list its tools: {}", error.message))
        }
        ServiceError::UnexpectedResponse => UNREADABLE.into(),
        ServiceError::TransportSend(error) => said::sentence(chain(&*error.error)),
        other => said::sentence(other.to_string()),
    }
}
