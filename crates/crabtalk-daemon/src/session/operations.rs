//! Every operation of the protocol, handed to the part of the session that does it.

use super::{Session, crons};
use crabtalk_proto::*;
use futures_core::Stream;
use std::future::Future;
use std::sync::Arc;

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

    async fn hello(&self, request: HelloMsg) -> Result<WelcomeMsg, Status> {
        self.welcome(request).await
    }

    async fn ping(&self, _: Ping) -> Result<(), Status> {
        Ok(())
    }

    async fn send(&self, request: SendMsg) -> Result<SendResponse, Status> {
        self.run_to_end(request).await
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

    async fn kill(&self, request: KillMsg) -> Result<(), Status> {
        self.kill_run(request).await
    }

    async fn steer_session(&self, request: SteerSessionMsg) -> Result<(), Status> {
        self.steer(request).await
    }

    async fn reply_to_ask(&self, request: ReplyToAsk) -> Result<(), Status> {
        self.reply(request).await
    }

    async fn compact(&self, request: CompactMsg) -> Result<CompactResponse, Status> {
        self.put_away(request).await
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

    async fn get_conversation_history(
        &self,
        request: GetConversationHistoryMsg,
    ) -> Result<ConversationHistory, Status> {
        self.history_of_file(request).await
    }

    async fn delete_conversation(&self, request: DeleteConversationMsg) -> Result<(), Status> {
        self.delete_file(request).await
    }

    async fn remove_conversation(&self, request: RemoveConversationMsg) -> Result<(), Status> {
        let key = self.key(&request.agent, &request.sender)?;
        self.remove(&key).await
    }

    async fn list_trash(&self, request: ListTrashMsg) -> Result<RemovedConversationList, Status> {
        self.removed(request).await
    }

    async fn restore_conversation(&self, request: RestoreConversationMsg) -> Result<(), Status> {
        self.restore(request).await
    }

    async fn search_conversations(
        &self,
        request: SearchConversationsMsg,
    ) -> Result<FoundMessageList, Status> {
        self.search_everywhere(request).await
    }

    async fn list_archives(&self, request: ListArchivesMsg) -> Result<ArchiveList, Status> {
        self.archives(request).await
    }

    async fn get_archive(&self, request: GetArchiveMsg) -> Result<ArchiveContent, Status> {
        self.archive(request).await
    }

    async fn search(&self, request: SearchMsg) -> Result<SearchResults, Status> {
        self.find(request).await
    }

    async fn list_memory(&self, request: ListMemoryMsg) -> Result<MemoryList, Status> {
        self.memory_page(request).await
    }

    async fn get_memory(&self, request: GetMemoryMsg) -> Result<MemoryEntry, Status> {
        self.memory_entry(request).await
    }

    async fn remember(&self, request: RememberMsg) -> Result<(), Status> {
        self.remember_entry(request).await
    }

    async fn forget(&self, request: ForgetMsg) -> Result<(), Status> {
        self.forget_entry(request).await
    }

    async fn import_memory(&self, request: ImportMemoryMsg) -> Result<MemoryImport, Status> {
        self.import_notes(request).await
    }

    async fn list_skills(&self, request: ListSkillsMsg) -> Result<SkillList, Status> {
        self.skills(request).await
    }

    async fn subscribe_event(
        &self,
        request: SubscribeEventMsg,
    ) -> Result<SubscriptionInfo, Status> {
        self.subscribe(request).await
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

    async fn set_conversation(&self, request: SetConversationMsg) -> Result<(), Status> {
        self.change_conversation(request).await
    }

    async fn create_cron(&self, request: CreateCronMsg) -> Result<CronInfo, Status> {
        self.make_cron(request).await
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

    async fn remove_approval(&self, request: RemoveApprovalMsg) -> Result<(), Status> {
        self.take_approval_back(request).await
    }

    async fn create_token(&self, request: CreateTokenMsg) -> Result<NewToken, Status> {
        self.make_token(request).await
    }

    async fn list_tokens(&self, _: ListTokensMsg) -> Result<TokenList, Status> {
        Ok(self.tokens().await)
    }

    async fn remove_token(&self, request: RemoveTokenMsg) -> Result<(), Status> {
        self.drop_token(request).await
    }

    async fn list_changes(&self, request: ListChangesMsg) -> Result<ChangeList, Status> {
        self.changes(request).await
    }

    async fn undo(&self, request: UndoMsg) -> Result<UndoReport, Status> {
        self.take_back(request).await
    }

    async fn list_audit(&self, request: ListAuditMsg) -> Result<AuditPage, Status> {
        self.audit_page(request).await
    }

    async fn get_stats(&self, request: GetStats) -> Result<DaemonStats, Status> {
        self.stats(request).await
    }

    async fn list_providers(&self, _: ListProvidersMsg) -> Result<ProviderList, Status> {
        Ok(self.providers())
    }

    async fn set_provider(&self, request: SetProviderMsg) -> Result<ProviderChange, Status> {
        self.put_provider(request).await
    }

    async fn delete_provider(&self, request: DeleteProviderMsg) -> Result<(), Status> {
        self.remove_provider(request.name).await
    }

    async fn set_config(&self, request: SetConfigMsg) -> Result<(), Status> {
        self.change_config(request).await
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

    async fn set_local_mcps(&self, request: SetLocalMcpsMsg) -> Result<(), Status> {
        self.put_mcps(request).await
    }

    async fn set_mcp(&self, request: SetMcpMsg) -> Result<(), Status> {
        self.put_mcp(request).await
    }

    async fn delete_mcp(&self, request: DeleteMcpMsg) -> Result<(), Status> {
        self.remove_mcp(request.name).await
    }

    async fn test_mcp(&self, request: TestMcpMsg) -> Result<McpTest, Status> {
        self.try_mcp(request).await
    }

    async fn login_mcp(&self, request: LoginMcpMsg) -> Result<McpLogin, Status> {
        self.begin_mcp_login(request).await
    }

    async fn finish_mcp_login(&self, request: FinishMcpLoginMsg) -> Result<(), Status> {
        self.end_mcp_login(request).await
    }

    async fn logout_mcp(&self, request: LogoutMcpMsg) -> Result<(), Status> {
        self.forget_mcp_login(request.name).await
    }

    async fn list_components(&self, _: ListComponentsMsg) -> Result<ComponentList, Status> {
        Ok(self.components().await)
    }

    async fn set_enabled(&self, request: SetEnabledMsg) -> Result<(), Status> {
        self.switch(request).await
    }
}
