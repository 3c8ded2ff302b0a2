//! Messages as JSON, for scripts (`--json`).
//!
//! Invariant: names are those of the schema; every event has a `type`.

use crabtalk_proto::{
    ActiveConversationInfo, AgentEventKind, AgentEventMsg, AgentInfo, AgentRights, ApprovalInfo,
    ArchiveInfo, AskSettledEvent, AskUserEvent, ConversationInfo, DaemonStats, HistoryEntry, Image,
    MemoryEntry, ModelInfo, PendingAsk, ProviderInfo, ProviderKind, SearchHit, ServiceInfo,
    Spending, StreamEvent, TokenUsage, ToolCallInfo, stream_event,
};
use serde_json::{Value, json};

pub(crate) fn stream_event(event: &StreamEvent) -> Value {
    use stream_event::Event;
    let mut value = match &event.event {
        Some(Event::Start(e)) => {
            let mut value =
                json!({"type": "start", "agent": e.agent, "run": e.run, "model": e.model});
            if !e.notice.is_empty() {
                value["notice"] = e.notice.as_str().into();
            }
            value
        }
        Some(Event::Chunk(e)) => json!({"type": "chunk", "content": e.content}),
        Some(Event::Thinking(e)) => json!({"type": "thinking", "content": e.content}),
        Some(Event::ToolStart(e)) => json!({"type": "tool_start", "calls": calls(&e.calls)}),
        Some(Event::ToolResult(e)) => json!({
            "type": "tool_result", "call_id": e.call_id, "output": e.output,
            "duration_ms": e.duration_ms, "is_error": e.is_error, "images": images(&e.images),
        }),
        Some(Event::ToolsComplete(_)) => json!({"type": "tools_complete"}),
        Some(Event::End(e)) => json!({
            "type": "end", "agent": e.agent, "error": e.error, "code": e.code,
            "provider": e.provider, "model": e.model, "run": e.run, "usage": e.usage.as_ref().map(usage),
            "money": e.money, "unpriced_tokens": e.unpriced_tokens,
        }),
        Some(Event::AskUser(e)) => typed("ask_user", ask(e)),
        Some(Event::UserSteered(e)) => json!({"type": "user_steered", "content": e.content}),
        Some(Event::TextStart(e)) => json!({"type": "text_start", "agent": e.agent}),
        Some(Event::TextEnd(e)) => json!({"type": "text_end", "agent": e.agent}),
        Some(Event::ThinkingStart(e)) => json!({"type": "thinking_start", "agent": e.agent}),
        Some(Event::ThinkingEnd(e)) => json!({"type": "thinking_end", "agent": e.agent}),
        Some(Event::UserMessage(e)) => json!({
            "type": "user_message", "content": e.content, "guest": e.guest, "origin": e.origin,
        }),
        Some(Event::Compacted(e)) => json!({
            "type": "compacted", "tokens_before": e.tokens_before,
            "tokens_after": e.tokens_after, "title": e.title, "failed": e.failed,
        }),
        Some(Event::Interrupted(e)) => {
            json!({"type": "interrupted", "run": e.run, "reason": e.reason})
        }
        Some(Event::Waiting(e)) => {
            json!({"type": "waiting", "whom": e.whom, "timeout_secs": e.timeout_secs})
        }
        Some(Event::AskSettled(e)) => typed("ask_settled", settled(e)),
        Some(Event::Notice(e)) => json!({"type": "notice", "text": e.text}),
        // An event of a newer daemon.
        None => json!({"type": "unknown"}),
    };
    value["seq"] = event.seq.into();
    value
}

fn settled(settled: &AskSettledEvent) -> Value {
    let name = settled.outcome().as_str_name();
    let outcome = name.strip_prefix("ASK_OUTCOME_").unwrap_or(name);
    json!({
        "ask_id": settled.ask_id, "outcome": outcome.to_ascii_lowercase(), "by": settled.by,
        "answer": settled.answer,
    })
}

fn typed(kind: &str, mut value: Value) -> Value {
    value["type"] = kind.into();
    value
}

pub(crate) fn ask(ask: &AskUserEvent) -> Value {
    let questions = ask.questions.iter().map(|q| {
        let options = q.options.iter();
        let options = options.map(|o| json!({"label": o.label, "description": o.description}));
        json!({
            "question": q.question, "header": q.header, "multi_select": q.multi_select,
            "options": options.collect::<Value>(),
        })
    });
    json!({
        "ask_id": ask.ask_id, "kind": ask.kind, "tool": ask.tool, "detail": ask.detail,
        "lines": ask.lines, "preview": ask.preview, "preview_kind": ask.preview_kind,
        "cwd": ask.cwd, "reason": ask.reason, "always": ask.always.as_ref().map(approval),
        "questions": questions.collect::<Value>(),
    })
}

