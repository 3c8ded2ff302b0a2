//! Every operation of the protocol, handed to the part of the session that does it.

use super::{Session, crons};
use crabtalk_proto::*;
use futures_core::Stream;
use std::future::Future;
use std::sync::Arc;

/// Operations that are answered once, each handed on to a method of the session that
/// takes its request and gives its answer: `operation(request) -> answer = method;`.
macro_rules! handed_on {
    ($($operation:ident($request:ty) -> $answer:ty = $method:ident;)*) => {$(
        async fn $operation(&self, request: $request) -> Result<$answer, Status> {
            self.$method(request).await
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
        self.check_reach(request)
    }

    fn before(
        &self,
        request: &client_message::Msg,
    ) -> impl Future<Output = Result<u64, Status>> + Send + 'static {
        // Few requests have an entry, and those that have none pay nothing for it.
        let record = self.record_first(request).map(Box::pin);
        async move {
            match record {
                Some(record) => record.await,
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
        self.who.ended()
    }

    handed_on! {
        hello(HelloMsg) -> WelcomeMsg = welcome;
        send(SendMsg) -> SendResponse = run_to_end;
        expect_message(ExpectMessageMsg) -> () = expect;
        kill(KillMsg) -> () = kill_run;
        steer_session(SteerSessionMsg) -> () = steer;
        reply_to_ask(ReplyToAsk) -> () = reply;
        compact(CompactMsg) -> CompactResponse = put_away;
        get_conversation_history(GetConversationHistoryMsg) -> ConversationHistory = history_of_file;
        delete_conversation(DeleteConversationMsg) -> () = delete_file;
        list_trash(ListTrashMsg) -> RemovedConversationList = removed;
        restore_conversation(RestoreConversationMsg) -> () = restore;
        search_conversations(SearchConversationsMsg) -> FoundMessageList = search_everywhere;
        list_archives(ListArchivesMsg) -> ArchiveList = archives;
        get_archive(GetArchiveMsg) -> ArchiveContent = archive;
        search(SearchMsg) -> SearchResults = find;
        list_memory(ListMemoryMsg) -> MemoryList = memory_page;
        get_memory(GetMemoryMsg) -> MemoryEntry = memory_entry;
        remember(RememberMsg) -> () = remember_entry;
        forget(ForgetMsg) -> () = forget_entry;
        import_memory(ImportMemoryMsg) -> MemoryImport = import_notes;
        list_skills(ListSkillsMsg) -> SkillList = skills;
        subscribe_event(SubscribeEventMsg) -> SubscriptionInfo = subscribe;
        set_conversation(SetConversationMsg) -> () = change_conversation;
        create_cron(CreateCronMsg) -> CronInfo = make_cron;
        remove_approval(RemoveApprovalMsg) -> () = take_approval_back;
        create_token(CreateTokenMsg) -> NewToken = make_token;
        remove_token(RemoveTokenMsg) -> () = drop_token;
        list_changes(ListChangesMsg) -> ChangeList = changes;
        undo(UndoMsg) -> UndoReport = take_back;
        list_audit(ListAuditMsg) -> AuditPage = audit_page;
        get_stats(GetStats) -> DaemonStats = stats;
        set_provider(SetProviderMsg) -> ProviderChange = put_provider;
        set_config(SetConfigMsg) -> () = change_config;
        set_local_mcps(SetLocalMcpsMsg) -> () = put_mcps;
        set_mcp(SetMcpMsg) -> () = put_mcp;
        test_mcp(TestMcpMsg) -> McpTest = try_mcp;
        login_mcp(LoginMcpMsg) -> McpLogin = begin_mcp_login;
        finish_mcp_login(FinishMcpLoginMsg) -> () = end_mcp_login;
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

    async fn list_asks(&self, request: ListAsksMsg) -> Result<AskList, Status> {
        self.mark_modern();
        Ok(self.asks(&request))
    }

    async fn list_active_conversations(
        &self,
        request: ListActiveConversationsMsg,
    ) -> Result<ActiveConversationList, Status> {
        self.active_conversations(&request).await
    }

    async fn list_conversations(
        &self,
        request: ListConversationsMsg,
    ) -> Result<ConversationList, Status> {
        self.conversations(&request).await
    }

    async fn get_history(&self, request: GetHistoryMsg) -> Result<HistoryPage, Status> {
        self.mark_modern();
        self.history_page(request).await
    }

    async fn remove_conversation(&self, request: RemoveConversationMsg) -> Result<(), Status> {
        let key = self.key(&request.agent, &request.sender)?;
        self.remove(&key).await
    }

    async fn unsubscribe_event(&self, request: UnsubscribeEventMsg) -> Result<(), Status> {
        self.check_subscription(request.id).await?;
        self.node.bus().unsubscribe(request.id).await
    }

    async fn list_subscriptions(
        &self,
        _: ListSubscriptionsMsg,
    ) -> Result<SubscriptionList, Status> {
        self.subscriptions().await
    }

    async fn publish_event(&self, request: PublishEventMsg) -> Result<(), Status> {
        let bus = self.node.bus();
        bus.publish(request.source, request.payload).await
    }

    async fn delete_cron(&self, request: DeleteCronMsg) -> Result<(), Status> {
        self.check_cron(request.id).await?;
        self.node.cron().remove(request.id).await
    }

    async fn list_crons(&self, _: ListCronsMsg) -> Result<CronList, Status> {
        self.crons().await
    }

    async fn run_cron(&self, request: RunCronMsg) -> Result<CronRun, Status> {
        self.mark_modern();
        self.check_cron(request.id).await?;
        self.fire_cron(request.id).await
    }

    async fn set_cron(&self, request: SetCronMsg) -> Result<CronInfo, Status> {
        self.mark_modern();
        self.check_cron(request.id).await?;
        self.change_cron(request).await
    }

    async fn list_cron_runs(&self, request: ListCronRunsMsg) -> Result<CronRunList, Status> {
        self.mark_modern();
        self.cron_runs(request).await
    }

    async fn test_cron(&self, request: TestCronMsg) -> Result<CronTimes, Status> {
        self.mark_modern();
        crons::cron_times(&request)
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
        self.mark_modern();
        Ok(match self.node.reload().await {
            Ok(report) => ReloadReport {
                warnings: report.warnings,
                errors: report.errors,
                kept: report.kept,
            },
            Err(error) => ReloadReport {
                errors: vec![error],
                kept: vec!["the whole configuration is as it was before".into()],
                ..ReloadReport::default()
            },
        })
    }

    async fn list_agents(&self, _: ListAgentsMsg) -> Result<AgentList, Status> {
        self.agents().await
    }

    async fn get_agent(&self, request: GetAgentMsg) -> Result<AgentInfo, Status> {
        self.agent(&request.name).await
    }

    async fn create_agent(&self, request: CreateAgentMsg) -> Result<AgentInfo, Status> {
        let CreateAgentMsg {
            name,
            config,
            prompt,
        } = request;
        self.write_agent(true, name, config, prompt).await
    }

    async fn update_agent(&self, request: UpdateAgentMsg) -> Result<AgentInfo, Status> {
        let UpdateAgentMsg {
            name,
            config,
            prompt,
        } = request;
        self.write_agent(false, name, config, prompt).await
    }

    async fn delete_agent(&self, request: DeleteAgentMsg) -> Result<(), Status> {
        self.remove_agent(request.name).await
    }

    async fn get_rights(&self, request: GetRightsMsg) -> Result<AgentRights, Status> {
        self.rights(&request.agent)
    }

    async fn list_approvals(&self, request: ListApprovalsMsg) -> Result<ApprovalList, Status> {
        Ok(self.approvals(&request))
    }

    async fn list_tokens(&self, _: ListTokensMsg) -> Result<TokenList, Status> {
        Ok(self.tokens().await)
    }

    async fn list_providers(&self, _: ListProvidersMsg) -> Result<ProviderList, Status> {
        Ok(self.providers())
    }

    async fn delete_provider(&self, request: DeleteProviderMsg) -> Result<(), Status> {
        self.remove_provider(request.name).await
    }

    async fn set_active_model(&self, request: SetActiveModelMsg) -> Result<(), Status> {
        self.choose_model(request.model).await
    }

    async fn list_models(&self, _: ListModelsMsg) -> Result<ModelList, Status> {
        Ok(self.model_list())
    }

    async fn test_model(&self, request: TestModelMsg) -> Result<ModelTest, Status> {
        Ok(self.try_model(request.model).await)
    }

    async fn find_providers(&self, _: FindProvidersMsg) -> Result<FoundProviderList, Status> {
        Ok(self.found_providers().await)
    }

    async fn list_mcps(&self, _: ListMcpsMsg) -> Result<McpList, Status> {
        Ok(self.mcps().await)
    }

    async fn delete_mcp(&self, request: DeleteMcpMsg) -> Result<(), Status> {
        self.remove_mcp(request.name).await
    }

    async fn logout_mcp(&self, request: LogoutMcpMsg) -> Result<(), Status> {
        self.forget_mcp_login(request.name).await
    }

    async fn list_components(&self, _: ListComponentsMsg) -> Result<ComponentList, Status> {
        Ok(self.components().await)
    }
}
