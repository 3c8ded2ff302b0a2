//! What the model says in the pictures: a server of prepared answers.

use anyhow::Context;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

/// The file that is worked on.
pub(super) const SOURCE: &str = "//! Greets.\n\nfn main() {\n    println!(\"hello\");\n}\n";

const LAYOUT: &str = "The tests come in **three layers**, from quick to thorough:\n\n\
    | layer | where | runs in |\n|---|---|--:|\n\
    | unit | beside the code, in `tests.rs` | 0.2 s |\n\
    | behaviour | `tests/it`, one binary | 6 s |\n\
    | endurance | `cargo xtask soak` | 30 min |\n\n\
    A behaviour test reads as data:\n\n\
    ```rust\n#[test]\nfn greets_by_name() {\n    // No network, no home of yours.\n    \
    assert_eq!(greet(\"Ada\"), \"hello, Ada\");\n}\n```\n\n\
    1. Write the test first.\n2. See it fail, *then* mend it.\n";

/// The configuration that names the server.
pub(super) fn config(server: &str) -> String {
    format!(
        "model = \"sonnet\"\n\n[provider.pictures]\nkind = \"openai\"\nbase_url = \"{server}\"\n\
         api_key = \"sk-none\"\nmodels = [{{ name = \"sonnet\", context = 200000 }}]\n"
    )
}

fn text(text: &str) -> Vec<Value> {
    vec![json!({"content": text}), json!({"finish": "stop"})]
}

fn call(name: &str, arguments: &Value) -> Vec<Value> {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": function});
    vec![
        json!({"tool_calls": [call]}),
        json!({"finish": "tool_calls"}),
    ]
}

/// Serves the answers in order, from a thread that ends with the program; its
/// address.
pub(super) fn serve() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("cannot listen")?;
    let address = format!("http://{}/v1", listener.local_addr()?);
    let edit = json!({
        "path": "src/main.rs",
        "old_string": "    println!(\"hello\");",
        "new_string": "    let name = std::env::args().nth(1);\n    let name = name.as_deref().unwrap_or(\"you\");\n    println!(\"hello, {name}\");",
    });
    let answers = [
        call("read", &json!({"path": "src/main.rs"})),
        text(LAYOUT),
        call("edit", &edit),
    ];
    std::thread::spawn(move || {
        let mut answers = answers.into_iter();
        for stream in listener.incoming().flatten() {
            let Some(answer) = answers.next() else { return };
            // A client that went reads nothing.
            let _ = reply(stream, &answer);
        }
    });
    Ok(address)
}

fn reply(mut stream: TcpStream, answer: &[Value]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut out = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        .to_owned();
    for piece in answer {
        let choice = match piece.get("finish") {
            Some(reason) => json!({"index": 0, "delta": {}, "finish_reason": reason}),
            None => json!({"index": 0, "delta": piece}),
        };
        out.push_str(&format!("data: {}\n\n", json!({"choices": [choice]})));
    }
    let usage = json!({"prompt_tokens": 4120, "completion_tokens": 212, "total_tokens": 4332});
    out.push_str(&format!(
        "data: {}\n\ndata: [DONE]\n\n",
        json!({"choices": [], "usage": usage})
    ));
    stream.write_all(out.as_bytes())
}