pub(crate) fn pending_ask(pending: &PendingAsk) -> Value {
    let mut value = pending.ask.as_ref().map_or_else(|| json!({}), ask);
    value["agent"] = pending.agent.as_str().into();
    value["sender"] = pending.sender.as_str().into();
    value["asked_at"] = pending.asked_at.as_str().into();
    value["inbox"] = pending.inbox.into();
    value
}

fn calls(calls: &[ToolCallInfo]) -> Value {
    let calls = calls.iter();
    calls
        .map(|c| json!({"call_id": c.call_id, "name": c.name, "arguments": c.arguments}))
        .collect()
}

/// What images there are; who wants their bytes speaks the protocol.
fn images(images: &[Image]) -> Value {
    let images = images.iter();
    images
        .map(|image| json!({"media_type": image.media_type, "bytes": image.data.len()}))
        .collect()
}

fn usage(usage: &TokenUsage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "cache_hit_tokens": usage.cache_hit_tokens,
        "cache_miss_tokens": usage.cache_miss_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    })
}

pub(crate) fn conversation(
    info: &ConversationInfo,
    active: Option<&ActiveConversationInfo>,
) -> Value {
    json!({
        "agent": info.agent, "sender": info.sender, "seq": info.seq, "title": info.title,
        "file_path": info.file_path, "message_count": info.message_count,
        "alive_secs": info.alive_secs, "date": info.date,
        "running": active.is_some_and(|a| a.running),
        "queued": active.map_or(0, |a| a.queued),
    })
}

pub(crate) fn history_entry(entry: &HistoryEntry) -> Value {
    json!({
        "index": entry.index, "role": entry.role, "content": entry.content,
        "agent": entry.agent, "timestamp": entry.timestamp,
        "tool_calls": calls(&entry.tool_calls), "tool_call_id": entry.tool_call_id,
        "compact": entry.compact, "images": images(&entry.images),
        "failed": entry.failed.as_ref().map(|run| {
            json!({"run": run.run, "code": run.code, "error": run.error})
        }),
    })
}

pub(crate) fn archive(archive: &ArchiveInfo) -> Value {
    json!({
        "index": archive.index, "title": archive.title, "archived_at": archive.archived_at,
        "message_count": archive.message_count, "summary": archive.summary,
    })
}

pub(crate) fn search_hit(hit: &SearchHit) -> Value {
    json!({
        "source": hit.source, "title": hit.title, "snippet": hit.snippet, "score": hit.score,
        "at": hit.at,
    })
}

/// An entry of a list; its content is told by [`memory_entry`].
pub(crate) fn memory_info(entry: &MemoryEntry) -> Value {
    json!({
        "name": entry.name, "description": entry.description, "agent": entry.agent,
        "sender": entry.sender, "shared": entry.shared, "created": entry.created,
        "updated": entry.updated,
    })
}

pub(crate) fn memory_entry(entry: &MemoryEntry) -> Value {
    let mut value = memory_info(entry);
    value["content"] = entry.content.as_str().into();
    value
}

pub(crate) fn approval(approval: &ApprovalInfo) -> Value {
    json!({
        "index": approval.index, "agent": approval.agent, "sender": approval.sender,
        "tool": approval.tool, "exact": approval.exact, "cwd": approval.cwd, "at": approval.at,
        "by": approval.by,
    })
}

pub(crate) fn agent(agent: &AgentInfo) -> Value {
    json!({
        "name": agent.name, "description": agent.description, "config": agent.config,
        "model": agent.model, "max_iterations": agent.max_iterations, "thinking": agent.thinking,
        "members": agent.members, "skills": agent.skills, "mcps": agent.mcps,
        "tools": agent.tools, "compact_threshold": agent.compact_threshold,
        "prompt": agent.prompt,
    })
}

pub(crate) fn rights(rights: &AgentRights) -> Value {
    let tools = rights.tools.iter().map(|tool| {
        json!({
            "tool": tool.tool, "owner": tool.owner, "other": tool.other,
            "unattended": tool.unattended, "rules": tool.rules,
        })
    });
    json!({
        "tools": tools.collect::<Value>(), "sandbox": rights.sandbox,
        "sandbox_strict": rights.sandbox_strict, "cwd": rights.cwd,
        "skills": rights.skills, "mcps": rights.mcps, "members": rights.members,
    })
}

