//! The one list of operations: request, response, and how both travel.

/// Hands the list to a macro. `one` operations answer once (`()` is a Pong),
/// `many` operations stream. A row is `method: Variant(Request) -> Response, Role`,
/// where `Variant` belongs to `client_message::Msg` and the role is the least one
/// that may.
macro_rules! operations {
    ($generate:ident) => {
        $generate! {
            one {
                /// Agrees on the protocol's version; optional (WIRE-5).
                hello: Hello(HelloMsg) -> WelcomeMsg, Stranger;
                /// Checks that the daemon answers.
                ping: Ping(Ping) -> (), Stranger;
                /// Runs an agent and answers with the whole text.
                send: Send(SendMsg) -> SendResponse, Talk;
                /// Announces a message, so that the daemon connects to the provider early (MODEL-8).
                expect_message: ExpectMessage(ExpectMessageMsg) -> (), Talk;
                /// Cancels the current run (CONV-5).
                kill: Kill(KillMsg) -> (), Talk;
                /// Adds a user message to the current run (RUN-8).
                steer_session: SteerSession(SteerSessionMsg) -> (), Talk;
                /// Removes a queued message before its run begins (CONV-3).
                withdraw: Withdraw(WithdrawMsg) -> (), Talk;
                /// Compacts a conversation and answers with the summary (RUN-5).
                compact: Compact(CompactMsg) -> CompactResponse, Talk;
                /// Ends the working history before an earlier message (CONV-13).
                rewind: Rewind(RewindMsg) -> RewindResponse, Talk;
                /// Makes an archive the working history again (CONV-14).
                reopen: Reopen(ReopenMsg) -> ReopenResponse, Talk;
                /// Answers a pending ask (RUN-7).
                reply_to_ask: ReplyToAsk(ReplyToAsk) -> (), Talk;
                /// Lists pending asks.
                list_asks: ListAsks(ListAsksMsg) -> AskList, Talk;
                /// Lists permanent approvals (GATE-4).
                list_approvals: ListApprovals(ListApprovalsMsg) -> ApprovalList, Operate;
                /// Removes a permanent approval.
                remove_approval: RemoveApproval(RemoveApprovalMsg) -> (), Operate;
                /// Reads an agent's effective permissions (GATE-2).
                get_rights: GetRights(GetRightsMsg) -> AgentRights, Talk;
                /// Lists conversations in memory.
                list_active_conversations:
                    ListActiveConversations(ListActiveConversationsMsg) -> ActiveConversationList, Talk;
                /// Lists conversations on disk.
                list_conversations: ListConversations(ListConversationsMsg) -> ConversationList, Talk;
                /// Reads a page of a conversation's history.
                get_history: GetHistory(GetHistoryMsg) -> HistoryPage, Talk;
                /// Reads a history by file name.
                get_conversation_history:
                    GetConversationHistory(GetConversationHistoryMsg) -> ConversationHistory, Operate;
                /// Removes a conversation by file name.
                delete_conversation: DeleteConversation(DeleteConversationMsg) -> (), Operate;
                /// Removes a conversation.
                remove_conversation: RemoveConversation(RemoveConversationMsg) -> (), Operate;
                /// Lists conversations in the trash.
                list_trash: ListTrash(ListTrashMsg) -> RemovedConversationList, Operate;
                /// Restores a conversation from the trash.
                restore_conversation: RestoreConversation(RestoreConversationMsg) -> (), Operate;
                /// Searches all conversations.
                search_conversations:
                    SearchConversations(SearchConversationsMsg) -> FoundMessageList, Talk;
                /// Finds logs that cannot be read.
                check_conversations:
                    CheckConversations(CheckConversationsMsg) -> BrokenLogList, Operate;
                /// Sets a conversation's title or folder.
                set_conversation: SetConversation(SetConversationMsg) -> (), Talk;
                /// Lists a conversation's archives (RUN-6).
                list_archives: ListArchives(ListArchivesMsg) -> ArchiveList, Talk;
                /// Reads a page of an archive.
                get_archive: GetArchive(GetArchiveMsg) -> ArchiveContent, Talk;
                /// Searches memory and archives (MEM-2).
                search: Search(SearchMsg) -> SearchResults, Talk;
                /// Lists memory entries that a sender sees (MEM-2).
                list_memory: ListMemory(ListMemoryMsg) -> MemoryList, Operate;
                /// Reads a memory entry.
                get_memory: GetMemory(GetMemoryMsg) -> MemoryEntry, Operate;
                /// Writes a memory entry.
                remember: Remember(RememberMsg) -> (), Operate;
                /// Deletes a memory entry.
                forget: Forget(ForgetMsg) -> (), Operate;
                /// Imports Markdown notes into memory.
                import_memory: ImportMemory(ImportMemoryMsg) -> MemoryImport, Admin;
                /// Lists agents.
                list_agents: ListAgents(ListAgentsMsg) -> AgentList, Talk;
                /// Reads an agent.
                get_agent: GetAgent(GetAgentMsg) -> AgentInfo, Operate;
                /// Creates an agent.
                create_agent: CreateAgent(CreateAgentMsg) -> AgentInfo, Admin;
                /// Replaces an agent.
                update_agent: UpdateAgent(UpdateAgentMsg) -> AgentInfo, Admin;
                /// Deletes an agent.
                delete_agent: DeleteAgent(DeleteAgentMsg) -> (), Admin;
                /// Lists providers.
                list_providers: ListProviders(ListProvidersMsg) -> ProviderList, Operate;
                /// Adds or replaces a provider.
                set_provider: SetProvider(SetProviderMsg) -> (), Admin;
                /// Deletes a provider.
                delete_provider: DeleteProvider(DeleteProviderMsg) -> (), Admin;
                /// Sets the default model.
                set_active_model: SetActiveModel(SetActiveModelMsg) -> (), Admin;
                /// Tests a model outside every conversation.
                test_model: TestModel(TestModelMsg) -> ModelTest, Admin;
                /// Looks for keys and local model servers (MODEL-6).
                find_providers: FindProviders(FindProvidersMsg) -> FoundProviderList, Admin;
                /// Lists models.
                list_models: ListModels(ListModelsMsg) -> ModelList, Talk;
                /// Lists MCP servers.
                list_mcps: ListMcps(ListMcpsMsg) -> McpList, Operate;
                /// Replaces the configured MCP servers.
                set_local_mcps: SetLocalMcps(SetLocalMcpsMsg) -> (), Admin;
                /// Adds or replaces one MCP server.
                set_mcp: SetMcp(SetMcpMsg) -> (), Admin;
                /// Removes one MCP server.
                delete_mcp: DeleteMcp(DeleteMcpMsg) -> (), Admin;
                /// Tests the connection to a server.
                test_mcp: TestMcp(TestMcpMsg) -> McpTest, Admin;
                /// Begins a login to a server.
                login_mcp: LoginMcp(LoginMcpMsg) -> McpLogin, Admin;
                /// Completes a login with the browser's final address.
                finish_mcp_login: FinishMcpLogin(FinishMcpLoginMsg) -> (), Admin;
                /// Deletes a stored login.
                logout_mcp: LogoutMcp(LogoutMcpMsg) -> (), Admin;
                /// Lists components and MCP servers (COMP-1).
                list_components: ListComponents(ListComponentsMsg) -> ComponentList, Operate;
                /// Lists skills.
                list_skills: ListSkills(ListSkillsMsg) -> SkillList, Talk;
                /// Enables or disables a resource.
                set_enabled: SetEnabled(SetEnabledMsg) -> (), Admin;
                /// Creates a cron entry (CRON-1).
                create_cron: CreateCron(CreateCronMsg) -> CronInfo, Operate;
                /// Deletes a cron entry.
                delete_cron: DeleteCron(DeleteCronMsg) -> (), Operate;
                /// Lists cron entries.
                list_crons: ListCrons(ListCronsMsg) -> CronList, Operate;
                /// Runs a cron entry now.
                run_cron: RunCron(RunCronMsg) -> CronRun, Operate;
                /// Edits, pauses or resumes a cron entry.
                set_cron: SetCron(SetCronMsg) -> CronInfo, Operate;
                /// Lists the outcomes of due times.
                list_cron_runs: ListCronRuns(ListCronRunsMsg) -> CronRunList, Operate;
                /// Lists the next due times of an expression.
                test_cron: TestCron(TestCronMsg) -> CronTimes, Operate;
                /// Subscribes an agent to an event source (BUS-1).
                subscribe_event: SubscribeEvent(SubscribeEventMsg) -> SubscriptionInfo, Operate;
                /// Ends a subscription.
                unsubscribe_event: UnsubscribeEvent(UnsubscribeEventMsg) -> (), Operate;
                /// Lists subscriptions.
                list_subscriptions: ListSubscriptions(ListSubscriptionsMsg) -> SubscriptionList, Operate;
                /// Publishes an event.
                publish_event: PublishEvent(PublishEventMsg) -> Pong, Operate;
                /// Reads the effective configuration, secrets masked.
                get_config: GetConfig(GetConfig) -> ConfigMsg, Admin;
                /// Changes the configuration file, or replaces it (OPS-4).
                set_config: SetConfig(SetConfigMsg) -> (), Admin;
                /// Reads the configuration files again.
                reload: Reload(ReloadMsg) -> (), Admin;
                /// Reads the configuration files again and returns warnings and errors (OPS-4).
                reload_config: ReloadConfig(ReloadConfigMsg) -> ReloadReport, Admin;
                /// Reads the daemon's figures.
                get_stats: GetStats(GetStats) -> DaemonStats, Operate;
                /// Creates a token; only this answer contains it (REMOTE-1).
                create_token: CreateToken(CreateTokenMsg) -> NewToken, Admin;
                /// Lists tokens and listening addresses.
                list_tokens: ListTokens(ListTokensMsg) -> TokenList, Admin;
                /// Removes a token and closes its connections.
                remove_token: RemoveToken(RemoveTokenMsg) -> (), Admin;
                /// Reads the audit and verifies it (REMOTE-2).
                list_audit: ListAudit(ListAuditMsg) -> AuditPage, Admin;
                /// Begins a new chain of the audit after a broken one (REMOTE-2).
                new_audit_chain: NewAuditChain(NewAuditChainMsg) -> (), Admin;
                /// Lists files that runs changed.
                list_changes: ListChanges(ListChangesMsg) -> ChangeList, Operate;
                /// Restores files that a run changed.
                undo: Undo(UndoMsg) -> UndoReport, Admin;
                /// A message of an extension.
                extension: Extension(Bytes) -> Bytes, Admin;
            }
            many {
                /// Runs an agent and streams its events, up to End.
                stream: Stream(StreamMsg) -> StreamEvent, Talk;
                /// Streams the current run, up to End (WIRE-7).
                attach: Attach(AttachMsg) -> StreamEvent, Talk;
                /// Streams the events of all runs (WIRE-8).
                subscribe_events: SubscribeEvents(SubscribeEvents) -> AgentEventMsg, Talk;
            }
        }
    };
}

pub(crate) use operations;
