//! The status line and its figures.
//!
//! Invariants: unknown figures are not shown; the line never wraps, and its
//! least important parts are dropped first.

use super::Live;
use super::calls::Pair;
use super::transcript::MARGIN;
use crate::text::money;
use crate::topic;
use anstyle::Style;
use crabtalk_client::Client;
use crabtalk_proto::{
    CompactedEvent, GetStats, ListActiveConversationsMsg, ModelInfo, Spending, StreamEnd,
};
use crabtalk_render::{Line, Span, shorten, theme};
use std::path::Path;

/// Separator of the parts.
const BETWEEN: &str = " \u{b7} ";

/// Number of days to request; the daemon keeps fewer.
const ALL_DAYS: u32 = u32::MAX;

/// Figures of the shown conversation.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Tokens of the runs that this chat followed.
    pub(super) tokens: u64,
    /// Tokens in the context; 0 if unknown.
    pub(super) context: u64,
    /// A model and its window size, as reported by its last run.
    window: Option<(String, u64)>,
    /// Cost of the conversation.
    pub(super) money: f64,
    /// Whether the figures were requested from the daemon.
    pub(super) is_read: bool,
}

/// Figures that the daemon stores.
#[derive(Debug, Default)]
struct Read {
    agent: String,
    sender: String,
    money: Option<f64>,
    context: Option<u64>,
    window: Option<u64>,
}

impl Figures {
    /// Adds the figures of a run that ended.
    pub(super) fn ended(&mut self, end: &StreamEnd, is_guest: bool) {
        if let Some(usage) = &end.usage {
            let sum = usage.prompt_tokens.saturating_add(usage.completion_tokens);
            self.tokens += u64::from(usage.total_tokens.max(sum));
        }
        self.money += end.money.unwrap_or_default();
        if is_guest {
            return;
        }
        self.context = end.context_used.unwrap_or(self.context);
        if let (Some(window), false) = (end.context_window, end.model.is_empty()) {
            self.window = Some((end.model.clone(), window));
        }
    }

    /// Records the size after a compaction.
    pub(super) fn compacted(&mut self, event: &CompactedEvent) {
        if event.failed.is_empty() {
            self.context = event.tokens_after;
        }
    }

    /// Applies figures of the daemon.
    fn take(&mut self, read: &Read, model: &str) {
        self.money = read.money.unwrap_or(self.money);
        self.context = read.context.unwrap_or(self.context);
        if let (Some(window), None) = (read.window, &self.window) {
            self.window = Some((model.to_owned(), window));
        }
    }

    /// Used part of a model's window in percent.
    pub(super) fn percent(&self, model: &str, models: &[ModelInfo]) -> Option<u64> {
        let reported = self.window.as_ref().filter(|(of, _)| of == model);
        let listed = || models.iter().find(|info| info.name == model)?.context;
        let window = reported.map(|(_, window)| *window).or_else(listed);
        let window = window.filter(|window| *window > 0)?;
        (self.context > 0).then(|| (self.context.saturating_mul(100)).div_ceil(window))
    }
}

/// Requests the figures of a conversation; refused ones stay unknown.
async fn read(client: Client, pair: Pair) -> Read {
    let Pair { agent, sender } = pair;
    let live = client.call(ListActiveConversationsMsg {
        agent: agent.clone(),
        sender: sender.clone(),
        ..ListActiveConversationsMsg::default()
    });
    let stats = client.call(GetStats { days: ALL_DAYS });
    let (live, stats) = futures_util::join!(live, stats);
    let live = live.map(|list| list.conversations).unwrap_or_default();
    let of_pair =
        |row: &&Spending| row.by == "conversation" && row.agent == agent && row.sender == sender;
    let spent = stats.ok().map(|stats| {
        let row = stats.spending.iter().find(of_pair);
        row.map_or(0.0, |row| row.money)
    });
    let live = live
        .iter()
        .find(|info| info.agent == agent && info.sender == sender);
    Read {
        money: spent,
        context: live.and_then(|info| info.context_used),
        window: live.and_then(|info| info.context_window),
        agent,
        sender,
    }
}

