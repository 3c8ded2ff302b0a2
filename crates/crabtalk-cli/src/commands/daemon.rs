//! `daemon start|stop|restart|status|reload|logs`: controls the daemon.

use super::Context;
use crate::args::Daemon;
use crate::error::Error;
use crate::text::duration;
use crate::{json, table};
use crabtalk_client as client;
use crabtalk_component::{Manager, Plan};
use crabtalk_proto::{Client, GetStats, ReloadConfigMsg, ReloadReport};
use serde_json::json;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

pub(super) async fn run(context: &mut Context, command: Daemon) -> Result<(), Error> {
    match command {
        // The binary runs the daemon itself, before it creates an async runtime.
        Daemon::Run { .. } => Err(Error::Usage(
            "`daemon run` takes the whole process".to_owned(),
        )),
        Daemon::Start => start(context).await,
        Daemon::Stop => stop(context).await,
        Daemon::Restart { now } => restart(context, now).await,
        Daemon::Status => status(context).await,
        Daemon::Reload => reload(context).await,
        Daemon::Logs { lines, follow } => logs(context, lines, follow).await,
        Daemon::Install(args) => install(context, args.dry_run).await,
        Daemon::Uninstall(args) => uninstall(context, args.dry_run).await,
    }
}

async fn daemon_pid(context: &Context) -> Option<i32> {
    context.known_client().endpoint().daemon_pid().await
}

async fn start(context: &mut Context) -> Result<(), Error> {
    let started = daemon_pid(context).await.is_none();
    if started {
        context.start().await?;
    }
    let pid = daemon_pid(context).await;
    if context.global.json {
        return Ok(context
            .console
            .screen
            .json(&json!({"started": started, "pid": pid}))?);
    }
    if !started {
        let pid = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
        context.note(&format!("crabtalk: the daemon is already running{pid}"))?;
    }
    Ok(())
}

async fn stop(context: &mut Context) -> Result<(), Error> {
    match context.end_daemon().await? {
        None => context.done(json!({"stopped": false}), "crabtalk: no daemon runs"),
        Some(pid) => context.done(
            json!({"stopped": true, "pid": pid}),
            "crabtalk: the daemon was stopped",
        ),
    }
}

async fn restart(context: &mut Context, now: bool) -> Result<(), Error> {
    let (ended, cut_off) = context.restart(now).await?;
    if context.global.json {
        let pid = daemon_pid(context).await;
        let value = json!({"restarted": ended, "pid": pid, "ended_runs": cut_off});
        return Ok(context.console.screen.json(&value)?);
    }
    Ok(())
}

fn failed(error: anyhow::Error) -> Error {
    Error::Failed(format!("{error:#}"))
}

async fn install(context: &mut Context, dry_run: bool) -> Result<(), Error> {
    let plan = Manager::of_this_system()
        .start(&context.service()?)
        .map_err(failed)?;
    if dry_run {
        return show_plan(context, &plan);
    }
    // A daemon that was started on demand holds the lock of the home.
    context.end_daemon().await?;
    carry_out(context, &plan)?;
    context.done(
        json!({"installed": true}),
        "crabtalk: service installed; it does not see the keys in your shell's environment: use \
         `api_key_file` or `systemctl --user set-environment`",
    )
}

async fn uninstall(context: &mut Context, dry_run: bool) -> Result<(), Error> {
    let plan = Manager::of_this_system()
        .stop(&context.service()?)
        .map_err(failed)?;
    if dry_run {
        return show_plan(context, &plan);
    }
    carry_out(context, &plan)?;
    let said = "crabtalk: service removed; the daemon is started on demand";
    context.done(json!({"installed": false}), said)
}

fn show_plan(context: &mut Context, plan: &Plan) -> Result<(), Error> {
    let screen = &mut context.console.screen;
    let shown = match context.global.json {
        true => screen.json(&json!({"plan": plan.to_string()})),
        false => screen.answer(&plan.to_string()),
    };
    Ok(shown?)
}

