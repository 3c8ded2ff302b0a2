//! Every request that names an object.

use super::say;
use crabtalk_proto::*;

/// Every request that names a pair.
pub(super) fn of_pair(agent: &str, sender: &str) -> Vec<ClientMessage> {
    let mut all = of_both(agent, sender);
    all.extend(of_either(agent, sender));
    all
}

/// Requests with the fields `agent` and `sender`.
#[expect(
    clippy::needless_update,
    reason = "of some messages the macro names each field"
)]
fn of_both(agent: &str, sender: &str) -> Vec<ClientMessage> {
    let (a, s) = (|| agent.to_owned(), || sender.to_owned());
    macro_rules! pair {
        ($($message:ident {$($field:ident: $value:expr),*}),* $(,)?) => {
            vec![$($message {
                agent: a(), sender: s(), $($field: $value,)* ..$message::default()
            }.into()),*]
        };
    }
    pair![
        ExpectMessageMsg {},
        KillMsg {},
        SteerSessionMsg {
            content: "x".into()
        },
        WithdrawMsg {
            request_id: "x".into()
        },
        CompactMsg {},
        RewindMsg { index: 1 },
        ReopenMsg { index: 1 },
        ReplyToAsk {
            content: "1".into()
        },
        ListActiveConversationsMsg {},
        ListConversationsMsg {},
        GetHistoryMsg {},
        ListArchivesMsg {},
        GetArchiveMsg { index: 1 },
        SearchMsg {
            query: "secret alphasecret".into()
        },
        SearchMsg {
            query: "You told me".into()
        },
        RemoveConversationMsg {},
        SetConversationMsg {
            title: Some("mine".into())
        },
        AttachMsg {},
        ListChangesMsg { diffs: true },
        UndoMsg { partly: true },
        ListMemoryMsg {},
        GetMemoryMsg { name: "x".into() },
        ForgetMsg { name: "x".into() },
        RememberMsg {
            name: "x".into(),
            description: "x".into(),
            content: "x".into()
        },
        CreateCronMsg {
            schedule: "0 0 1 1 *".into(),
            content: Some("x".into())
        },
    ]
}

/// Requests with only one of the two names, or with other field names.
fn of_either(agent: &str, sender: &str) -> Vec<ClientMessage> {
    let a = || agent.to_owned();
    let some = |text: &str| Some(text.to_owned());
    vec![
        say(agent, sender, "hi").into(),
        SendMsg {
            agent: a(),
            sender: some(sender),
            content: "hi".into(),
            guest: some("beta"),
            ..SendMsg::default()
        }
        .into(),
        ListAsksMsg {
            agent: some(agent),
            sender: some(sender),
        }
        .into(),
        ListApprovalsMsg {
            agent: some(agent),
            sender: some(sender),
        }
        .into(),
        SubscribeEventMsg {
            source: "x".into(),
            target_agent: a(),
            ..Default::default()
        }
        .into(),
        GetRightsMsg { agent: a() }.into(),
        GetAgentMsg { name: a() }.into(),
        DeleteAgentMsg { name: a() }.into(),
        UpdateAgentMsg {
            name: a(),
            prompt: "x".into(),
            ..Default::default()
        }
        .into(),
    ]
}

/// Every request with a number or a file, or without a name.
pub(super) fn of_all(ask_ids: &[String], files: &[String]) -> Vec<ClientMessage> {
    let mut all: Vec<ClientMessage> = OPERATIONS
        .iter()
        // This would be the connection's second such request.
        .filter(|operation| operation.name != "hello" && operation.name != "subscribe_events")
        .map(|operation| ClientMessage {
            msg: Some(operation.empty()),
        })
        .collect();
    for id in 0..8 {
        all.extend([
            DeleteCronMsg { id }.into(),
            RunCronMsg { id }.into(),
            SetCronMsg {
                id,
                paused: Some(true),
                ..Default::default()
            }
            .into(),
            ListCronRunsMsg {
                id: Some(id),
                ..Default::default()
            }
            .into(),
            UnsubscribeEventMsg { id }.into(),
            RemoveApprovalMsg {
                index: u32::try_from(id).unwrap(),
                ..Default::default()
            }
            .into(),
        ]);
    }
    for id in ask_ids {
        let reply = ReplyToAsk {
            ask_id: Some(id.clone()),
            content: "1".into(),
            ..Default::default()
        };
        all.push(reply.into());
    }
    for file in files {
        all.push(
            GetConversationHistoryMsg {
                file_path: file.clone(),
            }
            .into(),
        );
        all.push(
            DeleteConversationMsg {
                file_path: file.clone(),
            }
            .into(),
        );
    }
    for source in ["x", "alphasecre", "*"] {
        all.push(
            PublishEventMsg {
                source: source.into(),
                payload: "x".into(),
            }
            .into(),
        );
    }
    all.push(GetStats { days: 30 }.into());
    all.push(
        ListSkillsMsg {
            cwd: Some("/".into()),
        }
        .into(),
    );
    all
}
