//! Implements the protocol's operations by forwarding them to the session's methods.

use super::Session;
use crabtalk_proto::*;
use futures_core::Stream;
use std::future::Future;
use std::sync::Arc;

/// Forwards operations with one answer: `operation(request) -> answer = method;`.
macro_rules! forward {
    ($($operation:ident($request:ty) -> $answer:ty = $method:ident;)*) => {$(
        async fn $operation(&self, request: $request) -> Result<$answer, Status> {
            self.$method(request).await.map_err(Status::from)
        }
    )*};
}

impl Server for Session {
    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn role(&self) -> Role {
        self.who.role()
    }

    fn admit(&self, request: &client_message::Msg) -> Result<(), Status> {
        self.check_reach(request).map_err(Status::from)
    }

    fn before(
        &self,
        request: &client_message::Msg,
    ) -> impl Future<Output = Result<u64, Status>> + Send + 'static {
        // Boxed, since few requests have an audit entry.
        let record = self.record_first(request).map(Box::pin);
        async move {
            match record {
                Some(record) => record.await.map_err(Status::from),
                None => Ok(0),
            }
        }
    }

    fn failed(&self, operation: &'static str, number: u64, status: &Status) {
        self.record_failure(operation, number, status);
    }

    fn refused(&self, operation: &'static str, status: &Status) {
        self.tell_refusal(operation, status);
    }

    fn ended(&self) -> impl Future<Output = Status> + Send + 'static {
        let ended = self.who.ended();
        async { ended.await.into() }
    }

    forward! {
        hello(HelloMsg) -> WelcomeMsg = welcome;
        send(SendMsg) -> SendResponse = run_to_end;
        expect_message(ExpectMessageMsg) -> () = expect;
        kill(KillMsg) -> () = kill_run;
        steer_session(SteerSessionMsg) -> () = steer;
        withdraw(WithdrawMsg) -> () = withdraw_queued;
        reply_to_ask(ReplyToAsk) -> () = reply;
        list_asks(ListAsksMsg) -> AskList = asks;
        list_approvals(ListApprovalsMsg) -> ApprovalList = approvals;
        compact(CompactMsg) -> CompactResponse = put_away;
        rewind(RewindMsg) -> RewindResponse = go_back;
        reopen(ReopenMsg) -> ReopenResponse = reopen_archive;
        list_active_conversations(ListActiveConversationsMsg) -> ActiveConversationList = active_conversations;
        list_conversations(ListConversationsMsg) -> ConversationList = conversations;
        get_history(GetHistoryMsg) -> HistoryPage = history_page;
        remove_conversation(RemoveConversationMsg) -> () = remove_pair;
        get_conversation_history(GetConversationHistoryMsg) -> ConversationHistory = history_of_file;
        delete_conversation(DeleteConversationMsg) -> () = delete_file;
        list_trash(ListTrashMsg) -> RemovedConversationList = removed;
        restore_conversation(RestoreConversationMsg) -> () = restore;
        search_conversations(SearchConversationsMsg) -> FoundMessageList = search_everywhere;
        check_conversations(CheckConversationsMsg) -> BrokenLogList = broken_logs;
        list_archives(ListArchivesMsg) -> ArchiveList = archives;
        get_archive(GetArchiveMsg) -> ArchiveContent = archive;
        search(SearchMsg) -> SearchResults = find;
        list_memory(ListMemoryMsg) -> MemoryList = memory_page;
        get_memory(GetMemoryMsg) -> MemoryEntry = memory_entry;
        remember(RememberMsg) -> () = remember_entry;
        forget(ForgetMsg) -> () = forget_entry;
        import_memory(ImportMemoryMsg) -> MemoryImport = import_notes;
        list_skills(ListSkillsMsg) -> SkillList = skills;
        list_agents(ListAgentsMsg) -> AgentList = agents;
        get_agent(GetAgentMsg) -> AgentInfo = agent;
        create_agent(CreateAgentMsg) -> AgentInfo = make_agent;
        update_agent(UpdateAgentMsg) -> AgentInfo = change_agent;
        delete_agent(DeleteAgentMsg) -> () = remove_agent;
        get_rights(GetRightsMsg) -> AgentRights = rights;
        subscribe_event(SubscribeEventMsg) -> SubscriptionInfo = subscribe;
        unsubscribe_event(UnsubscribeEventMsg) -> () = unsubscribe;
        list_subscriptions(ListSubscriptionsMsg) -> SubscriptionList = subscriptions;
        publish_event(PublishEventMsg) -> Pong = publish;
        set_conversation(SetConversationMsg) -> () = change_conversation;
        create_cron(CreateCronMsg) -> CronInfo = make_cron;
        delete_cron(DeleteCronMsg) -> () = drop_cron;
        list_crons(ListCronsMsg) -> CronList = crons;
        run_cron(RunCronMsg) -> CronRun = fire_cron;
        set_cron(SetCronMsg) -> CronInfo = change_cron;
        list_cron_runs(ListCronRunsMsg) -> CronRunList = cron_runs;
        test_cron(TestCronMsg) -> CronTimes = cron_times;
        remove_approval(RemoveApprovalMsg) -> () = take_approval_back;
        create_token(CreateTokenMsg) -> NewToken = make_token;
        list_tokens(ListTokensMsg) -> TokenList = tokens;
        remove_token(RemoveTokenMsg) -> () = drop_token;
        list_changes(ListChangesMsg) -> ChangeList = changes;
        undo(UndoMsg) -> UndoReport = take_back;
        list_audit(ListAuditMsg) -> AuditPage = audit_page;
        new_audit_chain(NewAuditChainMsg) -> () = begin_audit_chain;
        get_stats(GetStats) -> DaemonStats = stats;
        set_provider(SetProviderMsg) -> () = put_provider;
        delete_provider(DeleteProviderMsg) -> () = remove_provider;
        list_providers(ListProvidersMsg) -> ProviderList = providers;
        find_providers(FindProvidersMsg) -> FoundProviderList = found_providers;
        list_models(ListModelsMsg) -> ModelList = every_model;
        set_active_model(SetActiveModelMsg) -> () = choose_model;
        test_model(TestModelMsg) -> ModelTest = try_model;
        set_config(SetConfigMsg) -> () = change_config;
        set_local_mcps(SetLocalMcpsMsg) -> () = put_mcps;
        set_mcp(SetMcpMsg) -> () = put_mcp;
        delete_mcp(DeleteMcpMsg) -> () = remove_mcp;
        list_mcps(ListMcpsMsg) -> McpList = mcps;
        list_components(ListComponentsMsg) -> ComponentList = components;
        test_mcp(TestMcpMsg) -> McpTest = try_mcp;
        login_mcp(LoginMcpMsg) -> McpLogin = begin_mcp_login;
        finish_mcp_login(FinishMcpLoginMsg) -> () = end_mcp_login;
        logout_mcp(LogoutMcpMsg) -> () = forget_mcp_login;
        set_enabled(SetEnabledMsg) -> () = switch;
    }

    async fn ping(&self, _: Ping) -> Result<(), Status> {
        Ok(())
    }

    fn stream(
        self: Arc<Self>,
        request: StreamMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        self.run_as_stream(request)
    }

    fn attach(
        self: Arc<Self>,
        request: AttachMsg,
    ) -> impl Stream<Item = Result<StreamEvent, Status>> + Send + 'static {
        self.attached(request)
    }

    fn subscribe_events(
        self: Arc<Self>,
        request: SubscribeEvents,
    ) -> impl Stream<Item = Result<AgentEventMsg, Status>> + Send + 'static {
        self.watch(request)
    }

    async fn get_config(&self, _: GetConfig) -> Result<ConfigMsg, Status> {
        let config = self.node.config().effective_json();
        Ok(ConfigMsg {
            config: config.to_string(),
        })
    }

    async fn reload(&self, _: ReloadMsg) -> Result<(), Status> {
        let reloaded = self.node.reload().await;
        reloaded.map(drop).map_err(Status::bad_request)
    }

    async fn reload_config(&self, _: ReloadConfigMsg) -> Result<ReloadReport, Status> {
        Ok(match self.node.reload().await {
            Ok(report) => ReloadReport {
                warnings: report.warnings,
                errors: report.errors,
                kept: report.kept,
            },
            Err(error) => ReloadReport {
                errors: vec![error],
                kept: vec!["the whole configuration stays unchanged".into()],
                ..ReloadReport::default()
            },
        })
    }
}