/// Executes a plan and reports the steps.
fn carry_out(context: &mut Context, plan: &Plan) -> Result<(), Error> {
    let mut said = Vec::new();
    let done = plan.carry_out(&mut said);
    if !context.global.json {
        context.note(String::from_utf8_lossy(&said).trim_end())?;
    }
    done.map_err(failed)
}

async fn status(context: &mut Context) -> Result<(), Error> {
    let mut connection = match context.known_client().connect().await {
        Ok(connection) => connection,
        Err(why @ (client::Error::NoDaemon(_) | client::Error::Broken(_))) => {
            // A daemon that holds the home's lock but does not answer is still running.
            let said = match daemon_pid(context).await {
                Some(pid) => format!(
                    "a daemon runs (pid {pid}), but does not answer: {why}; see `crabtalk daemon \
                     logs`"
                ),
                None => format!(
                    "no daemon runs for {}; `crabtalk daemon start` starts one",
                    context.home.root().display()
                ),
            };
            return Err(Error::NoDaemon(said));
        }
        Err(error) => return Err(error.into()),
    };
    let stats = connection.get_stats(GetStats::default()).await?;
    let pid = daemon_pid(context).await;
    let screen = &mut context.console.screen;
    if context.global.json {
        let mut value = json::stats(&stats);
        value["pid"] = pid.into();
        value["home"] = context.home.root().display().to_string().into();
        return Ok(screen.json(&value)?);
    }
    let pid = pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    let rows = [
        ("running", format!("{}, pid {pid}", stats.version)),
        ("uptime", duration(stats.uptime_secs)),
        ("runs", stats.running.to_string()),
        ("home", context.home.root().display().to_string()),
        ("log", context.home.log_file().display().to_string()),
        ("sandbox", stats.sandbox),
        ("open", stats.sandbox_open),
    ];
    screen.line(&table::pairs(&rows))?;
    let services = stats.services.iter();
    let services = services.map(|service| {
        vec![
            service.name.clone(),
            service.state.clone(),
            context.when(&service.since),
            service.last_error.clone(),
        ]
    });
    let services: Vec<_> = services.collect();
    context.line("")?;
    let header = ["service", "state", "since", "last error"];
    context.print_table(&header, services, "")
}

async fn reload(context: &mut Context) -> Result<(), Error> {
    let report = context.known_client().call(ReloadConfigMsg {}).await?;
    let ReloadReport {
        warnings,
        errors,
        kept,
    } = &report;
    if context.global.json {
        let reloaded = errors.is_empty();
        let value = json!({
            "reloaded": reloaded, "warnings": warnings, "errors": errors, "kept": kept,
        });
        context.console.screen.json(&value)?;
    } else {
        let screen = &mut context.console.screen;
        for warning in warnings {
            screen.problem(&format!("crabtalk: warning: {warning}"))?;
        }
        for error in errors {
            screen.problem(&format!("crabtalk: {error}"))?;
        }
        for kept in kept {
            screen.note(&format!("crabtalk: still active: {kept}"))?;
        }
    }
    if !errors.is_empty() {
        return Err(Error::Failed(
            "parts were not reloaded; fix them and reload again".to_owned(),
        ));
    }
    match context.global.json {
        true => Ok(()),
        false => context.note("crabtalk: configuration reloaded; active runs keep the old one"),
    }
}

async fn logs(context: &mut Context, lines: usize, follow: bool) -> Result<(), Error> {
    let path = context.home.log_file();
    let failed = |e: std::io::Error| Error::io(format_args!("read {}", path.display()), &e);
    path.metadata().map_err(failed)?;
    let mut tail = Command::new("tail")
        .args(["-n", &lines.to_string()])
        .args(follow.then_some("-F"))
        .arg("--")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    let out = tail.stdout.take().expect("it is a pipe");
    let mut lines = BufReader::new(out).split(b'\n');
    let screen = &mut context.console.screen;
    // Ctrl-C ends the process.
    while let Some(line) = lines.next_segment().await.map_err(failed)? {
        let line = String::from_utf8_lossy(&line);
        match context.global.json {
            true => screen.json(&json!({"line": line}))?,
            false => screen.line(&line)?,
        }
    }
    Ok(())
}
