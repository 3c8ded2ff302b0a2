//! Answers of the scripted server.

use crabtalk_proto::{
    ArchiveInfo, ConversationInfo, CronInfo, CronRun, DaemonStats, MemoryEntry, ModelInfo,
    ProviderInfo, ProviderKind, SearchHit, SearchMsg, Spending,
};

/// A conversation whose title contains terminal controls.
pub(super) fn conversation() -> ConversationInfo {
    ConversationInfo {
        agent: "crab".into(),
        sender: "user".into(),
        title: "a\x1b[1m title".into(),
        message_count: 2,
        used_at: "2026-11-21".into(),
        ..ConversationInfo::default()
    }
}

pub(super) fn archive() -> ArchiveInfo {
    ArchiveInfo {
        index: 1,
        title: "Moving".into(),
        archived_at: "2026-11-20T10:00:00Z".into(),
        message_count: 3,
        summary: "We moved.\n".into(),
    }
}

/// A search hit with an escape sequence.
pub(super) fn hit(request: &SearchMsg) -> SearchHit {
    SearchHit {
        source: "archive 1".into(),
        title: "Moving".into(),
        snippet: format!("{} of {}\n\x1b[2Jx", request.query, request.limit),
        score: 0.5,
        at: "2026-11-20T10:00:00Z".into(),
    }
}

pub(super) fn memories() -> impl Iterator<Item = MemoryEntry> {
    let entry = |name: &str| MemoryEntry {
        name: name.into(),
        sender: "user".into(),
        shared: name == "b",
        updated: "2026-11-20T10:00:00Z".into(),
        description: format!("about {name}"),
        ..MemoryEntry::default()
    };
    ["a", "b", "c"].into_iter().map(entry)
}

/// A model with a price, which is active, and an unknown model.
pub(super) fn models() -> Vec<ModelInfo> {
    let model = |name: &str, price: Option<f64>| ModelInfo {
        name: name.into(),
        id: format!("{name}-1"),
        provider: "main".into(),
        kind: ProviderKind::Openai.into(),
        active: price.is_some(),
        enabled: price.is_some(),
        context: price.map(|_| 1000),
        input_price: price,
        output_price: price.map(|price| 2.0 * price),
        price_is_approximate: true,
        images: price.map(|_| true),
    };
    vec![model("big", Some(1.5)), model("old", None)]
}

pub(super) fn provider() -> ProviderInfo {
    let config = r#"{"kind":"openai","api_key":"***","models":["a",{"name":"b"}]}"#;
    ProviderInfo {
        name: "main".into(),
        active: true,
        config: config.into(),
        enabled: true,
    }
}

/// Spending by day and agent.
pub(super) fn stats(days: u32) -> DaemonStats {
    let row = |by: &str| Spending {
        by: by.into(),
        agent: "crab".into(),
        day: format!("of {days}"),
        calls: 2,
        prompt_tokens: 30,
        completion_tokens: 4,
        money: 0.5,
        tokens_per_day: Some(100),
        ..Spending::default()
    };
    DaemonStats {
        tokens_today: 34,
        money_today: 0.5,
        money_per_day: Some(2.5),
        budgets_open_at: "2026-11-22T00:00:00+01:00".into(),
        spending: vec![row("day"), row("agent")],
        version: "9.9.9".into(),
        uptime_secs: 61,
        ..DaemonStats::default()
    }
}

/// A daily entry with a sender, quiet hours and a folder.
pub(super) fn cron() -> CronInfo {
    CronInfo {
        id: 3,
        schedule: "0 9 * * *".into(),
        skill: "review".into(),
        content: "the branches".into(),
        agent: "crab".into(),
        sender: "user/house".into(),
        quiet_start: "23:00".into(),
        quiet_end: "07:00".into(),
        cwd: "/src/house".into(),
        next_fire: "2026-11-22T08:00:00Z".into(),
        next_in_words: "tomorrow at 09:00".into(),
        last_outcome: "ok".into(),
        fired: 2,
        tokens: 30,
        money: Some(0.0068),
        ..CronInfo::default()
    }
}

/// A run on time, and due times that were skipped.
pub(super) fn cron_runs() -> Vec<CronRun> {
    vec![
        CronRun {
            id: 3,
            due: "2026-11-21T08:00:00Z".into(),
            fired: "2026-11-21T08:00:01Z".into(),
            outcome: "ok".into(),
            duration_ms: 1500,
            ..CronRun::default()
        },
        CronRun {
            id: 3,
            due: "2026-11-19T08:00:00Z".into(),
            last_due: "2026-11-20T08:00:00Z".into(),
            outcome: "skipped".into(),
            count: 2,
            reason: "quiet hours".into(),
            ..CronRun::default()
        },
    ]
}
