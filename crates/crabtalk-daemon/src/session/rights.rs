//! Lists and changes agents, their rights, and stored approvals.

use super::{Session, narrowed};
use crate::agents::Change;
use crate::compose::{BUILT_IN, DEFAULT_PROMPT};
use crate::error::Error;
use crabtalk_domain::AgentConfig;
use crabtalk_gate::{Approval, ToolRights as Rights};
use crabtalk_proto::*;

impl Session {
    pub(super) async fn agents(&self, _: ListAgentsMsg) -> Result<AgentList, Error> {
        let mut frontmatters = self.node.agents.frontmatters().await?;
        let catalog = self.node.runtime.catalog();
        let agents = catalog.agents.values();
        let reached = agents.filter(|agent| self.reaches_agent(agent.name.as_str()));
        let agents = reached.map(|agent| {
            let config = frontmatters.remove(agent.name.as_str());
            self.shown(info(agent, config.unwrap_or_default()))
        });
        Ok(AgentList {
            agents: agents.collect(),
        })
    }

    pub(super) async fn agent(&self, request: GetAgentMsg) -> Result<AgentInfo, Error> {
        let catalog = self.node.runtime.catalog();
        let agent = catalog.agent(&request.name)?;
        let mut frontmatters = self.node.agents.frontmatters().await?;
        let config = frontmatters.remove(agent.name.as_str());
        Ok(self.shown(info(agent, config.unwrap_or_default())))
    }

    /// Removes parts of an agent that this client may not see: the file, unless it reaches
    /// everything, and the prompt without the role `operate`.
    fn shown(&self, mut agent: AgentInfo) -> AgentInfo {
        if !self.reaches_everything() {
            agent.config.clear();
            agent.members.retain(|member| self.reaches_agent(member));
            if self.role() < Role::Operate {
                agent.prompt.clear();
            }
        }
        agent
    }

    pub(super) async fn make_agent(&self, request: CreateAgentMsg) -> Result<AgentInfo, Error> {
        let (name, config) = (request.name, request.config);
        let change = Change::Create;
        self.write_agent(change, name, config, request.prompt).await
    }

    pub(super) async fn change_agent(&self, request: UpdateAgentMsg) -> Result<AgentInfo, Error> {
        let (name, config) = (request.name, request.config);
        let built_in = (name == BUILT_IN).then_some(DEFAULT_PROMPT);
        let change = Change::Update { built_in };
        self.write_agent(change, name, config, request.prompt).await
    }

    async fn write_agent(
        &self,
        change: Change,
        name: String,
        config: String,
        prompt: String,
    ) -> Result<AgentInfo, Error> {
        let files = &self.node.agents;
        files.write(change, name.clone(), config, prompt).await?;
        self.take_agents().await?;
        self.agent(GetAgentMsg { name }).await
    }

    pub(super) async fn remove_agent(
        &self,
        DeleteAgentMsg { name }: DeleteAgentMsg,
    ) -> Result<(), Error> {
        let catalog = self.node.runtime.catalog();
        if catalog.default_agent.as_str() == name && name != BUILT_IN {
            return Err(Error::Conflict(format!(
                "{name} is the default agent: set another default_agent in config.toml first"
            )));
        }
        self.node.agents.remove(name).await?;
        self.take_agents().await
    }

    /// Applies the written file.
    async fn take_agents(&self) -> Result<(), Error> {
        self.node.reload().await.map(drop).map_err(|error| {
            Error::Failed(format!(
                "the agent's file is written, but the configuration cannot be read: {error}"
            ))
        })
    }

    pub(super) async fn rights(&self, request: GetRightsMsg) -> Result<AgentRights, Error> {
        let (agent, tools) = self.node.runtime.rights(&request.agent)?;
        let tool = |rights: Rights| ToolRights {
            tool: rights.tool,
            owner: rights.owner,
            other: rights.other,
            unattended: rights.unattended,
            rules: rights.rules,
        };
        Ok(AgentRights {
            agent: agent.name.to_string(),
            tools: tools.into_iter().map(tool).collect(),
            skills: agent.scope.skills.clone(),
            mcps: agent.scope.mcps.clone(),
            members: {
                let members = agent.scope.members.iter();
                let reached = members.filter(|member| self.reaches_agent(member));
                reached.cloned().collect()
            },
            sandbox: true,
            sandbox_strict: false,
            mode: agent.mode.map(|mode| mode.to_string()).unwrap_or_default(),
            cwd: match self.reaches_everything() {
                true => folder(&agent),
                false => String::new(),
            },
        })
    }

    pub(super) async fn approvals(&self, request: ListApprovalsMsg) -> Result<ApprovalList, Error> {
        let (agent, sender) = (narrowed(&request.agent), narrowed(&request.sender));
        let fits = |want: Option<&str>, is: &str| want.is_none_or(|want| want == is);
        let listed = self.node.approvals.listed();
        let approvals = (1..)
            .zip(listed.iter())
            .filter(|(_, a)| fits(agent, &a.agent) && fits(sender, &a.sender))
            .filter(|(_, a)| self.reaches(&a.agent, &a.sender))
            .map(|(index, approval)| {
                let mut info = approval_info(index, approval);
                if !self.reaches_everything() {
                    info.by.clear();
                }
                info
            });
        Ok(ApprovalList {
            approvals: approvals.collect(),
        })
    }

    pub(super) async fn take_approval_back(&self, request: RemoveApprovalMsg) -> Result<(), Error> {
        if !self.reaches_everything() {
            let listed = self.node.approvals.listed();
            let index = (request.index as usize).checked_sub(1);
            let one = index.and_then(|index| listed.get(index));
            if !one.is_some_and(|a| self.reaches(&a.agent, &a.sender)) {
                return Err(Error::NotFound(format!(
                    "approval {} does not exist",
                    request.index
                )));
            }
        }
        let approvals = &self.node.approvals;
        let approval = approvals.remove(request.index, request.exact).await?;
        tracing::info!(
            target: "security",
            agent = %approval.agent,
            sender = %approval.sender,
            tool = %approval.tool,
            exact = %approval.exact,
            "an approval was removed"
        );
        Ok(())
    }
}

fn folder(agent: &AgentConfig) -> String {
    let cwd = agent.cwd.as_ref().map(|cwd| cwd.to_string_lossy());
    cwd.unwrap_or_default().into_owned()
}

fn info(agent: &AgentConfig, config: String) -> AgentInfo {
    AgentInfo {
        name: agent.name.to_string(),
        description: agent.description.clone(),
        config,
        model: (!agent.model.is_empty()).then(|| agent.model.clone()),
        max_iterations: agent.max_iterations,
        thinking: agent.thinking,
        members: agent.scope.members.clone(),
        skills: agent.scope.skills.clone(),
        mcps: agent.scope.mcps.clone(),
        compact_threshold: agent
            .compact_threshold
            .map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
        compact_tool_max_len: 0,
        tools: agent.scope.tools.clone(),
        prompt: agent.prompt.clone(),
    }
}

fn approval_info(index: u32, approval: &Approval) -> ApprovalInfo {
    ApprovalInfo {
        index,
        agent: approval.agent.clone(),
        sender: approval.sender.clone(),
        tool: approval.tool.clone(),
        exact: approval.exact.clone(),
        cwd: approval.cwd.clone(),
        at: approval.at.clone(),
        by: approval.by.clone(),
        prefix: match approval.prefix {
            true => approval.exact.clone(),
            false => String::new(),
        },
    }
}