pub(crate) fn stats(stats: &DaemonStats) -> Value {
    json!({
        "uptime_secs": stats.uptime_secs, "active_conversations": stats.active_conversations,
        "registered_agents": stats.registered_agents, "active_model": stats.active_model,
        "version": stats.version, "running": stats.running, "connections": stats.connections,
        "rss_bytes": stats.rss_bytes, "scope_violations": stats.scope_violations,
        "tokens_today": stats.tokens_today, "money_today": stats.money_today,
        "tokens_per_day": stats.tokens_per_day, "money_per_day": stats.money_per_day,
        "budgets_open_at": stats.budgets_open_at,
        "sandbox": stats.sandbox, "sandbox_open": stats.sandbox_open,
        "spending": stats.spending.iter().map(spending).collect::<Value>(),
        "services": stats.services.iter().map(service).collect::<Value>(),
    })
}

fn service(service: &ServiceInfo) -> Value {
    json!({
        "name": service.name, "owner": service.owner, "state": service.state,
        "since": service.since, "on_failure": service.on_failure,
        "restarts": service.restarts, "last_error": service.last_error,
    })
}

/// What was spent on one thing; names that do not tell it are left out.
fn spending(row: &Spending) -> Value {
    let mut value = json!({
        "by": row.by, "calls": row.calls, "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens, "cache_hit_tokens": row.cache_hit_tokens,
        "money": row.money, "unpriced_tokens": row.unpriced_tokens,
    });
    let names = [
        ("day", &row.day),
        ("at", &row.at),
        ("agent", &row.agent),
        ("sender", &row.sender),
        ("provider", &row.provider),
        ("model", &row.model),
    ];
    for (name, text) in names.into_iter().filter(|(_, text)| !text.is_empty()) {
        value[name] = text.as_str().into();
    }
    if row.run > 0 {
        value["run"] = row.run.into();
        value["code"] = row.code.into();
    }
    if let Some(limit) = row.tokens_per_day {
        value["tokens_per_day"] = limit.into();
    }
    if let Some(limit) = row.money_per_day {
        value["money_per_day"] = limit.into();
    }
    value
}

pub(crate) fn model(model: &ModelInfo) -> Value {
    json!({
        "name": model.name, "id": model.id, "provider": model.provider,
        "kind": kind(model.kind), "active": model.active,
        "enabled": model.enabled, "context": model.context, "input_price": model.input_price,
        "output_price": model.output_price, "price_is_approximate": model.price_is_approximate,
        "images": model.images,
    })
}

pub(crate) fn provider(provider: &ProviderInfo, config: Value) -> Value {
    json!({
        "name": provider.name, "active": provider.active, "enabled": provider.enabled,
        "config": config,
    })
}

/// The name of an event's kind; a number for one of a newer daemon.
pub(crate) fn event_kind(kind: i32) -> String {
    let Ok(kind) = AgentEventKind::try_from(kind) else {
        return kind.to_string();
    };
    let name = kind.as_str_name();
    name.strip_prefix("AGENT_EVENT_KIND_")
        .unwrap_or(name)
        .to_ascii_lowercase()
}

pub(crate) fn agent_event(event: &AgentEventMsg) -> Value {
    json!({
        "type": event_kind(event.kind), "agent": event.agent, "sender": event.sender,
        "content": event.content, "timestamp": event.timestamp, "run": event.run,
        "speaker": event.speaker,
        "tool_calls": calls(&event.tool_calls), "tool_output": event.tool_output,
        "tool_is_error": event.tool_is_error, "ask_id": event.ask_id, "missed": event.missed,
        "ask": event.ask.as_ref().map(ask), "settled": event.settled.as_ref().map(settled),
        "seq": event.seq, "life": event.life,
    })
}

/// The kind as the configuration names it; empty for others.
pub(crate) fn kind(kind: i32) -> String {
    match ProviderKind::try_from(kind) {
        Ok(ProviderKind::Unknown) | Err(_) => String::new(),
        Ok(kind) => {
            let name = kind.as_str_name();
            let name = name.strip_prefix("PROVIDER_KIND_").unwrap_or(name);
            name.to_ascii_lowercase()
        }
    }
}
