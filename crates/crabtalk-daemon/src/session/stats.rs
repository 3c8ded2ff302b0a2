//! The daemon's statistics and costs.

use super::Session;
use crate::error::Error;
use crate::ledger::Report;
use crate::services;
use crabtalk_domain::CallTotal;
use crabtalk_domain::records::{CostOf, CostReport};
use crabtalk_proto::*;
use crabtalk_runtime::Catalog;

impl Session {
    pub(super) async fn stats(&self, request: GetStats) -> Result<DaemonStats, Error> {
        let report = self.node.ledger.report(request.days).await;
        let runtime = &self.node.runtime;
        let (conversations, running) = runtime.load();
        let catalog = runtime.catalog();
        let walls = self.node.walls().await;
        if !self.reaches_everything() {
            return Ok(self.own_stats(report, &catalog));
        }
        Ok(DaemonStats {
            sandbox: walls.to_string(),
            sandbox_open: walls.open().unwrap_or_default(),
            uptime_secs: self.node.uptime_secs(),
            active_conversations: cut(conversations),
            registered_agents: cut(catalog.agents.len()),
            active_model: self.node.models.active(),
            version: env!("CARGO_PKG_VERSION").into(),
            running: u32::try_from(running).unwrap_or(u32::MAX),
            connections: cut(self.node.crowd.open()),
            rss_bytes: rss_bytes(),
            scope_violations: runtime.violations(),
            tokens_today: report.today.usage.total_tokens(),
            money_today: report.today.money(),
            budgets_open_at: report.opens_at.clone(),
            tokens_per_day: report.budget.tokens_per_day,
            money_per_day: report.budget.money_per_day,
            spending: spending(report.costs, &catalog),
            services: self.node.services.rows().into_iter().map(service).collect(),
        })
    }

    /// Statistics for a token, limited to its reach.
    fn own_stats(&self, report: Report, catalog: &Catalog) -> DaemonStats {
        let live = self.node.runtime.live_all();
        let reached = || live.iter().filter(|live| self.reaches_key(&live.key));
        let agents = catalog.agents.keys();
        let mut rows = spending(report.costs, catalog);
        rows.retain(|row| match row.by.as_str() {
            "conversation" | "run" => self.reaches(&row.agent, &row.sender),
            _ => false,
        });
        DaemonStats {
            uptime_secs: self.node.uptime_secs(),
            version: env!("CARGO_PKG_VERSION").into(),
            active_model: self.node.models.active(),
            active_conversations: cut(reached().count()),
            running: cut(reached().filter(|live| live.running).count()),
            registered_agents: cut(agents
                .filter(|name| self.reaches_agent(name.as_str()))
                .count()),
            spending: rows,
            ..DaemonStats::default()
        }
    }
}

fn cut(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn service(row: services::Row) -> ServiceInfo {
    ServiceInfo {
        name: row.name.into(),
        owner: row.owner.into(),
        state: row.state.word().into(),
        since: row.since,
        on_failure: row.on_failure.word().into(),
        restarts: row.restarts,
        last_error: row.last_error,
    }
}

fn spending(report: CostReport, catalog: &Catalog) -> Vec<Spending> {
    let days = report.days.into_iter().map(|(day, sum)| Spending {
        day: day.to_string(),
        ..row("day", &sum)
    });
    let agents = report.agents.into_iter().map(|(agent, sum)| {
        let budget = catalog.agent(&agent).ok().map(|agent| agent.budget);
        Spending {
            tokens_per_day: budget.and_then(|budget| budget.tokens_per_day),
            money_per_day: budget.and_then(|budget| budget.money_per_day),
            agent,
            ..row("agent", &sum)
        }
    });
    let models = report.models.into_iter();
    let models = models.map(|((provider, model), sum)| Spending {
        provider,
        model,
        ..row("model", &sum)
    });
    let conversations = report.conversations.into_iter();
    let conversations = conversations.map(|((agent, sender), sum)| Spending {
        agent,
        sender,
        ..row("conversation", &sum)
    });
    let runs = report.runs.into_iter();
    let runs = runs.map(|run| Spending {
        agent: run.agent,
        sender: run.sender,
        run: run.run,
        at: run.at,
        code: match run.of {
            CostOf::Run(code) => code,
            CostOf::Call | CostOf::Reservation(_) => 0,
        },
        ..row("run", &run.total)
    });
    let rows = days.chain(agents).chain(models);
    rows.chain(conversations).chain(runs).collect()
}

fn row(by: &str, sum: &CallTotal) -> Spending {
    Spending {
        by: by.to_owned(),
        calls: sum.calls,
        prompt_tokens: sum.usage.prompt_tokens,
        completion_tokens: sum.usage.completion_tokens,
        cache_hit_tokens: sum.usage.cache_hit_tokens.unwrap_or_default(),
        money: sum.money(),
        unpriced_tokens: sum.cost.unpriced_tokens,
        ..Spending::default()
    }
}

/// Resident memory; 0 if unknown.
fn rss_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}
