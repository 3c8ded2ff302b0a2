//! Doubles: a server behind a real socket, a person at a terminal, a buffer.

use crate::args::{Cli, Command};
use crate::context::Context;
use crate::follow::Console;
use crate::prompt::Size;
use crate::screen::Screen;
use crate::terminal::{Line, Terminal};
use clap::Parser;
use crabtalk_config::Home;
use crabtalk_proto::{
    ActiveConversationList, ArchiveContent, ArchiveInfo, ArchiveList, AskList, AttachMsg,
    ConversationInfo, ConversationList, DaemonStats, DeleteProviderMsg, ForgetMsg, GetArchiveMsg,
    GetHistoryMsg, GetMemoryMsg, GetStats, HelloMsg, HistoryEntry, HistoryPage, ImportMemoryMsg,
    ImportedMemory, KillMsg, ListActiveConversationsMsg, ListArchivesMsg, ListAsksMsg,
    ListConversationsMsg, ListMemoryMsg, ListModelsMsg, ListProvidersMsg, ListSkillsMsg,
    MemoryEntry, MemoryImport, MemoryList, ModelInfo, ModelList, PendingAsk, ProviderChange,
    ProviderInfo, ProviderKind, ProviderList, ReloadConfigMsg, ReloadMsg, ReloadReport,
    RememberMsg, ReplyToAsk, Role, SearchHit, SearchMsg, SearchResults, Server, SetActiveModelMsg,
    SetEnabledMsg, SetProviderMsg, SkillInfo, SkillList, Spending, Status, StreamEvent, StreamMsg,
    WelcomeMsg, stream_event,
};
use crabtalk_transport::{Crowd, serve};
use futures_core::Stream;
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A buffer that several writers share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Waits until a text was shown so many times.
pub(crate) async fn shows(shown: &Shared, text: &str, times: usize) {
    while shown.text().matches(text).count() < times {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// What the server was told, one line each.
pub(crate) type Told = mpsc::Receiver<String>;

/// What the server answers.
#[derive(Clone)]
pub(crate) struct Script {
    events: Arc<Mutex<Option<mpsc::Receiver<StreamEvent>>>>,
    told: mpsc::Sender<String>,
    /// What a reload comes to; `None` for a daemon that does not tell.
    pub(crate) report: Arc<Mutex<Option<ReloadReport>>>,
    /// Whether there is something to attach to.
    pub(crate) runs: Arc<AtomicBool>,
    pub(crate) replies: Arc<Mutex<VecDeque<Result<(), Status>>>>,
    pub(crate) asks: Arc<Mutex<Vec<PendingAsk>>>,
    pub(crate) history: Arc<Mutex<Vec<HistoryEntry>>>,
    pub(crate) skills: Arc<Mutex<Vec<SkillInfo>>>,
    /// What it says of itself; `None` for one that does not know that request.
    pub(crate) welcome: Arc<Mutex<Option<WelcomeMsg>>>,
}

impl Script {
    fn events(&self) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + use<> {
        let events = self.events.lock().unwrap().take();
        let events = events.expect("one stream per test");
        futures_util::stream::unfold(events, async |mut events| {
            Some((events.recv().await?, events))
        })
        .map(Ok)
    }

    async fn told(&self, what: String) {
        self.told.send(what).await.unwrap();
    }
}

impl Server for Script {
    fn version(&self) -> &str {
        "9.9.9"
    }

    fn role(&self) -> Role {
        Role::Admin
    }

    async fn hello(&self, _: HelloMsg) -> Result<WelcomeMsg, Status> {
        let welcome = self.welcome.lock().unwrap().clone();
        welcome.ok_or_else(|| Status::new(501, "not built"))
    }

    fn stream(
        self: Arc<Self>,
        request: StreamMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        let told = format!("stream {:?} {}", request.agent, request.content);
        self.told.try_send(told).unwrap();
        self.events()
    }

    fn attach(
        self: Arc<Self>,
        _: AttachMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        if !self.runs.load(Ordering::SeqCst) {
            let refused = Err(Status::not_found("there is no such conversation"));
            return futures_util::stream::iter([refused]).left_stream();
        }
        self.told.try_send("attach".into()).unwrap();
        self.events().right_stream()
    }

    async fn reply_to_ask(&self, request: ReplyToAsk) -> Result<(), Status> {
        let id = request.ask_id.unwrap_or_default();
        self.told(format!("reply {id} {}", request.content)).await;
        self.replies.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }

    async fn reload(&self, _: ReloadMsg) -> Result<(), Status> {
        self.told("reload".into()).await;
        self.replies.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }

    async fn reload_config(&self, _: ReloadConfigMsg) -> Result<ReloadReport, Status> {
        let report = self.report.lock().unwrap().clone();
        report.ok_or_else(|| Status::new(501, "not built"))
    }

    async fn kill(&self, request: KillMsg) -> Result<(), Status> {
        self.told(format!("kill {:?} {:?}", request.agent, request.sender))
            .await;
        self.replies.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }

    async fn list_asks(&self, _: ListAsksMsg) -> Result<AskList, Status> {
        Ok(AskList {
            asks: self.asks.lock().unwrap().clone(),
        })
    }

    async fn list_active_conversations(
        &self,
        _: ListActiveConversationsMsg,
    ) -> Result<ActiveConversationList, Status> {
        Ok(ActiveConversationList::default())
    }

    async fn list_conversations(
        &self,
        request: ListConversationsMsg,
    ) -> Result<ConversationList, Status> {
        let info = ConversationInfo {
            agent: "crab".into(),
            sender: "user".into(),
            title: "a\x1b[1m title".into(),
            message_count: 2,
            date: "2026-11-21".into(),
            ..ConversationInfo::default()
        };
        Ok(ConversationList {
            conversations: vec![info],
            more: request.limit == 1,
        })
    }

    async fn get_history(&self, request: GetHistoryMsg) -> Result<HistoryPage, Status> {
        let history = self.history.lock().unwrap();
        if history.is_empty() {
            return Err(Status::not_found("there is no such conversation"));
        }
        let before = request.before.unwrap_or(u64::MAX);
        let older: Vec<_> = history
            .iter()
            .filter(|e| e.index < before)
            .cloned()
            .collect();
        // Pages of two, so that a client has to turn them.
        let count = (request.limit as usize).min(2);
        let from = older.len().saturating_sub(count);
        Ok(HistoryPage {
            entries: older[from..].to_vec(),
            more: from > 0,
            ..HistoryPage::default()
        })
    }

    async fn list_archives(&self, _: ListArchivesMsg) -> Result<ArchiveList, Status> {
        Ok(ArchiveList {
            archives: vec![archive()],
        })
    }

    async fn get_archive(&self, request: GetArchiveMsg) -> Result<ArchiveContent, Status> {
        let page = self.get_history(GetHistoryMsg {
            before: request.before,
            limit: request.limit,
            ..GetHistoryMsg::default()
        });
        let page = page.await?;
        Ok(ArchiveContent {
            info: Some(archive()),
            entries: page.entries,
            more: page.more,
        })
    }

    async fn search(&self, request: SearchMsg) -> Result<SearchResults, Status> {
        let hit = SearchHit {
            source: "archive 1".into(),
            title: "Moving".into(),
            snippet: format!("{} of {}\n\x1b[2Jx", request.query, request.limit),
            score: 0.5,
            at: "2026-11-20T10:00:00Z".into(),
        };
        Ok(SearchResults {
            hits: vec![hit],
            incomplete: request.query == "unfinished",
            ..SearchResults::default()
        })
    }

    async fn list_memory(&self, request: ListMemoryMsg) -> Result<MemoryList, Status> {
        let all = ["a", "b", "c"].map(|name| MemoryEntry {
            name: name.into(),
            sender: "user".into(),
            shared: name == "b",
            updated: "2026-11-20T10:00:00Z".into(),
            description: format!("about {name}"),
            ..MemoryEntry::default()
        });
        // Pages of two, so that a client has to turn them.
        let offset = request.offset as usize;
        let page = all.into_iter().skip(offset).take(2).collect();
        let warnings = (offset == 0).then(|| "x.md is broken".to_owned());
        Ok(MemoryList {
            entries: page,
            more: offset == 0,
            warnings: warnings.into_iter().collect(),
        })
    }

    async fn get_memory(&self, request: GetMemoryMsg) -> Result<MemoryEntry, Status> {
        Ok(MemoryEntry {
            name: request.name,
            description: "about it".into(),
            content: "what it says\n".into(),
            ..MemoryEntry::default()
        })
    }

    async fn remember(&self, request: RememberMsg) -> Result<(), Status> {
        let RememberMsg {
            sender,
            name,
            content,
            description,
            shared,
            ..
        } = request;
        self.told(format!(
            "remember {sender:?} {name:?} {content:?} {description:?} {shared:?}"
        ))
        .await;
        Ok(())
    }

    async fn forget(&self, request: ForgetMsg) -> Result<(), Status> {
        self.told(format!("forget {:?}", request.name)).await;
        self.replies.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }

    async fn import_memory(&self, request: ImportMemoryMsg) -> Result<MemoryImport, Status> {
        let imported = ImportedMemory {
            file: format!("{}/n.md", request.path),
            name: "n".into(),
        };
        Ok(MemoryImport {
            imported: vec![imported],
            skipped: vec!["e.md is empty".into()],
        })
    }

    async fn list_skills(&self, _: ListSkillsMsg) -> Result<SkillList, Status> {
        Ok(SkillList {
            skills: self.skills.lock().unwrap().clone(),
            warnings: Vec::new(),
        })
    }

    async fn list_models(&self, _: ListModelsMsg) -> Result<ModelList, Status> {
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
        Ok(ModelList {
            models: vec![model("big", Some(1.5)), model("old", None)],
        })
    }

    async fn list_providers(&self, _: ListProvidersMsg) -> Result<ProviderList, Status> {
        let config = r#"{"kind":"openai","api_key":"***","models":["a",{"name":"b"}]}"#;
        Ok(ProviderList {
            providers: vec![ProviderInfo {
                name: "main".into(),
                active: true,
                config: config.into(),
                enabled: true,
            }],
        })
    }

    async fn set_provider(&self, request: SetProviderMsg) -> Result<ProviderChange, Status> {
        self.told(format!("set {} {}", request.name, request.config))
            .await;
        Ok(ProviderChange::Done)
    }

    async fn delete_provider(&self, request: DeleteProviderMsg) -> Result<(), Status> {
        self.told(format!("delete {}", request.name)).await;
        Ok(())
    }

    async fn set_active_model(&self, request: SetActiveModelMsg) -> Result<(), Status> {
        self.told(format!("use {}", request.model)).await;
        Ok(())
    }

    async fn set_enabled(&self, request: SetEnabledMsg) -> Result<(), Status> {
        let SetEnabledMsg {
            kind,
            name,
            enabled,
        } = request;
        self.told(format!("switch {kind} {name} {enabled}")).await;
        Ok(())
    }

    async fn get_stats(&self, request: GetStats) -> Result<DaemonStats, Status> {
        let row = |by: &str| Spending {
            by: by.into(),
            agent: "crab".into(),
            day: format!("of {}", request.days),
            calls: 2,
            prompt_tokens: 30,
            completion_tokens: 4,
            money: 0.5,
            tokens_per_day: Some(100),
            ..Spending::default()
        };
        Ok(DaemonStats {
            tokens_today: 34,
            money_today: 0.5,
            money_per_day: Some(2.5),
            budgets_open_at: "2026-11-22T00:00:00+01:00".into(),
            spending: vec![row("day"), row("agent")],
            version: "9.9.9".into(),
            uptime_secs: 61,
            ..DaemonStats::default()
        })
    }
}

fn archive() -> ArchiveInfo {
    ArchiveInfo {
        index: 1,
        title: "Moving".into(),
        archived_at: "2026-11-20T10:00:00Z".into(),
        message_count: 3,
        summary: "We moved.\n".into(),
    }
}

/// A daemon that does what the test says.
pub(crate) struct Fake {
    folder: tempfile::TempDir,
    pub(crate) script: Script,
    pub(crate) events: mpsc::Sender<StreamEvent>,
    pub(crate) told: Told,
    server: JoinSet<()>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (events, receiver) = mpsc::channel(64);
        let (teller, told) = mpsc::channel(64);
        let script = Script {
            events: Arc::new(Mutex::new(Some(receiver))),
            told: teller,
            report: Arc::default(),
            runs: Arc::new(AtomicBool::new(true)),
            replies: Arc::default(),
            asks: Arc::default(),
            history: Arc::default(),
            skills: Arc::default(),
            welcome: Arc::new(Mutex::new(Some(WelcomeMsg::default()))),
        };
        let listener = crabtalk_transport::listen(&folder.path().join("daemon.sock"))
            .await
            .unwrap();
        let mut server = JoinSet::new();
        let session = script.clone();
        server.spawn(serve(
            listener,
            Crowd::default(),
            move |_| Ok::<_, Status>(session.clone()),
            CancellationToken::new(),
        ));
        Self {
            folder,
            script,
            events,
            told,
            server,
        }
    }

    pub(crate) async fn send(&self, event: stream_event::Event) {
        self.events.send(event.into()).await.unwrap();
    }

    /// The daemon dies.
    pub(crate) async fn stop(&mut self) {
        self.server.shutdown().await;
    }

    /// The next thing that the server is told.
    pub(crate) async fn next_told(&mut self) -> String {
        self.told.recv().await.unwrap()
    }

    /// A command line at this daemon, with its output.
    pub(crate) fn at(&self, words: &str) -> At {
        let words = std::iter::once("crabtalk").chain(words.split_whitespace());
        let mut cli = Cli::try_parse_from(words).unwrap();
        // These tests lie in a repository.
        cli.global.project.get_or_insert_default();
        let (out, err) = (Shared::default(), Shared::default());
        let (interrupt, interrupts) = mpsc::channel(4);
        let console = Console {
            screen: Screen::test(out.clone(), err.clone(), false),
            terminal: None,
            interrupts: Box::pin(futures_util::stream::unfold(interrupts, async |mut i| {
                // A person who is done with Ctrl-C does not end the program.
                match i.recv().await {
                    Some(()) => Some(((), i)),
                    None => std::future::pending().await,
                }
            })),
        };
        let home = Home::at(self.folder.path(), None).unwrap();
        let context = Context::new(home, cli.global, console).impatient();
        At {
            context,
            command: cli.command,
            out,
            err,
            interrupt,
        }
    }
}

/// A command line and its surroundings.
pub(crate) struct At {
    pub(crate) context: Context,
    pub(crate) command: Option<Command>,
    pub(crate) out: Shared,
    pub(crate) err: Shared,
    pub(crate) interrupt: mpsc::Sender<()>,
}

impl At {
    /// Seats a person at the terminal, who types what the sender sends.
    pub(crate) fn with_person(&mut self) -> (mpsc::Sender<&'static str>, Shared) {
        let (typist, typed) = mpsc::channel(16);
        let shown = Shared::default();
        self.context.console.terminal = Some(Box::new(Person {
            typed,
            shown: shown.clone(),
        }));
        (typist, shown)
    }

    pub(crate) async fn run(&mut self) -> Result<(), crate::error::Error> {
        let command = self.command.take().expect("run once");
        crate::commands::run(&mut self.context, command).await
    }
}

struct Person {
    typed: mpsc::Receiver<&'static str>,
    shown: Shared,
}

impl Terminal for Person {
    fn show(&mut self, text: &str) -> io::Result<()> {
        self.shown.write_all(text.as_bytes())
    }

    fn line(&mut self) -> Line<'_> {
        Box::pin(async { Ok(self.typed.recv().await.map(str::to_owned)) })
    }

    fn forget(&mut self) {
        while self.typed.try_recv().is_ok() {}
    }

    fn size(&self) -> Option<Size> {
        None
    }
}
