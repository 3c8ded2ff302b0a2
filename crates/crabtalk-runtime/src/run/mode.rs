//! Determines the mode of a run (GATE-2).

use crate::inner::Inner;
use crate::request::RunRequest;
use crabtalk_domain::{AgentConfig, Mode, Origin};
use crabtalk_gate::Standing;
use std::path::Path;

/// The mode that the agent's configuration determines; `None` if the folder decides.
fn of_agent(request: &RunRequest, agent: &AgentConfig) -> Option<Mode> {
    match &request.origin {
        Origin::Delegate { .. } => agent.mode.or(request.mode),
        Origin::Client { .. } | Origin::Cron { .. } | Origin::Event { .. } => agent.mode,
    }
}

/// Whether the folder allows mode `auto`, if the folder decides the mode.
pub(super) async fn is_contained(
    rt: &Inner,
    request: &RunRequest,
    agent: &AgentConfig,
    standing: Standing,
    cwd: &Path,
) -> bool {
    let is_asked = of_agent(request, agent).is_none() && standing.is_owner && !standing.unattended;
    is_asked && rt.toolbox.disk().is_contained(cwd).await
}

/// The mode of a run: that of the agent or folder, unless the request lowers it. Only an
/// owner on the local socket may raise it. A delegate without a configured mode has the
/// mode of the delegating run.
pub(super) fn mode_of(
    request: &RunRequest,
    agent: &AgentConfig,
    standing: Standing,
    is_contained: bool,
) -> Mode {
    let is_attended_owner = standing.is_owner && !standing.unattended;
    let of_agent = of_agent(request, agent);
    let own = crabtalk_gate::mode_of(of_agent, is_attended_owner, is_contained);
    let may_raise = request.may_raise_mode && is_attended_owner;
    let mode = match request.mode {
        Some(wanted) if wanted <= own || may_raise => wanted,
        Some(_) | None => own,
    };
    // The audit records this target.
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
