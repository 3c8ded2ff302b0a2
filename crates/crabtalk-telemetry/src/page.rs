//! Formats metrics in Prometheus's text format 0.0.4.

use crate::figures::{BOUNDS, Figures};
use crabtalk_client::{DaemonStats, Spending};
use std::fmt::{Display, Write};

/// The content type of the page.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

struct Page(String);

impl Page {
    /// Writes the header of a metric.
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Writes a metric with one value.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.metric(name, kind, help);
        self.value(name, &[], value);
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The page; `stats` is missing while the daemon does not answer.
pub(crate) fn page(stats: Option<&DaemonStats>, figures: &Figures) -> String {
    let mut page = Page(String::new());
    let up = u8::from(stats.is_some());
    page.one("crabtalk_up", "gauge", "Whether the daemon answers.", up);
    if let Some(stats) = stats {
        of_daemon(&mut page, stats);
        of_agents(&mut page, stats);
    }
    counted(&mut page, figures);
    page.0
}

fn of_daemon(page: &mut Page, stats: &DaemonStats) {
    page.metric("crabtalk_info", "gauge", "The daemon's version.");
    page.value("crabtalk_info", &[("version", &stats.version)], 1);
    let gauges: [(&str, &str, u64); 6] = [
        (
            "crabtalk_uptime_seconds",
            "Seconds since the daemon started.",
            stats.uptime_secs,
        ),
        (
            "crabtalk_running_runs",
            "Runs in flight.",
            stats.running.into(),
        ),
        (
            "crabtalk_loaded_conversations",
            "Conversations in memory.",
            stats.active_conversations.into(),
        ),
        ("crabtalk_agents", "Agents.", stats.registered_agents.into()),
        (
            "crabtalk_connections",
            "Open connections.",
            stats.connections.into(),
        ),
        (
            "crabtalk_resident_memory_bytes",
            "Resident memory in bytes.",
            stats.rss_bytes,
        ),
    ];
    for (name, help, value) in gauges {
        page.one(name, "gauge", help, value);
    }
    page.one(
        "crabtalk_scope_violations_total",
        "counter",
        "Tool calls refused for scope since the daemon started.",
        stats.scope_violations,
    );
    let failed = |state: &str| stats.services.iter().filter(|s| s.state == state).count();
    page.one(
        "crabtalk_failed_services",
        "gauge",
        "Failed services of the daemon.",
        failed("failed") + failed("pausing"),
    );
}

/// A label value and the amount of an agent.
type Amount = (&'static str, fn(&Spending) -> f64);

/// Converts a counter to a number of the format.
#[expect(clippy::cast_precision_loss, reason = "tokens of a day are below 2^53")]
fn count(count: u64) -> f64 {
    count as f64
}

/// Spending of agents since midnight, as gauges, since it is then reset.
fn of_agents(page: &mut Page, stats: &DaemonStats) {
    let agents = || stats.spending.iter().filter(|row| row.by == "agent");
    let amounts: [(&str, &str, &[Amount]); 3] = [
        (
            "crabtalk_model_calls_today",
            "Model calls since local midnight.",
            &[("", |row| count(row.calls))],
        ),
        (
            "crabtalk_tokens_today",
            "Tokens since local midnight; cached tokens also count as input.",
            &[
                ("input", |row| count(row.prompt_tokens)),
                ("output", |row| count(row.completion_tokens)),
                ("cached", |row| count(row.cache_hit_tokens)),
            ],
        ),
        (
            "crabtalk_money_today",
            "Money since local midnight, in the unit of the prices.",
            &[("", |row| row.money)],
        ),
    ];
    for (name, help, kinds) in amounts {
        page.metric(name, "gauge", help);
        for row in agents() {
            for (kind, amount) in kinds {
                let labels = [("agent", row.agent.as_str()), ("type", *kind)];
                let told = if kind.is_empty() { 1 } else { 2 };
                page.value(name, &labels[..told], amount(row));
            }
        }
    }
}

fn counted(page: &mut Page, figures: &Figures) {
    page.metric("crabtalk_runs_total", "counter", "Ended runs by outcome.");
    for ((agent, outcome), count) in &figures.runs {
        let labels = [("agent", agent.as_str()), ("outcome", outcome.as_str())];
        page.value("crabtalk_runs_total", &labels, count);
    }
    let name = "crabtalk_run_duration_seconds";
    page.metric(name, "histogram", "Duration of runs in seconds.");
    for (agent, times) in &figures.times {
        let bucket = format!("{name}_bucket");
        for (bound, within) in BOUNDS.iter().zip(&times.within) {
            let bound = bound.to_string();
            page.value(&bucket, &[("agent", agent), ("le", &bound)], within);
        }
        page.value(&bucket, &[("agent", agent), ("le", "+Inf")], times.count);
        page.value(&format!("{name}_sum"), &[("agent", agent)], times.seconds);
        page.value(&format!("{name}_count"), &[("agent", agent)], times.count);
    }
    let name = "crabtalk_tool_calls_total";
    page.metric(name, "counter", "Ended tool calls.");
    for ((tool, failed), count) in &figures.tools {
        let outcome = if *failed { "error" } else { "ok" };
        page.value(name, &[("tool", tool), ("outcome", outcome)], count);
    }
    let rest = [
        (
            "crabtalk_asks_total",
            "Questions and approvals that runs requested.",
            figures.asks,
        ),
        (
            "crabtalk_compactions_total",
            "Compactions, including failed ones.",
            figures.compactions,
        ),
        (
            "crabtalk_missed_events_total",
            "Events lost between the daemon and this component; the counters lack them.",
            figures.missed,
        ),
    ];
    for (name, help, value) in rest {
        page.one(name, "counter", help, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Outcome;
    use std::time::Duration;

    #[test]
    fn a_page_has_every_metric_and_escapes_names() {
        let mut figures = Figures::default();
        figures.run_ended("a\"b\\c\n", Outcome::Done, Some(Duration::from_secs(2)));
        figures.tool_ended("bash", true);
        let stats = DaemonStats {
            version: "1.2.3".to_owned(),
            spending: vec![Spending {
                by: "agent".to_owned(),
                agent: "crab".to_owned(),
                prompt_tokens: 12,
                ..Spending::default()
            }],
            ..DaemonStats::default()
        };
        let text = page(Some(&stats), &figures);
        for line in [
            "crabtalk_up 1",
            "crabtalk_info{version=\"1.2.3\"} 1",
            "crabtalk_tokens_today{agent=\"crab\",type=\"input\"} 12",
            "crabtalk_runs_total{agent=\"a\\\"b\\\\c\\n\",outcome=\"ok\"} 1",
            "crabtalk_run_duration_seconds_bucket{agent=\"a\\\"b\\\\c\\n\",le=\"5\"} 1",
            "crabtalk_tool_calls_total{tool=\"bash\",outcome=\"error\"} 1",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn counters_stay_while_the_daemon_is_down() {
        let figures = Figures {
            asks: 3,
            ..Figures::default()
        };
        let text = page(None, &figures);
        assert!(text.contains("\ncrabtalk_up 0\n"));
        assert!(text.contains("\ncrabtalk_asks_total 3\n"));
        assert!(!text.contains("crabtalk_info"));
    }
}
