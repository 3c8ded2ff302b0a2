//! The one list of operations: request, response, and how both travel.

/// Hands the list to a macro. `one` operations answer once (`()` is a Pong),
/// `many` operations stream. A row is `method: Variant(Request) -> Response`,
/// where `Variant` belongs to `client_message::Msg`.
macro_rules! operations {
    ($generate:ident) => {
        $generate! {
            one {
                /// Agrees on the protocol's version; optional (WIRE-5).
                hello: Hello(HelloMsg) -> WelcomeMsg;
                /// Asks for a sign of life.
                ping: Ping(Ping) -> ();
                /// Runs an agent and answers with the whole text.
                send: Send(SendMsg) -> SendResponse;
                /// Cancels the run in flight (CONV-5).
                kill: Kill(KillMsg) -> ();
                /// Puts a user message into the run in flight (RUN-8).
                steer_session: SteerSession(SteerSessionMsg) -> ();
                /// Compacts a conversation and answers with the summary (RUN-5).
                compact: Compact(CompactMsg) -> CompactResponse;
                /// Answers a pending ask (RUN-7).
                reply_to_ask: ReplyToAsk(ReplyToAsk) -> ();
                /// Lists pending asks.
                list_asks: ListAsks(ListAsksMsg) -> AskList;
                /// Lists what an owner allowed for good (GATE-4).
                list_approvals: ListApprovals(ListApprovalsMsg) -> ApprovalList;
                /// Takes back what was allowed for good.
                remove_approval: RemoveApproval(RemoveApprovalMsg) -> ();
                /// Reads what an agent may do, in effect (GATE-2).
                get_rights: GetRights(GetRightsMsg) -> AgentRights;
                /// Lists conversations in memory.
                list_active_conversations:
                    ListActiveConversations(ListActiveConversationsMsg) -> ActiveConversationList;
                /// Lists conversations on disk.
                list_conversations: ListConversations(ListConversationsMsg) -> ConversationList;
                /// Reads a page of a conversation's history.
                get_history: GetHistory(GetHistoryMsg) -> HistoryPage;
                /// Reads a history by file name.
                get_conversation_history:
                    GetConversationHistory(GetConversationHistoryMsg) -> ConversationHistory;
                /// Removes a conversation by file name.
                delete_conversation: DeleteConversation(DeleteConversationMsg) -> ();
                /// Removes a conversation.
                remove_conversation: RemoveConversation(RemoveConversationMsg) -> ();
                /// Sets a conversation's title or folder.
                set_conversation: SetConversation(SetConversationMsg) -> ();
                /// Lists a conversation's archives (RUN-6).
                list_archives: ListArchives(ListArchivesMsg) -> ArchiveList;
                /// Reads a page of an archive.
                get_archive: GetArchive(GetArchiveMsg) -> ArchiveContent;
                /// Searches memory and archives (MEM-2).
                search: Search(SearchMsg) -> SearchResults;
                /// Lists memory entries that a sender sees (MEM-2).
                list_memory: ListMemory(ListMemoryMsg) -> MemoryList;
                /// Reads a memory entry.
                get_memory: GetMemory(GetMemoryMsg) -> MemoryEntry;
                /// Writes a memory entry.
                remember: Remember(RememberMsg) -> ();
                /// Deletes a memory entry.
                forget: Forget(ForgetMsg) -> ();
                /// Takes Markdown notes into memory.
                import_memory: ImportMemory(ImportMemoryMsg) -> MemoryImport;
                /// Lists agents.
                list_agents: ListAgents(ListAgentsMsg) -> AgentList;
                /// Reads an agent.
                get_agent: GetAgent(GetAgentMsg) -> AgentInfo;
                /// Creates an agent.
                create_agent: CreateAgent(CreateAgentMsg) -> AgentInfo;
                /// Replaces an agent.
                update_agent: UpdateAgent(UpdateAgentMsg) -> AgentInfo;
                /// Deletes an agent.
                delete_agent: DeleteAgent(DeleteAgentMsg) -> ();
                /// Lists providers.
                list_providers: ListProviders(ListProvidersMsg) -> ProviderList;
                /// Adds or replaces a provider.
                set_provider: SetProvider(SetProviderMsg) -> ProviderChange;
                /// Deletes a provider.
                delete_provider: DeleteProvider(DeleteProviderMsg) -> ();
                /// Chooses the model that an empty name means.
                set_active_model: SetActiveModel(SetActiveModelMsg) -> ();
                /// Lists models.
                list_models: ListModels(ListModelsMsg) -> ModelList;
                /// Lists MCP servers.
                list_mcps: ListMcps(ListMcpsMsg) -> McpList;
                /// Replaces the configured MCP servers.
                set_local_mcps: SetLocalMcps(SetLocalMcpsMsg) -> ();
                /// Lists skills.
                list_skills: ListSkills(ListSkillsMsg) -> SkillList;
                /// Switches a resource on or off.
                set_enabled: SetEnabled(SetEnabledMsg) -> ();
                /// Creates a cron entry (CRON-1).
                create_cron: CreateCron(CreateCronMsg) -> CronInfo;
                /// Deletes a cron entry.
                delete_cron: DeleteCron(DeleteCronMsg) -> ();
                /// Lists cron entries.
                list_crons: ListCrons(ListCronsMsg) -> CronList;
                /// Runs a cron entry now.
                run_cron: RunCron(RunCronMsg) -> CronRun;
                /// Pauses a cron entry, or lets it go on.
                set_cron: SetCron(SetCronMsg) -> CronInfo;
                /// Reads what became of due times.
                list_cron_runs: ListCronRuns(ListCronRunsMsg) -> CronRunList;
                /// Says when an expression would be due.
                test_cron: TestCron(TestCronMsg) -> CronTimes;
                /// Lets an event source start an agent (BUS-1).
                subscribe_event: SubscribeEvent(SubscribeEventMsg) -> SubscriptionInfo;
                /// Ends a subscription.
                unsubscribe_event: UnsubscribeEvent(UnsubscribeEventMsg) -> ();
                /// Lists subscriptions.
                list_subscriptions: ListSubscriptions(ListSubscriptionsMsg) -> SubscriptionList;
                /// Publishes an event.
                publish_event: PublishEvent(PublishEventMsg) -> ();
                /// Reads the effective configuration, secrets masked.
                get_config: GetConfig(GetConfig) -> ConfigMsg;
                /// Reads the configuration files again.
                reload: Reload(ReloadMsg) -> ();
                /// Reads them again, and tells what there is to say (OPS-4).
                reload_config: ReloadConfig(ReloadConfigMsg) -> ReloadReport;
                /// Reads the daemon's figures.
                get_stats: GetStats(GetStats) -> DaemonStats;
                /// Whatever an extension understands.
                extension: Extension(Bytes) -> Bytes;
            }
            many {
                /// Runs an agent and streams what happens, up to End.
                stream: Stream(StreamMsg) -> StreamEvent;
                /// Streams the run in flight, up to End (WIRE-7).
                attach: Attach(AttachMsg) -> StreamEvent;
                /// Streams what happens in every run (WIRE-8).
                subscribe_events: SubscribeEvents(SubscribeEvents) -> AgentEventMsg;
            }
        }
    };
}

pub(crate) use operations;
