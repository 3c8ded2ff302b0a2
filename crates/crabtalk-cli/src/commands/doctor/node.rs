//! What the daemon knows: itself, its services, what it read, and whether its
//! models answer.

use super::super::logs;
use super::{Context, Finding};
use crate::error::Error;
use crabtalk_client::Connection;
use crabtalk_proto::{
    BrokenLog, CheckConversationsMsg, Client, ClientError, GetStats, ListAuditMsg, ListMcpsMsg,
    ListModelsMsg, McpStatus, ModelTest, ReloadConfigMsg, TestModelMsg,
};
use std::collections::HashSet;

/// The name of the look at conversations.
const LOGS: &str = "logs";

/// Said where a daemon of before knows nothing of a question.
const OLDER: &str = "crabtalk daemon restart";

/// Looks with the daemon's eyes. With `starts` it is started where it does not
/// run.
pub(super) async fn look(
    context: &mut Context,
    starts: bool,
    offline: bool,
) -> Result<Vec<Finding>, Error> {
    if !starts {
        let said = "not looked at: the configuration cannot be read";
        return Ok(vec![Finding::warning("daemon", said, "")]);
    }
    let mut connection = match context.connection().await {
        Ok(connection) => connection,
        Err(Error::Unread) => return Err(Error::Unread),
        Err(error) => {
            let mend = "crabtalk daemon start, and see `crabtalk daemon logs`";
            return Ok(vec![Finding::wrong("daemon", error.to_string(), mend)]);
        }
    };
    let mut found = daemon(&mut connection).await;
    found.extend(files(&mut connection).await);
    found.extend(servers(&mut connection).await);
    found.extend(logs(&mut connection).await);
    found.extend(audit(&mut connection).await);
    if offline {
        found.push(Finding::fine("models", "not asked (--offline)"));
    } else {
        found.extend(models(&mut connection).await);
    }
    Ok(found)
}

/// A record that does not fit together: the daemon refuses whatever needs an entry.
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

/// A question that it could not answer.
fn unanswered(what: &'static str, error: &ClientError) -> Finding {
    Finding::warning(what, format!("the daemon does not tell: {error}"), OLDER)
}

async fn daemon(connection: &mut Connection) -> Vec<Finding> {
    let difference = connection.difference();
    let stats = match connection.get_stats(GetStats::default()).await {
        Ok(stats) => stats,
        Err(error) => return vec![unanswered("daemon", &error)],
    };
    let mut found = vec![match difference {
        Some(said) => Finding::warning("daemon", said, OLDER),
        None => Finding::fine("daemon", format!("{} runs", stats.version)),
    }];
    let failed = stats.services.iter().filter(|s| s.state == "failed");
    found.extend(failed.map(|service| {
        let said = format!("{} stays off: {}", service.name, service.last_error);
        Finding::wrong("service", said, OLDER)
    }));
    found.extend(sandbox(&stats.sandbox_open));
    found
}

/// A sandbox that leaves something open, and what follows for runs.
fn sandbox(open: &str) -> Option<Finding> {
    let said = format!(
        "incomplete, so that the default mode of runs is `ask`: commands in it can still reach {open}"
    );
    (!open.is_empty()).then(|| Finding::warning("sandbox", said, "see the guide on the sandbox"))
}

/// Configuration, agents and skills as the daemon reads them.
async fn files(connection: &mut Connection) -> Vec<Finding> {
    let report = match connection.reload_config(ReloadConfigMsg {}).await {
        Ok(report) => report,
        Err(error) => return vec![unanswered("files", &error)],
    };
    if report.errors.is_empty() && report.warnings.is_empty() {
        return vec![Finding::fine(
            "files",
            "configuration, agents and skills can be read",
        )];
    }
    let kept = report.kept.join("; ");
    let mend = match kept.is_empty() {
        true => "the line says what would be right".to_owned(),
        false => format!("the line says what would be right; in force meanwhile: {kept}"),
    };
    let errors = report.errors.into_iter();
    let errors = errors.map(|said| Finding::wrong("files", said, mend.clone()));
    let warnings = report.warnings.into_iter();
    errors
        .chain(warnings.map(|said| {
            let mend =
                "the line says what would be right; `crabtalk skills check DIR` looks at a skill";
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
            let said = format!("the MCP server {} does not work: {}", mcp.name, mcp.error);
            Finding::warning("mcp", said, format!("crabtalk mcps test {}", mcp.name))
        })
        .collect()
}

/// What cannot be read of conversations, in the trash too.
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
            let said = "not every conversation was looked at";
            found.push(Finding::warning(LOGS, said, ""));
        }
    }
    if found.is_empty() {
        found.push(Finding::fine(LOGS, "conversations can be read"));
    }
    found
}

fn broken(log: &BrokenLog, trash: bool) -> Finding {
    let said = logs::said(log, trash);
    match (log.lines, logs::is_named_as_log(log)) {
        (0, true) => Finding::wrong(LOGS, said, "mend line 1, or move the file away"),
        (0, false) => Finding::warning(LOGS, said, "move it away"),
        (1.., _) => Finding::warning(LOGS, said, "mend the lines, or leave them"),
    }
}

/// One model of each provider is asked for a word.
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
        // Nothing is configured: what the first run would find.
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
                "crabtalk providers show {}; crabtalk init --force writes it anew",
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
            true => "the offline demonstration answers, which repeats what it is told",
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
