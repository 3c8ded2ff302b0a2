//! A server with scripted answers, which reports its requests.

use super::answers;
use crabtalk_proto::{
    ActiveConversationList, ArchiveContent, ArchiveList, AskList, AttachMsg, ConversationList,
    CronInfo, CronList, CronRunList, DaemonStats, DeleteProviderMsg, ForgetMsg, GetArchiveMsg,
    GetHistoryMsg, GetMemoryMsg, GetStats, HelloMsg, HistoryEntry, HistoryPage, ImportMemoryMsg,
    ImportedMemory, KillMsg, ListActiveConversationsMsg, ListArchivesMsg, ListAsksMsg,
    ListConversationsMsg, ListCronRunsMsg, ListCronsMsg, ListMemoryMsg, ListModelsMsg,
    ListProvidersMsg, ListSkillsMsg, MemoryEntry, MemoryImport, MemoryList, ModelList, PendingAsk,
    ProviderList, ReloadConfigMsg, ReloadReport, RememberMsg, ReplyToAsk, Role, SearchMsg,
    SearchResults, Server, SetActiveModelMsg, SetCronMsg, SetEnabledMsg, SetProviderMsg, SkillInfo,
    SkillList, Status, StreamEvent, StreamMsg, WelcomeMsg,
};
use futures_core::Stream;
use futures_util::StreamExt;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// Answers of the server.
#[derive(Clone)]
pub(crate) struct Script {
    events: Arc<Mutex<Option<mpsc::Receiver<StreamEvent>>>>,
    told: mpsc::Sender<String>,
    pub(crate) report: Arc<Mutex<ReloadReport>>,
    /// Whether there is a run to attach to.
    pub(crate) runs: Arc<AtomicBool>,
    pub(crate) replies: Arc<Mutex<VecDeque<Result<(), Status>>>>,
    pub(crate) asks: Arc<Mutex<Vec<PendingAsk>>>,
    pub(crate) history: Arc<Mutex<Vec<HistoryEntry>>>,
    pub(crate) skills: Arc<Mutex<Vec<SkillInfo>>>,
    pub(crate) welcome: Arc<Mutex<WelcomeMsg>>,
}

impl Script {
    /// Relays these events, and reports requests.
    pub(super) fn new(events: mpsc::Receiver<StreamEvent>, told: mpsc::Sender<String>) -> Self {
        Self {
            events: Arc::new(Mutex::new(Some(events))),
            told,
            report: Arc::default(),
            runs: Arc::new(AtomicBool::new(true)),
            replies: Arc::default(),
            asks: Arc::default(),
            history: Arc::default(),
            skills: Arc::default(),
            welcome: Arc::default(),
        }
    }

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
        Ok(self.welcome.lock().unwrap().clone())
    }

    fn stream(
        self: Arc<Self>,
        request: StreamMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        let mode = request.mode.map(|mode| format!(" in mode {mode}"));
        let told = format!(
            "stream {:?} {}{}",
            request.agent,
            request.content,
            mode.unwrap_or_default()
        );
        self.told.try_send(told).unwrap();
        self.events()
    }

    fn attach(
        self: Arc<Self>,
        request: AttachMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        if !self.runs.load(Ordering::SeqCst) {
            let refused = Err(Status::not_found("there is no such conversation"));
            return futures_util::stream::iter([refused]).left_stream();
        }
        let told = format!("attach {:?} {:?}", request.agent, request.sender);
        self.told.try_send(told).unwrap();
        self.events().right_stream()
    }

    async fn reply_to_ask(&self, request: ReplyToAsk) -> Result<(), Status> {
        let id = request.ask_id.unwrap_or_default();
        self.told(format!("reply {id} {}", request.content)).await;
        self.replies.lock().unwrap().pop_front().unwrap_or(Ok(()))
    }

    async fn reload_config(&self, _: ReloadConfigMsg) -> Result<ReloadReport, Status> {
        Ok(self.report.lock().unwrap().clone())
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
        Ok(ConversationList {
            conversations: vec![answers::conversation()],
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
        // Pages of two entries, so that clients have to request several.
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
            archives: vec![answers::archive()],
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
            info: Some(answers::archive()),
            entries: page.entries,
            more: page.more,
        })
    }

    async fn search(&self, request: SearchMsg) -> Result<SearchResults, Status> {
        Ok(SearchResults {
            hits: vec![answers::hit(&request)],
            incomplete: request.query == "unfinished",
            ..SearchResults::default()
        })
    }

    async fn list_memory(&self, request: ListMemoryMsg) -> Result<MemoryList, Status> {
        // Pages of two entries, so that clients have to request several.
        let offset = request.offset as usize;
        let page = answers::memories().skip(offset).take(2).collect();
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
        Ok(ModelList {
            models: answers::models(),
        })
    }

    async fn list_providers(&self, _: ListProvidersMsg) -> Result<ProviderList, Status> {
        Ok(ProviderList {
            providers: vec![answers::provider()],
        })
    }

    async fn set_provider(&self, request: SetProviderMsg) -> Result<(), Status> {
        self.told(format!("set {} {}", request.name, request.config))
            .await;
        Ok(())
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

    async fn list_crons(&self, _: ListCronsMsg) -> Result<CronList, Status> {
        Ok(CronList {
            crons: vec![answers::cron()],
            ..CronList::default()
        })
    }

    async fn list_cron_runs(&self, _: ListCronRunsMsg) -> Result<CronRunList, Status> {
        Ok(CronRunList {
            runs: answers::cron_runs(),
        })
    }

    async fn set_cron(&self, request: SetCronMsg) -> Result<CronInfo, Status> {
        self.told(format!("set {} {:?}", request.id, request.args))
            .await;
        Ok(answers::cron())
    }

    async fn get_stats(&self, request: GetStats) -> Result<DaemonStats, Status> {
        Ok(answers::stats(request.days))
    }
}
