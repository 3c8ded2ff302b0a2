//! The mode of a run (GATE-2).

use crate::inner::Inner;
use crate::request::RunRequest;
use crabtalk_domain::{AgentConfig, Mode, Origin};
use crabtalk_gate::Standing;
use std::path::Path;

/// The mode that a run has: the agent's or the folder's, lowered or raised by
/// what was asked for. Only an owner on the local socket raises it. A delegate
/// has at most the mode of the run above.
pub(super) async fn mode_of(
    rt: &Inner,
    request: &RunRequest,
    agent: &AgentConfig,
    standing: Standing,
    cwd: &Path,
) -> Mode {
    let is_attended_owner = standing.is_owner && !standing.unattended;
    let of_agent = match &request.origin {
        Origin::Delegate { .. } => agent.mode.or(request.mode),
        Origin::Client { .. } | Origin::Cron { .. } | Origin::Event { .. } => agent.mode,
    };
    let is_contained = match of_agent {
        None if is_attended_owner => rt.toolbox.disk().is_contained(cwd).await,
        None | Some(_) => false,
    };
    let own = crabtalk_gate::mode_of(of_agent, is_attended_owner, is_contained);
    let may_raise = request.may_raise_mode && is_attended_owner;
    let mode = match request.mode {
        Some(wanted) if wanted <= own || may_raise => wanted,
        Some(_) | None => own,
    };
    // The audit takes what is logged to this target.
    if mode > own || mode == Mode::Full {
        tracing::warn!(
            target: "security",
            agent = %agent.name,
            sender = %request.key.sender,
            origin = %request.origin,
            %mode,
            default = %own,
            "a run has a wide mode"
        );
    }
    mode
}
