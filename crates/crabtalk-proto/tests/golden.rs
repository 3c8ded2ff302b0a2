//! Every message of the 0.0.20 generation, byte by byte (WIRE-5).
//!
//! `golden.txt` holds one of each, with all its old fields set, and one of each
//! member of the three envelopes; it was written from the table of numbers and
//! types, not by this crate. A line there never changes.

use crabtalk_proto as proto;
use prost::Message;
use std::fmt::Debug;

const GOLDEN: &str = include_str!("golden.txt");

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16);
    pairs.map(|pair| byte(pair).expect("hex digits")).collect()
}

/// What is read is written again as it was: nothing is unknown, nothing has
/// another type or number.
fn check<M: Message + Default + Debug>(line: &str, bytes: &[u8]) -> String {
    let message = M::decode(bytes).unwrap_or_else(|error| panic!("{line}: {error}"));
    let again = message.encode_to_vec();
    assert_eq!(again, bytes, "{line}\nwas read as {message:?}");
    format!("{message:?}")
}

macro_rules! by_name {
    ($name:expr, $line:expr, $bytes:expr; $($message:ident)*) => {
        match $name {
            $(stringify!($message) => check::<proto::$message>($line, $bytes),)*
            other => panic!("{other} is no message of the schema"),
        }
    };
}

fn read(name: &str, line: &str, bytes: &[u8]) -> String {
    by_name!(name, line, bytes;
        ActiveConversationInfo
        ActiveConversationList
        AgentEventMsg
        AgentInfo
        AgentList
        AskOption
        AskQuestion
        AskUserEvent
        ClientMessage
        CompactMsg
        CompactResponse
        ConfigMsg
        ConversationHistory
        ConversationInfo
        ConversationList
        ConversationMessage
        CreateAgentMsg
        CreateCronMsg
        CronInfo
        CronList
        DaemonStats
        DeleteAgentMsg
        DeleteConversationMsg
        DeleteCronMsg
        DeleteProviderMsg
        ErrorMsg
        GetAgentMsg
        GetConfig
        GetConversationHistoryMsg
        GetStats
        KillMsg
        ListActiveConversationsMsg
        ListAgentsMsg
        ListConversationsMsg
        ListCronsMsg
        ListMcpsMsg
        ListModelsMsg
        ListProvidersMsg
        ListSkillsMsg
        ListSubscriptionsMsg
        McpInfo
        McpList
        ModelInfo
        ModelList
        Ping
        Pong
        ProviderInfo
        ProviderList
        PublishEventMsg
        ReloadMsg
        ReplyToAsk
        SendMsg
        SendResponse
        ServerMessage
        SetActiveModelMsg
        SetEnabledMsg
        SetLocalMcpsMsg
        SetProviderMsg
        SkillInfo
        SkillList
        SteerSessionMsg
        StreamChunk
        StreamEnd
        StreamEvent
        StreamMsg
        StreamStart
        StreamThinking
        SubscribeEventMsg
        SubscribeEvents
        SubscriptionInfo
        SubscriptionList
        TextEndEvent
        TextStartEvent
        ThinkingEndEvent
        ThinkingStartEvent
        TokenUsage
        ToolCallInfo
        ToolResultEvent
        ToolStartEvent
        ToolsCompleteEvent
        UnsubscribeEventMsg
        UpdateAgentMsg
        UserSteeredEvent
    )
}

#[test]
fn every_old_message_is_read_and_written_as_it_was() {
    let mut seen = Vec::new();
    for line in GOLDEN.lines() {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().expect("name, member, bytes");
        let (name, member, hex) = (word(), word(), word());
        let shown = read(name, line, &bytes(hex));
        seen.push(name);
        if member == "-" {
            continue;
        }
        // The member that was meant, by its name in the schema.
        let (member, shown) = (member.replace('_', ""), shown.to_lowercase());
        let variant = format!("some({member}");
        assert!(shown.contains(&variant), "{line}\nwas read as {shown}");
    }
    seen.dedup();
    assert_eq!((GOLDEN.lines().count(), seen.len()), (152, 83));
}

/// Each text of the golden messages has the name of its field.
const TEXT: &str = " é";

/// The texts of a message as it is shown, each with the field that it is in.
fn texts(shown: &str) -> Vec<(String, String)> {
    let mut field = String::new();
    let mut texts = Vec::new();
    for (at, part) in shown.split('"').enumerate() {
        if at % 2 == 1 {
            texts.push((field.clone(), part.to_owned()));
        } else if let Some((named, _)) = part.rsplit_once(':') {
            let is_of_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
            let name = named
                .rsplit(|c| !is_of_name(c))
                .next()
                .expect("one at least");
            name.clone_into(&mut field);
        }
    }
    texts
}

#[test]
fn texts_are_in_the_fields_of_their_names() {
    let mut seen = 0;
    for line in GOLDEN.lines() {
        let mut words = line.splitn(3, ' ');
        let (name, hex) = (words.next().expect("a name"), words.nth(1).expect("bytes"));
        for (field, text) in texts(&read(name, line, &bytes(hex))) {
            if let Some(meant) = text.strip_suffix(TEXT) {
                assert_eq!(field, meant, "{line}");
                seen += 1;
            }
        }
    }
    assert!(seen > 300, "{seen}");
    let message = GOLDEN.lines().find(|line| line.starts_with("McpInfo "));
    let hex = message
        .and_then(|line| line.rsplit(' ').next())
        .expect("there");
    let mcp = proto::McpInfo::decode(&*bytes(hex)).expect("valid");
    assert_eq!(mcp.args, ["args é", "args é"]);
    assert_eq!(mcp.env["KEY"], "value");
    assert_eq!(
        (mcp.auth, mcp.auto_restart, mcp.enabled),
        (true, true, true)
    );
    assert_eq!((mcp.tool_count, mcp.status, mcp.source_kind), (1013, 3, 3));
}
