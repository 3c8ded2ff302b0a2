//! Encoding of requests; the scripted server refuses invalid ones.

use crate::dialect::{Dialect, with_tools};
use crate::support::{calling, request};
use crate::{Case, Cell};
use crabtalk_domain::Message;
use crabtalk_domain::model::{Request, Response, ToolChoice};
use crabtalk_testkit::scripted::{FinishReason, Format, Part};
use std::sync::Arc;

pub(crate) const CASES: [Case; 9] = [
    Case::new("URL and key are correctly placed", |d| Box::pin(address(d))),
    Case::new("results belong to their calls", |d| Box::pin(results(d))),
    Case::new("thinking is sent in the next turn", |d| Box::pin(proof(d))),
    Case::new("another provider's thinking is omitted", |d| {
        Box::pin(foreign(d))
    }),
    Case::new("an answer of thinking only stays valid", |d| {
        Box::pin(thoughts_alone(d))
    }),
    Case::new("every valid history is accepted", |d| {
        Box::pin(any_history(d))
    }),
    Case::new("tool choice: required or none", |d| Box::pin(choice(d))),
    Case::new("successive requests share their prefix", |d| {
        Box::pin(prefix(d))
    }),
    Case::new("cache markers", |d| Box::pin(marks(d))),
];

/// Sends requests which the server has to find right, and gives their bodies.
pub(crate) async fn bodies(dialect: Dialect, requests: &[Request]) -> Vec<String> {
    let bench = dialect
        .bench(requests.iter().map(|_| dialect.text(&["ok"])))
        .await;
    for request in requests {
        bench.send(request).await.expect("a valid request");
    }
    let got = bench.server.requests();
    got.into_iter().map(|received| received.text).collect()
}

async fn address(dialect: Dialect) -> Cell {
    let bench = dialect.bench([dialect.text(&["ok"])]).await;
    bench.send(&request("hi")).await.expect("an answer");
    let got = &bench.server.requests()[0];
    assert_eq!(got.path, dialect.path());
    let (name, value) = dialect.key_header();
    assert_eq!(got.header(name), Some(value));
    let keys = got
        .headers
        .iter()
        .filter(|(_, value)| value.contains("planted"));
    assert_eq!(keys.count(), 1, "{:?}", got.headers);
    assert!(!got.text.contains("planted") && got.text.contains("sys"));
    Cell::Holds
}

async fn results(dialect: Dialect) -> Cell {
    let calls = [("a:0", "read", "{\"path\":\"x\"}"), ("b", "bash", "")];
    let asked = with_tools(vec![
        Message::user("hi"),
        calling(&calls),
        Message::tool("a:0", "contents of x", false),
        Message::tool("b", "no such command", true),
    ]);
    let body = &bodies(dialect, &[asked]).await[0];
    for part in ["contents of x", "no such command", "\"read\"", "\"bash\""] {
        assert!(body.contains(part), "{part}: {body}");
    }
    Cell::Holds
}

fn told(answer: Response) -> Message {
    let mut message = Message::assistant(answer.content);
    message.thinking = answer.thinking;
    message.tool_calls = answer.tool_calls;
    message
}

/// A turn in which the model thought and called, and the request after it.
async fn thought(dialect: Dialect) -> Request {
    let parts = [
        Part::thinking("hm", "proof-of-the-call=="),
        Part::call("c1", "read", &["{}"]),
        Part::call("c2", "bash", &["{}"]),
    ];
    let bench = dialect
        .bench([dialect.answer(&parts, FinishReason::Calls)])
        .await;
    let mut asked = with_tools(vec![Message::user("hi")]);
    asked.thinking = true;
    let answer = bench.send(&asked).await.expect("an answer");
    let more = [
        told(answer),
        Message::tool("c1", "r1", false),
        Message::tool("c2", "r2", false),
    ];
    asked.history.extend(more.map(Arc::new));
    asked.injected_at = asked.history.len();
    asked
}

async fn proof(dialect: Dialect) -> Cell {
    let body = &bodies(dialect, &[thought(dialect).await]).await[0];
    let came_back = body.contains("\"proof-of-the-call==\"");
    if dialect.format() == Format::OpenAi {
        assert!(!came_back && !body.contains("hm"), "{body}");
        return Cell::Absent("not in the format");
    }
    assert!(came_back, "{body}");
    Cell::Holds
}

async fn foreign(dialect: Dialect) -> Cell {
    for other in Dialect::ALL {
        // Claude's proofs are the same wherever it runs.
        let claudes = [Dialect::Anthropic, Dialect::Bedrock];
        if other == dialect || claudes.contains(&other) && claudes.contains(&dialect) {
            continue;
        }
        let asked = thought(other).await;
        let body = &bodies(dialect, &[asked]).await[0];
        assert!(!body.contains("proof-of-the-call"), "{body}");
        // Claude must not be asked to go on with a thought that is not its own.
        let asked_to_think = body.contains("\"thinking\":{");
        assert!(!claudes.contains(&dialect) || !asked_to_think, "{body}");
    }
    Cell::Holds
}

