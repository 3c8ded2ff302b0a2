//! The reach of tokens.

mod requests;

use super::{Elsewhere, PLAIN, token};
use crate::rig::{eventually, within};
use crabtalk_client::Client;
use crabtalk_proto::{Client as _, *};
use futures_util::StreamExt;
use requests::{of_all, of_pair};
use std::collections::VecDeque;
use std::fmt::Debug;

/// Text that answers to another token must not contain.
const OTHERS: &str = "betasecret";
const OWNERS: &str = "ownersecret";

fn say(agent: &str, sender: &str, content: &str) -> StreamMsg {
    StreamMsg {
        agent: agent.into(),
        sender: Some(sender.into()),
        content: content.into(),
        ..StreamMsg::default()
    }
}

/// Follows a run to its end.
async fn run(client: &Client, request: StreamMsg) {
    let mut run = client.stream(request);
    while let Some(news) = within("a run", run.next()).await {
        news.unwrap();
    }
}

/// Two agents with one object of every kind each, and an owner with a conversation.
async fn two_worlds() -> Elsewhere {
    let elsewhere = Elsewhere::with(PLAIN).await;
    let owner = elsewhere.owner();
    for agent in ["alpha", "beta"] {
        elsewhere.env.agent(
            agent,
            &format!("description: {agent}secret\nmembers: [alpha, beta]"),
        );
    }
    elsewhere.env.run(&["daemon", "reload"]).await.ok();
    run(&owner, say("", "user", OWNERS)).await;
    for (agent, sender) in [("alpha", "a:1"), ("beta", "b:1")] {
        let secret = format!("{agent}secret");
        run(&owner, say(agent, sender, &secret)).await;
        let compact = CompactMsg {
            agent: agent.into(),
            sender: sender.into(),
            ..CompactMsg::default()
        };
        owner.call(compact).await.unwrap();
        run(&owner, say(agent, sender, &secret)).await;
        let title = SetConversationMsg {
            agent: agent.into(),
            sender: sender.into(),
            title: Some(secret.clone()),
            ..SetConversationMsg::default()
        };
        owner.call(title).await.unwrap();
        let note = RememberMsg {
            agent: agent.into(),
            sender: sender.into(),
            name: secret.clone(),
            description: secret.clone(),
            content: secret.clone(),
            ..RememberMsg::default()
        };
        owner.call(note).await.unwrap();
        let cron = CreateCronMsg {
            schedule: "0 0 1 1 *".into(),
            agent: agent.into(),
            sender: sender.into(),
            content: Some(secret.clone()),
            ..CreateCronMsg::default()
        };
        let made = owner.call(cron).await.unwrap();
        owner.call(RunCronMsg { id: made.id }).await.unwrap();
        // The run's text must be in the history before the comparison.
        eventually("a run of cron to end", async || {
            let request = ListCronRunsMsg {
                id: Some(made.id),
                ..ListCronRunsMsg::default()
            };
            let runs = owner.call(request).await.unwrap().runs;
            let over = |run: &CronRun| run.outcome != "running";
            (runs.len() == 1 && runs.iter().all(over)).then_some(())
        })
        .await;
        let subscription = SubscribeEventMsg {
            source: secret.clone(),
            target_agent: agent.into(),
            ..SubscribeEventMsg::default()
        };
        owner.call(subscription).await.unwrap();
        // Two asks: a question in a stream, and an approval in the inbox.
        let guest = elsewhere
            .talker(&format!("{agent}-guest"), &[&format!("{}:*", &sender[..1])])
            .await;
        for (other, said) in [
            ("2", format!("/ask {secret}?")),
            ("3", format!("/tool bash {{\"command\":\"echo {secret}\"}}")),
        ] {
            let sender = format!("{}:{other}", &sender[..1]);
            let mut asked = guest.stream(say(agent, &sender, &said));
            within("a start", asked.next()).await.unwrap().unwrap();
            eventually("an ask", async || {
                let asks = owner.call(ListAsksMsg::default()).await.unwrap().asks;
                asks.iter().any(|ask| ask.sender == sender).then_some(())
            })
            .await;
        }
    }
    elsewhere
}

