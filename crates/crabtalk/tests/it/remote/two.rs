//! Two daemons' worth of clients, and what each of them sees.

use super::{Elsewhere, PLAIN, TLS, client_at, token};
use crate::rig::{eventually, within};
use crabtalk_client::{Client, NewToken};
use crabtalk_proto::*;
use futures_util::StreamExt;
use futures_util::future::join_all;

/// A daemon, what is said in its house alone, and who has a token of it.
struct House {
    elsewhere: Elsewhere,
    name: &'static str,
    tokens: Vec<(&'static str, NewToken)>,
}

/// Who has a token in each of them: two gateways, an operator, an admin, and a thief,
/// whose token was taken from another client and removed.
const CLIENTS: [(&str, &str, &[&str]); 5] = [
    ("telegram", "talk", &["tg:*"]),
    ("whatsapp", "talk", &["wa:*"]),
    ("ops", "operate", &[]),
    ("boss", "admin", &[]),
    ("thief", "admin", &[]),
];

fn say(sender: &str, content: &str) -> StreamMsg {
    StreamMsg {
        sender: Some(sender.into()),
        content: content.into(),
        ..StreamMsg::default()
    }
}

/// Something is said as each sender, and put away; and one waits for an approval.
async fn house(config: &str, name: &'static str) -> House {
    let elsewhere = Elsewhere::with(config).await;
    let owner = elsewhere.owner();
    let mut tokens = Vec::new();
    for (client, role, senders) in CLIENTS {
        tokens.push((client, elsewhere.token(token(client, role, senders)).await));
    }
    let remove = RemoveTokenMsg {
        name: "thief".into(),
    };
    owner.call(remove).await.unwrap();
    for sender in ["tg:1", "wa:1", "user"] {
        let said = format!("word of {sender} in the {name}");
        let mut run = owner.stream(say(sender, &said));
        while let Some(news) = within("a run", run.next()).await {
            news.unwrap();
        }
        let compact = CompactMsg {
            sender: sender.into(),
            ..CompactMsg::default()
        };
        owner.call(compact).await.unwrap();
    }
    let (_, made) = &tokens[0];
    let telegram = client_at(&made.listen[0], made);
    let call = format!("/tool bash {{\"command\":\"echo {name}\"}}");
    let mut asking = telegram.stream(say("tg:2", &call));
    within("a start", asking.next()).await.unwrap().unwrap();
    eventually("an ask", async || {
        let asks = owner.call(ListAsksMsg::default()).await.unwrap().asks;
        (asks.len() == 1).then_some(())
    })
    .await;
    House {
        elsewhere,
        name,
        tokens,
    }
}

/// One of the clients: who it is at its own daemon, or the code that it is refused
/// with.
struct Visitor {
    name: &'static str,
    client: Result<Client, u32>,
    /// What comes of its token at the other daemon.
    beyond: String,
}

async fn refused(client: &Client) -> Option<u32> {
    let connected = client.connect().await;
    connected.err().map(|error| error.code().unwrap())
}

/// All clients of a house, and what the other says to their tokens.
async fn visitors(house: &House, other: &House) -> Vec<Visitor> {
    let (_, there) = &other.tokens[0];
    let coming = house.tokens.iter().map(async |(name, made)| {
        let own = client_at(&made.listen[0], made);
        let strange = NewToken {
            token: made.token.clone(),
            ..there.clone()
        };
        let strange = client_at(&there.listen[0], &strange);
        let (own_code, beyond) = tokio::join!(refused(&own), refused(&strange));
        Visitor {
            name,
            client: own_code.map_or(Ok(own), Err),
            beyond: beyond.map_or("yes".into(), |code| code.to_string()),
        }
    });
    let mut all = join_all(coming).await;
    all.push(Visitor {
        name: "owner",
        client: Ok(house.elsewhere.owner()),
        beyond: "-".into(),
    });
    all
}

impl Visitor {
    /// What is said to a request; the code, if it is refused.
    async fn asks<R: Request>(&self, request: R) -> Result<R::Response, String> {
        let client = self.client.as_ref().map_err(u32::to_string)?;
        let answer = client.call(request).await;
        answer.map_err(|error| {
            error
                .code()
                .map_or("broken".into(), |code| code.to_string())
        })
    }

    async fn may<R: Request>(&self, request: R) -> String {
        self.asks(request)
            .await
            .map_or_else(|code| code, |_| "yes".into())
    }

