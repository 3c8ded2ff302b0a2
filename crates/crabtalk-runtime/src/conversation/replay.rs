//! Replays a finished run to a client that retries its request (CONV-9).

use crate::command::Job;
use crabtalk_domain::storage::{RunPhase, RunTrace};
use crabtalk_domain::{AgentEvent, End};

/// Publishes the run's answer and end, as the log has them.
pub(super) fn tell(run: u64, told: RunTrace, job: &Job) {
    let agent = match told.guest.as_str() {
        "" => job.request.key.agent.to_string(),
        guest => guest.to_owned(),
    };
    let (code, error) = match told.end {
        Some(end) if end.code == 0 && end.phase == RunPhase::End => (0, String::new()),
        // Old logs have the code, but not the reason.
        Some(end) if end.error.is_empty() && end.code != 0 => (
            end.code,
            format!("run {run} of this request ended with code {}", end.code),
        ),
        Some(end) if end.code != 0 => (end.code, end.error),
        Some(_) | None => (
            500,
            format!("run {run} of this request was interrupted; see the history"),
        ),
    };
    job.log.publish(AgentEvent::Start {
        agent: agent.clone(),
        run,
        model: String::new(),
        mode: None,
    });
    if let Some(answer) = told.answer {
        job.log.publish(AgentEvent::TextStart);
        job.log.publish(AgentEvent::Text(answer));
        job.log.publish(AgentEvent::TextEnd);
    }
    job.log.publish(AgentEvent::End(End {
        agent,
        error,
        code,
        ..End::default()
    }));
}
