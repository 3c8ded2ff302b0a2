//! Checks through the daemon: services, files, servers, conversations and models.

use super::super::logs;
use super::{Context, Finding};
use crate::error::Error;
use crabtalk_client::Connection;
use crabtalk_proto::{
    BrokenLog, CheckConversationsMsg, Client, ClientError, GetStats, ListAuditMsg, ListMcpsMsg,
    ListModelsMsg, McpStatus, ModelTest, ReloadConfigMsg, TestModelMsg,
};
use std::collections::HashSet;

/// Name of the conversation check.
const LOGS: &str = "logs";

/// Fix for a daemon without an operation.
const OLDER: &str = "crabtalk daemon restart";

/// Runs the checks; with `starts` the daemon is started if necessary.
pub(super) async fn look(
    context: &mut Context,
    starts: bool,
    offline: bool,
) -> Result<Vec<Finding>, Error> {
    if !starts {
        let said = "not checked: the configuration is broken";
        return Ok(vec![Finding::warning("daemon", said, "")]);
    }
    let mut connection = match context.connection().await {
        Ok(connection) => connection,
        Err(Error::Unread) => return Err(Error::Unread),
        Err(error) => {
            let mend = "crabtalk daemon start; crabtalk daemon logs";
            return Ok(vec![Finding::wrong("daemon", error.to_string(), mend)]);
        }
    };
    let mut found = daemon(&mut connection).await;
    found.extend(files(&mut connection).await);
    found.extend(servers(&mut connection).await);
    found.extend(logs(&mut connection).await);
    found.extend(audit(&mut connection).await);
    if offline {
        found.push(Finding::fine("models", "not tested (--offline)"));
    } else {
        found.extend(models(&mut connection).await);
    }
    Ok(found)
}

/// Reports a broken audit chain, which makes the daemon refuse audited requests.
async fn audit(connection: &mut Connection) -> Option<Finding> {
    let request = ListAuditMsg {
        limit: 1,
        verify: true,
        ..ListAuditMsg::default()
    };
    match connection.list_audit(request).await {
        Ok(page) if page.problem.is_empty() => None,
        Ok(page) => Some(Finding::wrong(
            "audit",
            page.problem,
            "crabtalk audit new-chain",
        )),
        Err(error) => Some(unanswered("audit", &error)),
    }
}

/// The finding for a failed request.
fn unanswered(what: &'static str, error: &ClientError) -> Finding {
    Finding::warning(what, format!("request failed: {error}"), OLDER)
}

async fn daemon(connection: &mut Connection) -> Vec<Finding> {
    let difference = connection.difference();
    let stats = match connection.get_stats(GetStats::default()).await {
        Ok(stats) => stats,
        Err(error) => return vec![unanswered("daemon", &error)],
    };
    let mut found = vec![match difference {
        Some(said) => Finding::warning("daemon", said, OLDER),
        None => Finding::fine("daemon", format!("{} is running", stats.version)),
    }];
    let failed = stats.services.iter().filter(|s| s.state == "failed");
    found.extend(failed.map(|service| {
        let said = format!("{} is off: {}", service.name, service.last_error);
        Finding::wrong("service", said, OLDER)
    }));
    found.extend(sandbox(&stats.sandbox_open));
    found
}

/// The finding for an incomplete sandbox, with its consequence.
fn sandbox(open: &str) -> Option<Finding> {
    let said = format!(
        "incomplete, so the default mode is `ask`: sandboxed commands can still reach {open}"
    );
    (!open.is_empty()).then(|| Finding::warning("sandbox", said, "see the guide on the sandbox"))
}

/// Configuration, agents and skills.
async fn files(connection: &mut Connection) -> Vec<Finding> {
    let report = match connection.reload_config(ReloadConfigMsg {}).await {
        Ok(report) => report,
        Err(error) => return vec![unanswered("files", &error)],
    };
    if report.errors.is_empty() && report.warnings.is_empty() {
        return vec![Finding::fine(
            "files",
            "configuration, agents and skills are valid",
        )];
    }
    let kept = report.kept.join("; ");
    let mend = match kept.is_empty() {
        true => "fix the named line".to_owned(),
        false => format!("fix the named line; still active: {kept}"),
    };
    let errors = report.errors.into_iter();
    let errors = errors.map(|said| Finding::wrong("files", said, mend.clone()));
    let warnings = report.warnings.into_iter();
    errors
        .chain(warnings.map(|said| {
            let mend = "fix the named line; `crabtalk skills check DIR` checks a skill";
            Finding::warning("files", said, mend)
        }))
        .collect()
}

