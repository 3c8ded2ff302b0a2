//! Images in provider requests, logs and clients.

use crate::rig::{ModelServer, TestEnv, Tmux, entries, has_tools};
use crabtalk_testkit::scripted::{FinishReason, Format, Part, Reply, Script, answer};
use serde_json::{Value, json};
use std::fs;

/// A PNG of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
    \0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

const BASE64: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

fn reads() -> Reply {
    let call = Part::call("c1", "read", &["{\"path\":\"shot.png\"}"]);
    answer::answer(Format::Anthropic, &[call], FinishReason::Calls)
}

fn says(text: &str) -> Reply {
    answer::answer(
        Format::Anthropic,
        &[Part::text(&[text])],
        FinishReason::Done,
    )
}

async fn env(replies: Vec<Reply>, model: &str) -> (ModelServer, TestEnv) {
    let server = ModelServer::start(Script::new(Format::Anthropic, replies)).await;
    let env = TestEnv::new();
    env.config(&format!(
        "model = \"eyes\"\n[provider.a]\nkind = \"anthropic\"\nbase_url = \"{}\"\n\
         api_key = \"k\"\nmodels = [{model}]\n",
        server.url()
    ));
    fs::write(env.work.join("shot.png"), PIXEL).unwrap();
    (server, env)
}

/// The result of the only call, without cache marks, which move.
fn shown(body: &Value) -> Value {
    let mut result = body["messages"][2]["content"][0].clone();
    assert_eq!(result["tool_use_id"], "c1", "{body}");
    result["content"].take()
}

#[tokio::test]
async fn read_image_reaches_the_provider_after_a_restart() {
    let replies = vec![reads(), says("I see a pixel."), says("Still there.")];
    let (server, env) = env(replies, "\"eyes\"").await;
    let daemon = env.daemon().await;
    let asked = env.run(&["ask", "look at shot.png"]).await;
    assert!(
        asked.stderr.contains("\n  [image/png, 69 bytes]\n"),
        "{asked:?}"
    );
    assert_eq!(asked.ok(), "I see a pixel.\n");
    let sent = server.requests().await;
    let image = json!({
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": BASE64},
    });
    let first = shown(&sent[1]);
    assert_eq!(first[1], image);
    let text = first[0]["text"].as_str().unwrap();
    assert!(
        text.ends_with("/shot.png: image/png, 69 bytes, 1 x 1 pixels"),
        "{text}"
    );

    daemon.kill().await;
    // The history contains the image, not the file.
    fs::remove_file(env.work.join("shot.png")).unwrap();
    let _daemon = env.daemon().await;
    assert_eq!(env.run(&["ask", "and now?"]).await.ok(), "Still there.\n");
    assert_eq!(shown(&server.requests().await[2]), first);
}

/// The last user message of a request, without cache marks, which move.
fn asked(body: &Value) -> Value {
    let messages = body["messages"].as_array().unwrap();
    let mut content = messages.last().unwrap()["content"].clone();
    let blocks = content.as_array_mut().unwrap();
    for block in &mut *blocks {
        block.as_object_mut().unwrap().remove("cache_control");
    }
    // The daemon's notes come before it.
    blocks.retain(|block| !block.to_string().contains("<environment>"));
    content
}

fn picture() -> Value {
    json!({
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": BASE64},
    })
}

