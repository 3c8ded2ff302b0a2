//! A model that acts as a team: it reads the last message and answers in the required
//! form, after a tool call if the message requests one.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub(crate) struct Speaker {
    address: String,
    _tasks: JoinSet<()>,
}

impl Speaker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                open.spawn(async move {
                    // The client may close its connection.
                    let _ = serve(stream).await;
                });
            }
        });
        Self {
            address,
            _tasks: tasks,
        }
    }

    /// A configuration with this model.
    pub(crate) fn config(&self) -> String {
        format!(
            "model = \"speaker\"\n\n[provider.test]\nkind = \"openai\"\nbase_url = \
             \"http://{}/v1\"\napi_key = \"sk-test\"\nmodels = [\"speaker\"]\n\n\
             [runs]\nmode = \"ask\"\n",
            self.address
        )
    }
}

async fn serve(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = answer(&request);
        let mut text = String::new();
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105});
        for (delta, finish) in answer {
            let event = json!({
                "id": "x", "object": "chat.completion.chunk", "model": "speaker",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            });
            text.push_str(&format!("data: {event}\n\n"));
        }
        let last = json!({"id": "x", "model": "speaker", "choices": [], "usage": usage});
        text.push_str(&format!("data: {last}\n\ndata: [DONE]\n\n"));
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        stream.get_mut().write_all(head.as_bytes()).await?;
        stream.get_mut().write_all(text.as_bytes()).await?;
    }
}

fn answer(request: &Value) -> Vec<(Value, Option<&'static str>)> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let of = |message: &Value| {
        let content = &message["content"];
        let text = content.as_str().or_else(|| content[0]["text"].as_str());
        text.unwrap_or_default().to_owned()
    };
    let is_user = |message: &&Value| message["role"] == "user";
    let asked = messages.iter().rfind(is_user).map(of).unwrap_or_default();
    let has_result = messages.last().is_some_and(|last| last["role"] == "tool");
    let denied = has_result
        && messages
            .last()
            .is_some_and(|last| of(last).contains("enied"));
    let line = asked.lines().find(|line| line.starts_with('@'));
    let Some(message) = line.and_then(crabtalk_nexus::grammar::read_one) else {
        return said("A summary of what was said so far.".into());
    };
    let (from, me) = (message.header.from, message.header.to[0].clone());
    let topic = message
        .header
        .topic
        .map_or("X".into(), |topic| topic.to_string());
    let command = match topic.as_str() {
        "COMPRESSION" => Some(format!(
            "date +%N >> {0}/context.md; git add {0}; git -c user.name=a -c user.email=a@b \
             commit -q -m consolidated --only {0}",
            me.folder()
        )),
        _ => message.body.strip_prefix("prompt ").map(str::to_owned),
    };
    if let Some(command) = command.filter(|_| !has_result) {
        let arguments = json!({"command": command}).to_string();
        let call = json!({"tool_calls": [{
            "index": 0, "id": "call_1", "type": "function",
            "function": {"name": "bash", "arguments": arguments},
        }]});
        return vec![(call, None), (json!({}), Some("tool_calls"))];
    }
    let done = if denied { "failed: refused" } else { "done" };
    said(match (topic.as_str(), message.body.strip_prefix("ask ")) {
        ("BOOTSTRAP", _) => {
            format!("@{me} → @NEXUS [BOOTSTRAP]: Identity confirmed. Context loaded. Ready")
        }
        ("COMPRESSION", _) => format!(
            "@{me} → @NEXUS [COMPRESSION]: Context consolidated. Changes committed. Ready for \
             compression."
        ),
        (_, Some(whom)) => format!(
            "@{me} → @{whom} [Q-{topic}]: what of {topic}?\n@{me} → @{from} [{topic}]: done: asked"
        ),
        (topic, None) if topic.starts_with("RE-") => {
            format!("@{me} → @ADMIN [SEEN-{topic}]: heard")
        }
        (topic, None) if topic.starts_with("Q-") => {
            format!("@{me} → @{from} [RE-{topic}]: well")
        }
        (topic, None) => format!("@{me} → @{from} [{topic}]: {done}"),
    })
}

fn said(text: String) -> Vec<(Value, Option<&'static str>)> {
    let delta = json!({"role": "assistant", "content": text});
    vec![(delta, None), (json!({}), Some("stop"))]
}