async fn servers(connection: &mut Connection) -> Vec<Finding> {
    let Ok(listed) = connection.list_mcps(ListMcpsMsg {}).await else {
        return Vec::new();
    };
    let failed = listed
        .mcps
        .into_iter()
        .filter(|mcp| mcp.enabled && mcp.status() == McpStatus::Failed);
    failed
        .map(|mcp| {
            let said = format!("MCP server {} failed: {}", mcp.name, mcp.error);
            Finding::warning("mcp", said, format!("crabtalk mcps test {}", mcp.name))
        })
        .collect()
}

/// Unreadable conversations, also in the trash.
async fn logs(connection: &mut Connection) -> Vec<Finding> {
    let mut found = Vec::new();
    for trash in [false, true] {
        let request = CheckConversationsMsg { trash, lines: true };
        let list = match connection.check_conversations(request).await {
            Ok(list) => list,
            Err(error) => return vec![unanswered(LOGS, &error)],
        };
        found.extend(list.logs.iter().map(|log| broken(log, trash)));
        if list.incomplete {
            let said = "not all conversations were checked";
            found.push(Finding::warning(LOGS, said, ""));
        }
    }
    if found.is_empty() {
        found.push(Finding::fine(LOGS, "all conversations are readable"));
    }
    found
}

fn broken(log: &BrokenLog, trash: bool) -> Finding {
    let said = logs::said(log, trash);
    match (log.lines, logs::is_named_as_log(log)) {
        (0, true) => Finding::wrong(LOGS, said, "fix line 1, or move the file away"),
        (0, false) => Finding::warning(LOGS, said, "move it away"),
        (1.., _) => Finding::warning(LOGS, said, "fix the lines, or ignore them"),
    }
}

/// Sends a short request to one model of each provider.
async fn models(connection: &mut Connection) -> Vec<Finding> {
    let listed = match connection.list_models(ListModelsMsg {}).await {
        Ok(listed) => listed.models,
        Err(error) => return vec![unanswered("models", &error)],
    };
    let mut seen = HashSet::new();
    let mut asked: Vec<String> = listed
        .iter()
        .filter(|model| model.enabled && model.active)
        .chain(listed.iter().filter(|model| model.enabled))
        .filter(|model| seen.insert(model.provider.clone()))
        .map(|model| model.name.clone())
        .collect();
    if asked.is_empty() {
        // Without models, tests the detected default.
        asked.push(String::new());
    }
    let mut found = Vec::new();
    for model in asked {
        match connection.test_model(TestModelMsg { model }).await {
            Ok(test) => found.push(tested(&test)),
            Err(error) => return vec![unanswered("models", &error)],
        }
    }
    found
}

fn tested(test: &ModelTest) -> Finding {
    let name = match test.provider.is_empty() {
        true => test.model.clone(),
        false => format!("{} of {}", test.model, test.provider),
    };
    if !test.ok {
        let mend = match test.provider.is_empty() {
            true => "crabtalk init".to_owned(),
            false => format!(
                "crabtalk providers show {}; crabtalk init --force replaces it",
                test.provider
            ),
        };
        return Finding::wrong(
            "models",
            format!("{name} does not answer: {}", test.error),
            mend,
        );
    }
    if test.provider == "offline" {
        let said = match test.why.is_empty() {
            true => "only the built-in demonstration answers",
            false => test.why.as_str(),
        };
        return Finding::warning("models", said, "set a key, or run `crabtalk init`");
    }
    Finding::fine("models", format!("{name} answers in {} ms", test.took_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_sandbox_is_reported_with_its_default_mode() {
        assert_eq!(sandbox(""), None);
        let said = sandbox("other processes").unwrap().said;
        assert!(
            said.contains("is `ask`") && said.ends_with("other processes"),
            "{said}"
        );
    }
}