#[tokio::test]
async fn attached_image_reaches_the_provider_and_stays() {
    let replies = vec![says("A pixel."), says("The same."), says("I know.")];
    let (server, env) = env(replies, "\"eyes\"").await;
    let daemon = env.daemon().await;
    let answer = env
        .run(&["ask", "--image", "shot.png", "what is this?"])
        .await;
    assert_eq!(answer.ok(), "A pixel.\n");
    let want = json!([picture(), {"type": "text", "text": "what is this?"}]);
    assert_eq!(asked(&server.requests().await[0]), want);
    let history = entries(&env, "crab", "user").await;
    assert_eq!(history[0].images[0].data, PIXEL);
    let shown = env.run(&["history"]).await.ok();
    assert!(
        shown.contains("what is this?\n    [image/png, 69 bytes]\n"),
        "{shown}"
    );

    daemon.kill().await;
    let _daemon = env.daemon().await;
    // Images stay in the history; a summary has none.
    env.run(&["ask", "and now?"]).await.ok();
    let messages = server.requests().await[1]["messages"].clone();
    assert_eq!(messages[0]["content"][0], picture());
    env.run(&["compact"]).await.ok();
    let summarised = server.requests().await[2].to_string();
    assert!(!summarised.contains(BASE64), "{summarised}");
    assert!(
        summarised.contains("what is this?\\n[image/png, 69 bytes]"),
        "{summarised}"
    );
    let archive = env.run(&["archives", "show", "1"]).await.ok();
    assert!(archive.contains("[image/png, 69 bytes]"), "{archive}");
}

#[tokio::test]
async fn image_for_a_blind_model_is_reported() {
    let model = "{ name = \"eyes\", images = false }";
    let (server, env) = env(vec![says("I read of it.")], model).await;
    let _daemon = env.daemon().await;
    let ask = ["ask", "what is this?", "--image", "shot.png"];
    let answer = env.run(&ask).await;
    let told = "the model eyes takes no images: it gets a description instead";
    assert!(answer.stderr.contains(told), "{answer:?}");
    answer.ok();
    let content = asked(&server.requests().await[0]).to_string();
    assert!(!content.contains(BASE64), "{content}");
}

#[tokio::test]
async fn invalid_images_are_refused_before_sending() {
    let (server, env) = env(vec![], "\"eyes\"").await;
    let _daemon = env.daemon().await;
    fs::write(env.work.join("words.png"), "words").unwrap();
    let mut large = PIXEL.to_vec();
    large.resize(4 << 20, 0);
    fs::write(env.work.join("large.png"), large).unwrap();
    fs::write(env.work.join("torn.png"), &PIXEL[..40]).unwrap();
    for (name, code, why) in [
        ("words.png", 2, "not a PNG, JPEG, GIF or WebP image"),
        ("large.png", 2, "3840 KB"),
        ("none.png", 2, "none.png"),
        ("torn.png", 1, "cut off or damaged"),
    ] {
        let answer = env.run(&["ask", "look", "--image", name]).await;
        assert_eq!(answer.code, Some(code), "{answer:?}");
        assert!(answer.stderr.contains(why), "{answer:?}");
    }
    assert!(server.requests().await.is_empty());
    assert!(env.logs().is_empty(), "no conversation begins");
}

#[tokio::test]
async fn chat_attaches_images_by_path_and_clipboard() {
    if !has_tools("chat_attaches_images_by_path_and_clipboard", &["tmux"]) {
        return;
    }
    let replies = vec![says("A pixel."), says("The same pixel.")];
    let (server, mut env) = env(replies, "\"eyes\"").await;
    env.script("wl-paste", "#!/bin/sh\ncat \"$SHOTS/shot.png\"\n");
    let work = env.work.display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    env.set("PATH", &format!("{work}:{path}"));
    env.set("SHOTS", &work);
    env.set("WAYLAND_DISPLAY", "none");
    let _daemon = env.daemon().await;
    let terminal = Tmux::sized(&env, "\"$CRABTALK\"", 80, 24);
    terminal.shows("type a message", 1).await;
    terminal.types("what is in @shot.png?");
    terminal.shows("A pixel.", 1).await;
    let screen = terminal
        .shows("attached shot.png [image/png, 69 bytes]", 1)
        .await;
    assert!(
        screen.contains("\u{203a} what is in @shot.png?"),
        "{screen}"
    );
    terminal.key("C-v");
    terminal.shows("crabtalk-clipboard-", 1).await;
    terminal.types("and here?");
    terminal.shows("The same pixel.", 1).await;
    let sent = server.requests().await;
    let want = json!([picture(), {"type": "text", "text": "what is in @shot.png?"}]);
    assert_eq!(asked(&sent[0]), want);
    assert_eq!(asked(&sent[1])[0], picture());
}
