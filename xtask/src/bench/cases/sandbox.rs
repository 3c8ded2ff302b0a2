//! The time that the sandbox adds to a command.

use super::millis;
use crate::bench::daemon::Home;
use crate::bench::server::ModelServer;
use crate::bench::stats::Row;
use anyhow::ensure;
use crabtalk_proto::StreamMsg;
use serde_json::json;
use std::fs;
use std::process::Command;

const PAIRS: usize = 100;

/// The offline model runs the tools that it is told to.
const PROVIDER: &str = "[provider.demo]\nkind = \"offline\"\nmodels = [\"offline\"]\n";

/// Runs `true` in the sandbox and outside, in turn.
pub(super) fn start(server: &ModelServer) -> anyhow::Result<Vec<Row>> {
    let home = Home::new(server, "never", &[])?;
    home.configure(PROVIDER)?;
    let agent = home.path().join("config/agents/runner.md");
    fs::write(agent, "---\nmodel: offline\nmode: full\n---\nYou run.\n")?;
    let daemon = home.start()?;
    let mut client = daemon.client()?;
    let mut rows = Vec::new();
    for (folder, is_repository) in [("plain", false), ("repository", true)] {
        let work = server.room.join(folder);
        fs::create_dir_all(&work)?;
        if is_repository {
            let git = Command::new("git")
                .args(["init", "-q"])
                .current_dir(&work)
                .status()?;
            ensure!(git.success(), "cannot make a repository");
        }
        let mut turn = |escalate: bool, sender: usize| {
            let arguments = json!({"command": "true", "escalate": escalate, "reason": "bench"});
            let timing = client.say(StreamMsg {
                agent: "runner".into(),
                content: format!("/tool bash {arguments}"),
                sender: Some(format!("{folder}-{sender}")),
                cwd: Some(work.display().to_string()),
                ..StreamMsg::default()
            })?;
            anyhow::Ok(millis(timing.whole))
        };
        let mut added = Vec::new();
        for pair in 0..PAIRS {
            // A new conversation now and then keeps histories short.
            let sender = pair / 20;
            if pair % 20 == 0 {
                turn(false, sender)?;
            }
            added.push(turn(false, sender)? - turn(true, sender)?);
        }
        let what = format!("a command in the sandbox, more than outside; a {folder} folder");
        rows.push(Row::at_most(what, "ms", 15.0, added));
    }
    Ok(rows)
}