async fn thoughts_alone(dialect: Dialect) -> Cell {
    let parts = [Part::thinking("hm", "proof-of-the-thought==")];
    let bench = dialect
        .bench([dialect.answer(&parts, FinishReason::Done)])
        .await;
    let mut asked = with_tools(vec![Message::user("hi")]);
    asked.thinking = true;
    let thought = told(bench.send(&asked).await.expect("an answer"));
    let blank = Message {
        content: " \n".into(),
        ..thought.clone()
    };
    for alone in [thought.clone(), blank] {
        let more = [alone.clone(), Message::user("say something")];
        asked.history.extend(more.map(Arc::new));
        let id = format!("call_{}", asked.history.len());
        let called = calling(&[(&id, "read", "{}")]);
        let more = [called, Message::tool(id, "r", false), alone];
        asked.history.extend(more.map(Arc::new));
        asked.history.push(Arc::new(Message::user("go on")));
    }
    asked.injected_at = asked.history.len();
    let body = &bodies(dialect, &[asked]).await[0];
    assert!(!body.contains("proof-of-the-thought"), "{body}");
    Cell::Holds
}

async fn any_history(dialect: Dialect) -> Cell {
    let mut guest = Message::assistant("from the guest");
    guest.agent = "ada".into();
    let mut asked = with_tools(vec![
        Message::user("one"),
        Message::user("two"),
        calling(&[("a:0", "read", ""), ("b", "read", "{broken")]),
        Message::tool("a:0", "", false),
        Message::tool("b", "r", false),
        Message::user("steered"),
        Message::assistant("own"),
        guest,
        Message::user("three"),
    ]);
    asked.has_guests = true;
    asked.injected = Arc::new(vec![Message::injected("for this run")]);
    asked.injected_at = 8;
    asked.closing = Some(Arc::new(Message::user("summarise")));
    let mut without = asked.clone();
    without.tools = Arc::default();
    for body in bodies(dialect, &[asked, without]).await {
        for part in ["steered", "for this run", "summarise", "<from agent="] {
            assert!(body.contains(part), "{part}: {body}");
        }
    }
    Cell::Holds
}

async fn choice(dialect: Dialect) -> Cell {
    let mut asked = with_tools(vec![
        Message::user("hi"),
        calling(&[("c1", "read", "{}")]),
        Message::tool("c1", "r", false),
        Message::assistant("done"),
        Message::user("again"),
    ]);
    let mut requests = Vec::new();
    for choice in [
        ToolChoice::Auto,
        ToolChoice::None,
        ToolChoice::Required,
        ToolChoice::Named("bash".into()),
    ] {
        asked.tool_choice = choice;
        requests.push(asked.clone());
    }
    let sent = bodies(dialect, &requests).await;
    let (none, any, named) = match dialect.format() {
        Format::OpenAi => (
            "\"tool_choice\":\"none\"",
            "\"tool_choice\":\"required\"",
            "\"function\":{\"name\":\"bash\"},",
        ),
        Format::Anthropic => (
            "\"tool_choice\":{\"type\":\"none\"}",
            "{\"type\":\"any\"}",
            "{\"name\":\"bash\",\"type\":\"tool\"}",
        ),
        Format::Google => (
            "\"mode\":\"NONE\"",
            "\"mode\":\"ANY\"",
            "\"allowedFunctionNames\":[\"bash\"]",
        ),
        // Without tools none can be called; what was called becomes text.
        Format::Bedrock => (
            "[called the tool read",
            "\"toolChoice\":{\"any\":{}}",
            "\"toolChoice\":{\"tool\":{\"name\":\"bash\"}}",
        ),
    };
    for (body, part) in sent[1..].iter().zip([none, any, named]) {
        assert!(
            body.contains(part) && !sent[0].contains(part),
            "{part}: {body}"
        );
    }
    Cell::Holds
}

/// A body without the marks that move from request to request.
pub(crate) fn without_marks(body: &str) -> String {
    body.replace("\"cache_control\":{\"type\":\"ephemeral\"},", "")
        .replace(",{\"cachePoint\":{\"type\":\"default\"}}", "")
}

async fn prefix(dialect: Dialect) -> Cell {
    let first = with_tools(vec![
        Message::user("one"),
        Message::assistant("two"),
        Message::user("the last of the first"),
    ]);
    let mut second = first.clone();
    second.history.extend(
        [
            calling(&[("c1", "read", "{}")]),
            Message::tool("c1", "the last of the second", false),
        ]
        .map(Arc::new),
    );
    second.injected_at = second.history.len();
    let mut third = second.clone();
    third
        .history
        .extend([Message::assistant("six"), Message::user("seven")].map(Arc::new));
    third.injected_at = third.history.len();
    let sent = bodies(dialect, &[first, second, third]).await;
    for (two, last) in sent
        .windows(2)
        .zip(["the last of the first", "the last of the second"])
    {
        let (before, after) = (without_marks(&two[0]), without_marks(&two[1]));
        let end = before.find(last).expect("it is sent") + last.len();
        assert!(after.starts_with(&before[..end]), "{before}\n{after}");
        assert!(before[..end].contains("sys") && before[..end].contains("read"));
    }
    Cell::Holds
}

async fn marks(dialect: Dialect) -> Cell {
    let mut asked = with_tools(vec![
        Message::user("one"),
        Message::assistant("two"),
        Message::user("three"),
    ]);
    asked.injected = Arc::new(vec![Message::injected("for this run")]);
    asked.injected_at = 2;
    let body = &bodies(dialect, &[asked]).await[0];
    let count = body.matches("\"cache_control\"").count() + body.matches("\"cachePoint\"").count();
    match dialect.format() {
        Format::OpenAi | Format::Google => {
            assert_eq!(count, 0, "{body}");
            Cell::Absent("automatic")
        }
        // Tools, system prompt, before what is injected, the end.
        Format::Anthropic | Format::Bedrock => {
            assert_eq!(count, 4, "{body}");
            Cell::Holds
        }
    }
}