impl Live<'_> {
    /// Requests the figures of the shown conversation.
    pub(super) fn read_figures(&mut self) {
        self.figures.is_read = true;
        let read = read(self.client.clone(), self.learned_pair());
        self.call(read, |live, read| {
            if read.agent == live.learned.agent && read.sender == live.learned.sender {
                live.figures.take(&read, live.model.name());
            }
        });
    }

    /// Reads the branch again, since a command may have changed it.
    pub(super) fn read_branch(&mut self) {
        self.branch = match self.client.endpoint().is_local() {
            true => branch(&self.cwd),
            // The local folder is not the conversation's.
            false => None,
        };
    }

    /// The status line.
    pub(super) fn status(&self, width: usize, spinner: &str) -> Line {
        let mut parts = Parts::default();
        if let Some(why) = self.outage.why() {
            parts.add(0, format!("disconnected: {why}"), theme::BAD);
        }
        let others = self.others.len();
        if others > 0 {
            let asks = if others == 1 { "ask" } else { "asks" };
            let text = format!("{others} {asks} elsewhere (Ctrl-O)");
            parts.add(0, text, theme::ASKS);
        }
        match self.runs.is_empty() {
            true => parts.add(1, self.learned.agent.clone(), theme::DIM),
            false => {
                let text = format!("{spinner} {}", self.learned.agent);
                parts.add(1, text, theme::GOOD);
            }
        }
        parts.add(7, self.folder(), theme::DIM);
        let branch = self.branch.clone().unwrap_or_default();
        parts.add(5, branch, theme::DIM);
        let (sender, topic) = topic::split(&self.learned.sender);
        if topic != topic::MAIN {
            parts.add(1, format!("topic {topic}"), theme::GOOD);
        }
        let sender = match sender {
            "user" => String::new(),
            // The folder next to it shows the name.
            sender if self.cwd.ends_with(sender.trim_start_matches("user/")) => String::new(),
            sender => format!("as {sender}"),
        };
        parts.add(6, sender, theme::DIM);
        parts.add(2, self.model.name().to_owned(), theme::DIM);
        match self.mode.name() {
            "full" => parts.add(0, "full".to_owned(), theme::BAD),
            mode => parts.add(2, mode.to_owned(), theme::DIM),
        }
        parts.add(3, self.context_used(), theme::DIM);
        if self.figures.money > 0.0 {
            parts.add(4, money(self.figures.money), theme::DIM);
        }
        parts.line(width)
    }

    /// The folder and branch.
    pub(super) fn place(&self) -> String {
        match &self.branch {
            Some(branch) => format!("{} ({branch})", self.folder()),
            None => self.folder(),
        }
    }

    /// The folder of the runs.
    fn folder(&self) -> String {
        if !self.client.endpoint().is_local() {
            let named = self.context.global.cwd.as_deref();
            return named.map_or_else(String::new, |folder| folder.display().to_string());
        }
        match self.cwd.strip_prefix(&self.user_home) {
            Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Ok(below) => format!("~/{}", below.display()),
            Err(_) => self.cwd.display().to_string(),
        }
    }

    /// The used part of the context window.
    pub(super) fn context_used(&self) -> String {
        let percent = self
            .figures
            .percent(self.model.name(), &self.learned.models);
        percent.map_or_else(String::new, |percent| format!("{percent}% context"))
    }
}

/// Parts of the line; those with a high rank are dropped first.
#[derive(Debug, Default)]
struct Parts(Vec<(usize, Span)>);

impl Parts {
    fn add(&mut self, rank: usize, text: String, style: Style) {
        if !text.is_empty() {
            self.0.push((rank, Span::new(text, style)));
        }
    }

    fn width(&self) -> usize {
        let between = BETWEEN.chars().count();
        let parts = self.0.iter().map(|(_, span)| span.width() + between);
        parts.sum::<usize>().saturating_sub(between) + MARGIN.len()
    }

    fn line(mut self, width: usize) -> Line {
        while self.width() > width && self.0.len() > 1 {
            let last = self.0.iter().enumerate();
            let last = last.max_by_key(|(_, (rank, _))| *rank);
            let Some((at, _)) = last else { break };
            self.0.remove(at);
        }
        let mut line = Line::styled(MARGIN, theme::PLAIN);
        for (index, (_, span)) in self.0.into_iter().enumerate() {
            if index > 0 {
                line.push(Span::new(BETWEEN, theme::DIM));
            }
            line.push(span);
        }
        shorten(&line, width)
    }
}

