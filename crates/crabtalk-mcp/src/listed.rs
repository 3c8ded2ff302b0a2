//! Fetches a server's list of tools, page by page.
//!
//! Invariants: the number of tools, pages and bytes is bounded; an invalid tool does not
//! affect others; tools that are left out are named.

use crate::http::chain;
use crate::link::Link;
use crate::said;
use rmcp::model::{
    ClientRequest, ErrorCode, ListToolsRequest, ListToolsResult, PaginatedRequestParams,
    ServerResult, Tool,
};
use rmcp::service::ServiceError;
use serde::Deserialize;

/// Maximum number of tools per server.
const MAX_TOOLS: usize = 512;

/// Maximum number of pages per list.
const MAX_PAGES: usize = 64;

/// Maximum bytes of all tools together, as sent by the server.
const MAX_BYTES: usize = 4 << 20;

/// Maximum characters shown of the name and reason of an omitted tool.
pub(crate) const MAX_SHOWN: usize = 80;
const MAX_WHY: usize = 200;

/// A list of tools.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<Tool>,
    /// The size in bytes.
    bytes: usize,
    /// Tools that were left out, with the reason.
    pub(crate) left_out: Vec<String>,
}

impl Listed {
    /// Adds a page; returns a note about the part that does not fit.
    fn take(&mut self, page: Vec<Tool>) -> Option<String> {
        for tool in page {
            let bytes = serde_json::to_vec(&tool).map_or(usize::MAX, |written| written.len());
            self.bytes = self.bytes.saturating_add(bytes);
            if self.bytes > MAX_BYTES {
                return Some(format!("tools beyond the limit of {MAX_BYTES} bytes"));
            }
            if self.tools.len() == MAX_TOOLS {
                return Some(format!("tools beyond the limit of {MAX_TOOLS}"));
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

/// Fetches the tools of a server, page by page.
pub(crate) async fn fetch(link: &Link) -> Result<Listed, String> {
    let mut listed = Listed::default();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = match link.peer.list_tools(Some(params.clone())).await {
            Ok(page) => page,
            Err(ServiceError::UnexpectedResponse) => salvaged(link, params, &mut listed).await?,
            // A server without tools may not know the request.
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

/// Fetches a page that has invalid tools once more, and takes the valid ones.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "any other result is an error"
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

/// The error for a list that could not be fetched.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library may add variants, whose text suffices"
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
