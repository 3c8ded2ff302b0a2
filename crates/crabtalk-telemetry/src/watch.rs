//! Follows the daemon's events and serves the metrics.

use crate::figures::{Figures, Outcome};
use crate::otlp;
use crate::page::{CONTENT_TYPE, page};
use crate::runs::{Runs, Span};
use crate::settings::Settings;
use anyhow::Context;
use crabtalk_client::{
    AgentEventKind as Kind, AgentEventMsg, Client, Endpoint, GetStats, SubscribeEvents, WatchNews,
};
use crabtalk_component::axum::extract::State;
use crabtalk_component::axum::http::header::CONTENT_TYPE as HEADER;
use crabtalk_component::axum::response::IntoResponse;
use crabtalk_component::axum::routing::get;
use crabtalk_component::{Home, axum, serve_http};
use futures_util::StreamExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

/// Timeout of the daemon; without its answer the page contains only the counters.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// Delay between two attempts to follow a daemon that is not running.
const TRY_EVERY: Duration = Duration::from_secs(2);

struct Telemetry {
    client: Client,
    figures: Mutex<Figures>,
    outbox: Option<Sender<Span>>,
}

pub(crate) async fn serve(
    home: &Home,
    settings: Settings,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (outbox, spans) = otlp::queue();
    let telemetry = Arc::new(Telemetry {
        client: Client::new(Endpoint::of_home(home.path()), "telemetry")
            .with_patience(Duration::ZERO),
        figures: Mutex::default(),
        outbox: settings.otlp.is_some().then_some(outbox),
    });
    let sending = async {
        if let Some(otlp) = settings.otlp {
            otlp::send(otlp, spans, stop.clone()).await;
        }
    };
    let answering = async {
        let Some(prometheus) = settings.prometheus else {
            stop.cancelled().await;
            return Ok(());
        };
        let router = axum::Router::new()
            .route("/metrics", get(metrics))
            .with_state(Arc::clone(&telemetry));
        let listener = TcpListener::bind(prometheus.listen).await;
        let listener =
            listener.with_context(|| format!("cannot listen on {}", prometheus.listen))?;
        serve_http(listener, router, stop.clone()).await
    };
    let watching = async {
        tokio::select! {
            () = telemetry.watch() => {}
            () = stop.cancelled() => {}
        }
    };
    let telling = async {
        tokio::join!(sending, watching);
        Ok(())
    };
    tokio::try_join!(answering, telling)?;
    Ok(())
}

async fn metrics(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    let stats = telemetry.client.call(GetStats::default());
    let stats = tokio::time::timeout(ANSWER_WITHIN, stats).await;
    let stats = stats.ok().and_then(Result::ok);
    let figures = telemetry.figures().clone();
    ([(HEADER, CONTENT_TYPE)], page(stats.as_ref(), &figures))
}

impl Telemetry {
    fn figures(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts events, reconnecting to the daemon.
    async fn watch(&self) {
        let mut runs = Runs::default();
        loop {
            let mut news = self.client.watch(SubscribeEvents {
                without_deltas: true,
                ..SubscribeEvents::default()
            });
            while let Some(Ok(news)) = news.next().await {
                match news {
                    WatchNews::Event(event) => self.take(&mut runs, &event).await,
                    WatchNews::Back { missed } => {
                        self.figures().missed += missed;
                    }
                    WatchNews::Restarted { missed } => {
                        self.figures().missed += missed;
                        runs.forget();
                    }
                    WatchNews::Lost { .. } => {}
                }
            }
            // The ends of runs may be missed while disconnected.
            runs.forget();
            tokio::time::sleep(TRY_EVERY).await;
        }
    }

    async fn take(&self, runs: &mut Runs, event: &AgentEventMsg) {
        self.figures().missed += event.missed;
        match event.kind() {
            Kind::RunStarted => runs.begun(event),
            Kind::ToolStart => runs.calls_begun(event),
            Kind::ToolResult => {
                if let Some(tool) = runs.call_ended(event) {
                    self.figures().tool_ended(&tool, event.tool_is_error);
                }
            }
            Kind::Ask => self.figures().asks += 1,
            Kind::Compacted => self.figures().compactions += 1,
            Kind::Done => self.ended(runs, event, Outcome::Done).await,
            Kind::RunError => self.ended(runs, event, Outcome::Failed).await,
            Kind::RunKilled => self.ended(runs, event, Outcome::Killed).await,
            Kind::TextDelta
            | Kind::ThinkingDelta
            | Kind::ToolsComplete
            | Kind::TextStart
            | Kind::TextEnd
            | Kind::ThinkingStart
            | Kind::ThinkingEnd
            | Kind::Steered
            | Kind::Notice
            | Kind::AskSettled
            | Kind::Component
            | Kind::ToolProgress
            | Kind::Subscribed => {}
        }
    }

    async fn ended(&self, runs: &mut Runs, event: &AgentEventMsg, outcome: Outcome) {
        let tokens = match self.outbox {
            Some(_) => self.tokens(event).await,
            None => None,
        };
        let ended = runs.ended(event, outcome == Outcome::Failed, tokens);
        self.figures().run_ended(&event.agent, outcome, ended.took);
        if let Some(outbox) = &self.outbox {
            otlp::put(outbox, ended.spans);
        }
    }

    /// The tokens of a run, from the daemon's ledger.
    async fn tokens(&self, event: &AgentEventMsg) -> Option<(u64, u64)> {
        let stats = self.client.call(GetStats::default());
        let stats = tokio::time::timeout(ANSWER_WITHIN, stats)
            .await
            .ok()?
            .ok()?;
        let of_run = stats.spending.into_iter().find(|row| {
            row.by == "run"
                && row.run == event.run
                && row.agent == event.agent
                && row.sender == event.sender
        })?;
        Some((of_run.prompt_tokens, of_run.completion_tokens))
    }
}