/// All answers to a request.
async fn answers(client: &Client, request: ClientMessage) -> Vec<String> {
    let mut connection = client.connect().await.unwrap();
    let mut stream = std::pin::pin!(connection.request_stream(request));
    let mut all = Vec::new();
    // Only streams of runs have further messages.
    let reading = async {
        while let Some(message) = stream.next().await {
            all.push(format!("{message:?}"));
            if !matches!(
                &message,
                Ok(ServerMessage {
                    msg: Some(server_message::Msg::Stream(_))
                })
            ) {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(std::time::Duration::from_secs(1), reading).await;
    all
}

fn no_secrets(of: &str, secrets: &[&str], what: &impl Debug, said: &str) {
    for secret in secrets {
        assert!(
            !said.contains(secret),
            "{of} was told {secret} in answer to {what:?}: {said}"
        );
    }
}

/// A pseudo-random order, the same in each test run.
fn mixed<T>(mut all: VecDeque<T>) -> Vec<T> {
    let mut order = Vec::new();
    let mut n: usize = 7;
    while !all.is_empty() {
        n = (n * 1_103_515_245 + 12_345) & 0x7fff_ffff;
        all.rotate_left(n % order.len().clamp(1, 97) % all.len());
        order.extend(all.pop_front());
    }
    order
}

/// Objects outside the reach of alpha's tokens: ask ids and conversation files.
async fn of_others(owner: &Client) -> (Vec<String>, Vec<String>) {
    let asks = owner.call(ListAsksMsg::default()).await.unwrap().asks;
    let foreign = asks.iter().filter(|ask| ask.agent == "beta");
    let ask_ids: Vec<String> = foreign
        .map(|ask| ask.ask.as_ref().unwrap().ask_id.clone())
        .collect();
    assert_eq!(ask_ids.len(), 2);
    let all = owner.call(ListConversationsMsg::default()).await.unwrap();
    let all = all.conversations;
    let foreign = all.iter().filter(|one| one.agent != "alpha");
    let files: Vec<String> = foreign.map(|one| one.file_path.clone()).collect();
    assert!(files.len() >= 4, "{all:?}");
    (ask_ids, files)
}

/// Watches all events until the end of `a:9`.
async fn watching(client: &Client) -> tokio::task::JoinSet<Vec<AgentEventMsg>> {
    let mut events = client.connect().await.unwrap();
    let mut watching = tokio::task::JoinSet::new();
    watching.spawn(async move {
        let mut seen = Vec::new();
        let mut events = std::pin::pin!(events.subscribe_events(SubscribeEvents::default()));
        while let Some(event) = events.next().await {
            let event = event.unwrap();
            let is_last = event.sender == "a:9" && event.kind() == AgentEventKind::Done;
            seen.push(event);
            if is_last {
                break;
            }
        }
        seen
    });
    watching
}

#[tokio::test]
async fn token_neither_reads_nor_changes_others_data() {
    let elsewhere = two_worlds().await;
    let owner = elsewhere.owner();
    let (ask_ids, files) = of_others(&owner).await;
    let before = state(&owner).await;
    for role in ["talk", "operate", "admin"] {
        let request = CreateTokenMsg {
            agents: vec!["alpha".into()],
            ..token(&format!("alpha-{role}"), role, &["a:*"])
        };
        let client = elsewhere.client(request).await;
        let mut watching = watching(&client).await;
        let mut requests: VecDeque<ClientMessage> = of_all(&ask_ids, &files).into();
        for agent in ["alpha", "beta", "none", ""] {
            for sender in ["a:1", "b:1", "user", "cron", ""] {
                requests.extend(of_pair(agent, sender));
            }
        }
        // Skips requests that would change the token's own objects.
        requests.retain(|request| {
            !matches!(
                &request.msg,
                Some(client_message::Msg::RemoveConversation(m)) if m.agent == "alpha" && m.sender == "a:1"
            )
        });
        for request in mixed(requests) {
            let shown = request.clone();
            for mut said in answers(&client, request).await {
                // An answer may repeat the file name of the request.
                for file in &files {
                    said = said.replace(file, "FILE");
                }
                no_secrets(role, &[OTHERS, OWNERS], &shown, &said);
            }
        }
        // The token can see its own conversations.
        let own = client.call(ListConversationsMsg::default());
        let own = format!("{:?}", within("a list", own).await.unwrap());
        assert!(
            own.contains("\"a:1\"") && own.contains("\"a:3\""),
            "{role}: {own}"
        );
        run(&owner, say("beta", "b:9", "betasecret")).await;
        run(&owner, say("", "user", OWNERS)).await;
        run(&owner, say("alpha", "a:9", "the last word")).await;
        let seen = within("the last event", watching.join_next())
            .await
            .unwrap()
            .unwrap();
        assert!(
            seen.iter()
                .all(|event| event.agent == "alpha" && event.sender.starts_with("a:"))
        );
        no_secrets(role, &[OTHERS, OWNERS], &"events", &format!("{seen:?}"));
        // Removes the conversations that the test created.
        for sender in ["b:9", "user"] {
            let agent = if sender == "user" { "" } else { "beta" };
            let remove = RemoveConversationMsg {
                agent: agent.into(),
                sender: sender.into(),
            };
            owner.call(remove).await.unwrap();
        }
        run(&owner, say("", "user", OWNERS)).await;
    }
    assert_eq!(before, state(&owner).await);
}

/// The objects of beta and the owner that a client might have changed.
async fn state(owner: &Client) -> String {
    let mut state = String::new();
    for sender in ["b:1", "b:2", "b:3"] {
        let request = GetHistoryMsg {
            agent: "beta".into(),
            sender: sender.into(),
            ..GetHistoryMsg::default()
        };
        state += &format!("{:?}\n", owner.call(request).await.unwrap());
    }
    let asks = owner.call(ListAsksMsg::default()).await.unwrap().asks;
    let asks: Vec<_> = asks.iter().filter(|ask| ask.agent == "beta").collect();
    state += &format!("{asks:?}\n");
    let crons = owner.call(ListCronsMsg {}).await.unwrap().crons;
    let crons = crons.iter().filter(|cron| cron.agent == "beta");
    state += &format!(
        "{:?}\n",
        crons.map(|c| (c.id, c.paused)).collect::<Vec<_>>()
    );
    let subscriptions = owner
        .call(ListSubscriptionsMsg {})
        .await
        .unwrap()
        .subscriptions;
    let beta = subscriptions
        .iter()
        .filter(|one| one.target_agent == "beta");
    state += &format!("{:?}\n", beta.map(|one| one.id).collect::<Vec<_>>());
    let agents = owner.call(ListAgentsMsg::default()).await.unwrap();
    state + &format!("{agents:?}")
}
