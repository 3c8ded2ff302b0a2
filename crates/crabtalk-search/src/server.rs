//! The tools for agents, and the background update.

use crate::index::{Error, Index};
use crate::settings::Settings;
use anyhow::Context;
use crabtalk_component::{Component, Home, Mcp, McpService, Service, run_mcp};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{schemars, tool, tool_router};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Time for which a search waits for an update before it uses the current index.
const FRESH_WITHIN: Duration = Duration::from_secs(2);

/// Duration of one part of the background update, which bounds the delay of a stop.
const PIECE: Duration = Duration::from_secs(1);

/// Minimum pause between two updates, and its minimum as a multiple of an update's duration, so
/// that large folders are updated less often.
const PAUSE: Duration = Duration::from_secs(30);
const PAUSE_TIMES: u32 = 20;

/// Default number of hits.
const HITS: usize = 10;

/// Default number of lines of a file.
const LINES: usize = 200;

/// Folders, index and settings of a home.
#[derive(Debug, Clone)]
pub struct Search {
    home: Home,
}

impl Search {
    /// The search of a home.
    #[must_use]
    pub fn of_home(home: Home) -> Self {
        Self { home }
    }

    /// `config/search.toml`.
    #[must_use]
    pub fn settings_file(&self) -> PathBuf {
        self.home.path().join("config/search.toml")
    }

    /// The settings, read for each call.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings::read(&self.settings_file())?)
    }

    /// Opens the index.
    pub fn index(&self) -> anyhow::Result<Index> {
        let folder = self.home.state("search");
        self.home.make(&folder)?;
        Ok(Index::open(&folder)?)
    }

    /// The folder that is always excluded.
    #[must_use]
    pub fn except(&self) -> PathBuf {
        let home = self.home.path();
        home.canonicalize().unwrap_or_else(|_| home.to_owned())
    }

    /// The updated index, with a note if the update is incomplete.
    fn fresh(&self, settings: &Settings) -> anyhow::Result<(Index, Option<String>)> {
        let mut index = self.index()?;
        let until = Instant::now() + FRESH_WITHIN;
        let updated = index.update(settings, &self.except(), Some(until))?;
        let note = match (updated.complete, updated.failed.is_empty()) {
            (false, _) => Some(format!(
                "indexing is not complete; {} files are indexed so far",
                index.files()?
            )),
            (true, false) => Some(format!("cannot read {}", updated.failed.join(", "))),
            (true, true) => None,
        };
        Ok((index, note))
    }

    fn search(&self, words: &str, most: usize) -> anyhow::Result<String> {
        let settings = self.settings()?;
        if settings.folders.is_empty() {
            return Ok(
                "There is no folder to search; the user can add one with `crabtalk-search add \
                 FOLDER`."
                    .into(),
            );
        }
        let (index, note) = self.fresh(&settings)?;
        let mut out = String::new();
        for hit in index.search(&settings, words, most)? {
            let _ = writeln!(out, "{}:{}\n{}\n", hit.path.display(), hit.line, hit.text);
        }
        if out.is_empty() {
            out.push_str("Nothing found.\n");
        }
        if let Some(note) = note {
            let _ = write!(out, "[{note}]");
        }
        Ok(out)
    }

    fn open(&self, path: &str, line: usize, count: usize) -> anyhow::Result<String> {
        let settings = self.settings()?;
        let path = Path::new(path);
        let shown = match self.index()?.show(&settings, path, line, count) {
            // The file may be new: update and try again.
            Err(Error::Unknown(_)) => self
                .fresh(&settings)?
                .0
                .show(&settings, path, line, count)?,
            shown => shown?,
        };
        let mut out = String::new();
        for (at, line) in shown.lines.iter().enumerate() {
            let _ = writeln!(out, "{:>6}  {line}", shown.first + at);
        }
        let next = shown.first + shown.lines.len();
        if next <= shown.total {
            let _ = write!(
                out,
                "[{} lines in total; continue with line = {next}]",
                shown.total
            );
        }
        Ok(out)
    }

    /// Updates the index periodically.
    async fn keep_up(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let (search, begun) = (self.clone(), Instant::now());
            let looked = tokio::task::spawn_blocking(move || {
                let settings = search.settings()?;
                let until = Instant::now() + PIECE;
                let updated = search
                    .index()?
                    .update(&settings, &search.except(), Some(until))?;
                anyhow::Ok(updated)
            });
            let looked = looked
                .await
                .context("the update panicked")
                .and_then(|done| done);
            let pause = match looked {
                Ok(updated) if !updated.complete && updated.read > 0 => continue,
                Ok(updated) => {
                    if updated.read + updated.removed > 0 {
                        tracing::info!(updated.read, updated.removed, "updated the index");
                    }
                    PAUSE.max(begun.elapsed() * PAUSE_TIMES)
                }
                Err(e) => {
                    tracing::warn!(error = %format!("{e:#}"), "cannot update the index");
                    PAUSE
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

/// The search component.
#[derive(Debug, Clone)]
pub struct Server {
    component: Component,
    search: Option<Search>,
}

impl Server {
    /// A component that searches the folders of its home.
    #[must_use]
    pub fn new() -> Self {
        Self {
            component: Component::new("search", "Searches folders that you name"),
            search: None,
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Service for Server {
    fn component(&self) -> &Component {
        &self.component
    }

    async fn serve(self, home: Home, stop: CancellationToken) -> anyhow::Result<()> {
        let search = Search::of_home(home.clone());
        let server = Self {
            search: Some(search.clone()),
            ..self
        };
        let (served, ()) = tokio::join!(
            async {
                let served = run_mcp(server, home, stop.clone()).await;
                stop.cancel();
                served
            },
            search.keep_up(stop.clone())
        );
        served
    }
}

impl McpService for Server {
    fn router(&self, stop: CancellationToken) -> crabtalk_component::axum::Router {
        let search = self.search.clone().expect("it is being served");
        Mcp::new(self.component.clone(), move || Tools(search.clone())).router(stop)
    }
}

#[derive(Debug, Clone)]
struct Tools(Search);

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Words {
    /// Words to find; "words in quotes" are a phrase.
    words: String,
    /// Most hits, 10 by default.
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Open {
    /// A file that `search` named.
    path: String,
    /// The first line to show, from 1.
    #[serde(default)]
    line: Option<usize>,
    /// Number of lines to show, 200 by default.
    #[serde(default)]
    lines: Option<usize>,
}

#[tool_router(server_handler)]
impl Tools {
    /// Finds words in the folders that the person named: documents, notes, code.
    #[tool(annotations(read_only_hint = true))]
    async fn search(
        &self,
        Parameters(Words { words, limit }): Parameters<Words>,
    ) -> CallToolResult {
        let limit = limit.unwrap_or(HITS);
        self.blocking(move |search| search.search(&words, limit))
            .await
    }

    /// Shows lines of a file in those folders.
    #[tool(annotations(read_only_hint = true))]
    async fn open(
        &self,
        Parameters(Open { path, line, lines }): Parameters<Open>,
    ) -> CallToolResult {
        let (line, lines) = (line.unwrap_or(1), lines.unwrap_or(LINES));
        self.blocking(move |search| search.open(&path, line, lines))
            .await
    }
}

impl Tools {
    async fn blocking(
        &self,
        work: impl FnOnce(Search) -> anyhow::Result<String> + Send + 'static,
    ) -> CallToolResult {
        let search = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(search)).await;
        match done.context("the search panicked").and_then(|done| done) {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(e) => CallToolResult::error(vec![ContentBlock::text(format!("{e:#}"))]),
        }
    }
}