    /// Senders that an answer is about.
    async fn sees<R: Request>(
        &self,
        request: R,
        senders: impl FnOnce(R::Response) -> Vec<String>,
    ) -> String {
        match self.asks(request).await {
            Err(code) => code,
            Ok(answer) => {
                let mut senders = senders(answer);
                senders.sort();
                senders.dedup();
                match senders.is_empty() {
                    true => "-".into(),
                    false => senders.join(" "),
                }
            }
        }
    }
}

/// Whose words an answer holds, and that none is from the other house.
fn words(said: &str, other: &str) -> Vec<String> {
    assert!(!said.contains(&format!("in the {other}")), "{said}");
    let senders = ["tg:1", "wa:1", "user"];
    let named = senders
        .iter()
        .filter(|s| said.contains(&format!("word of {s} ")));
    named.map(|sender| (*sender).to_owned()).collect()
}

async fn row(visitor: &Visitor, house: &House, other: &House) -> String {
    let history = async |sender: &str| {
        let request = GetHistoryMsg {
            sender: sender.into(),
            limit: 100,
            ..GetHistoryMsg::default()
        };
        let seen = visitor.sees(request, |page| words(&format!("{page:?}"), other.name));
        match seen.await {
            seen if seen == sender => "yes".to_owned(),
            seen => seen,
        }
    };
    let send = |sender: &str| SendMsg {
        sender: Some(sender.into()),
        content: "hi".into(),
        ..SendMsg::default()
    };
    let search = SearchMsg {
        sender: "tg:1".into(),
        query: "word attic cellar".into(),
        limit: 50,
        ..SearchMsg::default()
    };
    let remember = RememberMsg {
        sender: "tg:1".into(),
        name: format!("note of {}", visitor.name),
        content: "x".into(),
        ..RememberMsg::default()
    };
    let listed = ListConversationsMsg::default();
    let listed = visitor.sees(listed, |list| {
        list.conversations.into_iter().map(|c| c.sender).collect()
    });
    let asks = visitor.sees(ListAsksMsg::default(), |list| {
        list.asks.into_iter().map(|ask| ask.sender).collect()
    });
    let found = visitor.sees(search, |found| words(&format!("{found:?}"), other.name));
    let cells = [
        listed.await,
        found.await,
        asks.await,
        history("tg:1").await,
        history("wa:1").await,
        history("user").await,
        visitor.may(send("tg:1")).await,
        visitor.may(send("user")).await,
        visitor.may(remember).await,
        visitor.may(GetStats::default()).await,
        visitor.may(GetConfig {}).await,
        visitor.may(ListTokensMsg {}).await,
        visitor.beyond.clone(),
    ];
    format!("{} {} | {}\n", house.name, visitor.name, cells.join(" | "))
}

#[tokio::test]
async fn each_client_of_two_daemons_sees_its_own_and_nothing_of_the_other_house() {
    let (attic, cellar) = tokio::join!(house(TLS, "attic"), house(PLAIN, "cellar"));
    let (up, down) = tokio::join!(visitors(&attic, &cellar), visitors(&cellar, &attic));
    let mut table = String::from(
        "who | list | search tg:1 | asks | tg:1 | wa:1 | user | as tg:1 | as user | remember | stats | \
         config | tokens | beyond\n",
    );
    for visitor in &up {
        table += &row(visitor, &attic, &cellar).await;
    }
    for visitor in &down {
        table += &row(visitor, &cellar, &attic).await;
    }
    let rows = "\
telegram | tg:1 tg:2 | tg:1 | - | yes | 404 | 404 | yes | 403 | 403 | 403 | 403 | 403 | 401
whatsapp | wa:1 | 404 | - | 404 | yes | 404 | 403 | 403 | 403 | 403 | 403 | 403 | 401
ops | tg:1 tg:2 wa:1 | tg:1 | - | yes | yes | 404 | yes | 403 | yes | yes | 403 | 403 | 401
boss | tg:1 tg:2 user wa:1 | tg:1 | tg:2 | yes | yes | yes | yes | yes | yes | yes | yes | yes | 401
thief | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401 | 401
owner | tg:1 tg:2 user wa:1 | tg:1 | tg:2 | yes | yes | yes | yes | yes | yes | yes | yes | yes | -
";
    let of =
        |house: &str| -> String { rows.lines().map(|row| format!("{house} {row}\n")).collect() };
    let head = table.lines().next().unwrap();
    let want = format!("{head}\n{}{}", of("attic"), of("cellar"));
    assert_eq!(table, want, "\n{table}");
    // What strange tokens tried is in the record of the house where they did.
    for house in [&attic, &cellar] {
        let record = house.elsewhere.env.run(&["audit", "--json"]).await.ok();
        assert!(record.contains("a-token-was-refused"), "{record}");
        for (_, made) in attic.tokens.iter().chain(&cellar.tokens) {
            assert!(!record.contains(&made.token));
        }
    }
}