/// The branch of the repository that contains a folder, from `HEAD`.
pub(super) fn branch(folder: &Path) -> Option<String> {
    const MAX_HEAD: u64 = 4096;
    let git = folder
        .ancestors()
        .map(|folder| folder.join(".git"))
        .find(|git| git.exists())?;
    let git = match git.is_dir() {
        true => git,
        // A linked worktree has its git directory elsewhere.
        false => {
            let text = crabtalk_files::read_text(&git, MAX_HEAD).ok()?;
            let path = text.strip_prefix("gitdir:")?.trim();
            git.parent()?.join(path)
        }
    };
    let head = crabtalk_files::read_text(&git.join("HEAD"), MAX_HEAD).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => head.chars().take(8).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_proto::TokenUsage;

    #[test]
    fn least_important_parts_go_first() {
        let shown = |width| {
            let mut parts = Parts::default();
            for (rank, text) in [(1, "crab"), (7, "~/work"), (5, "main"), (2, "sonnet")] {
                parts.add(rank, text.to_owned(), theme::DIM);
            }
            parts.add(3, "12% context".to_owned(), theme::DIM);
            parts.add(4, "$0.0068".to_owned(), theme::DIM);
            parts.line(width).text()
        };
        assert_eq!(
            shown(80),
            "  crab \u{b7} ~/work \u{b7} main \u{b7} sonnet \u{b7} 12% context \u{b7} $0.0068"
        );
        assert_eq!(
            shown(50),
            "  crab \u{b7} main \u{b7} sonnet \u{b7} 12% context \u{b7} $0.0068"
        );
        assert_eq!(
            shown(41),
            "  crab \u{b7} sonnet \u{b7} 12% context \u{b7} $0.0068"
        );
        assert_eq!(shown(20), "  crab \u{b7} sonnet");
        assert_eq!(shown(5), "  cr\u{2026}");
        for width in 1..90 {
            assert!(Line::plain(shown(width)).width() <= width.max(1), "{width}");
        }
    }

    #[test]
    fn context_is_measured_by_the_window_of_the_model() {
        let end = |model: &str, used, window| StreamEnd {
            model: model.into(),
            context_used: Some(used),
            context_window: Some(window),
            usage: Some(TokenUsage {
                total_tokens: 7,
                ..TokenUsage::default()
            }),
            money: Some(0.5),
            ..StreamEnd::default()
        };
        let info = |name: &str, context| ModelInfo {
            name: name.into(),
            context,
            ..ModelInfo::default()
        };
        let models = [info("small", Some(1_000)), info("odd", None)];
        let mut figures = Figures::default();
        assert_eq!(figures.percent("small", &models), None, "nothing is known");
        figures.ended(&end("big", 500, 10_000), false);
        assert_eq!(figures.percent("big", &models), Some(5));
        assert_eq!(figures.percent("small", &models), Some(50), "chosen");
        assert_eq!(figures.percent("odd", &models), None);
        figures.ended(&end("guest", 9, 10), true);
        assert_eq!(figures.percent("big", &models), Some(5), "of the agent");
        assert_eq!((figures.tokens, figures.money), (14, 1.0));
        figures.compacted(&CompactedEvent {
            tokens_after: 100,
            ..CompactedEvent::default()
        });
        assert_eq!(figures.percent("big", &models), Some(1));
        let read = Read {
            money: Some(3.0),
            ..Read::default()
        };
        figures.take(&read, "big");
        assert_eq!(figures.money, 3.0);
        assert_eq!(figures.percent("big", &models), Some(1), "kept");
    }

    #[test]
    fn branch_is_read_from_files_of_git() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["work/.git", "work/src", "meta/w", "tree/deep"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        for (path, text) in [
            ("work/.git/HEAD", "ref: refs/heads/topic/one\n"),
            ("tree/.git", "gitdir: ../meta/w\n"),
            ("meta/w/HEAD", "0123456789abcdef\n"),
        ] {
            std::fs::write(at(path), text).unwrap();
        }
        assert_eq!(branch(&at("work/src")).as_deref(), Some("topic/one"));
        assert_eq!(branch(&at("tree/deep")).as_deref(), Some("01234567"));
        assert_eq!(branch(&at("meta")), None);
    }
}
