//! Logs of every format that was ever written load (golden files).

use crate::support::*;
use crabtalk_domain::storage::*;
use crabtalk_domain::{Role, Thinking, ToolCall, Usage};
use std::path::Path;

fn golden(name: &str) -> Vec<u8> {
    std::fs::read(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/golden")
            .join(name),
    )
    .expect("the golden file")
}

#[tokio::test]
async fn a_log_of_0064_loads_unchanged_and_goes_on() {
    let home = Home::new();
    let bytes = golden("0064.jsonl");
    home.write("crab_tg-12345_1_old-title.jsonl", &bytes);
    let opened = home.loaded("crab", "tg:12345").await;
    assert_eq!(
        told(&opened.history),
        [
            "user: Summary of conversation so far...",
            "user: what were we talking about?",
            "assistant: let me see",
            "tool: {\"ok\":true}",
        ]
    );
    let call = ToolCall {
        id: "c1".into(),
        name: "read".into(),
        arguments: "{\"p\":1}".into(),
    };
    assert_eq!(opened.history[2].tool_calls, [call]);
    assert_eq!(opened.history[3].tool_call_id, "c1");
    assert_eq!(opened.meta.title, "old title");
    assert_eq!((opened.meta.uptime_secs, opened.archived_messages), (42, 2));
    assert_eq!((opened.last_run, opened.open_run.is_none()), (0, true));
    assert_eq!(
        home.read("crab_tg-12345_1_old-title.jsonl"),
        bytes,
        "reading changes nothing"
    );
    let archives = home
        .store
        .archives(&key("crab", "tg:12345"))
        .await
        .expect("lists");
    assert_eq!(archives.len(), 1);
    assert_eq!(archives[0].title, "Summary of conversation so far...");
    assert_eq!(
        (archives[0].archived_at.as_str(), archives[0].message_count),
        ("", 2)
    );

    let mut log = opened.log;
    append(
        &mut log,
        &[
            said("on"),
            compact("next", 0),
            Record::Meta(MetaRecord::default()),
        ],
    )
    .await;
    let archives = home
        .store
        .archives(&key("crab", "tg:12345"))
        .await
        .expect("lists");
    let counts: Vec<u64> = archives.iter().map(|a| a.message_count).collect();
    assert_eq!(counts, [2, 4]);
    let now = home.read("crab_tg-12345_1_old-title.jsonl");
    assert_eq!(&now[..bytes.len()], bytes, "append only");
}

#[tokio::test]
async fn a_log_of_0135_loads_with_titles_and_guests() {
    let home = Home::new();
    home.write("twin_user_1.jsonl", golden("0135.jsonl"));
    let opened = home.loaded("twin", "user").await;
    assert_eq!(
        told(&opened.history),
        [
            "user: Summary of pricing discussion...",
            "assistant: a guest's word"
        ]
    );
    assert_eq!(opened.history[1].agent, "crab");
    let archives = home
        .store
        .archives(&key("twin", "user"))
        .await
        .expect("lists");
    assert_eq!(archives[0].title, "Pricing analysis for solo dev tools.");
    assert_eq!(archives[0].archived_at, "2026-04-03T10:00:00Z");
}

#[tokio::test]
async fn the_present_format_holds_every_field() {
    let home = Home::new();
    home.write("crab_user_1.jsonl", golden("present.jsonl"));
    let opened = home.loaded("crab", "user").await;
    assert_eq!(opened.history.len(), 5);
    let answer = &opened.history[2];
    assert_eq!(
        answer.thinking,
        [Thinking {
            text: "hm".into(),
            signature: "s1g".into()
        }]
    );
    let usage = Usage {
        prompt_tokens: 10,
        completion_tokens: 3,
        ..Usage::default()
    };
    assert_eq!(
        answer.usage,
        Some(Usage {
            cache_hit_tokens: Some(8),
            ..usage
        })
    );
    assert_eq!(answer.at, "2026-11-02T08:00:01Z");
    assert!(opened.history[3].is_error);
    assert_eq!(
        opened.archived_messages, 1,
        "two before the marker, one of them kept"
    );
    assert_eq!(
        (opened.meta.title.as_str(), opened.meta.cwd.as_str()),
        ("Present", "/w")
    );
    assert_eq!((opened.meta.uptime_secs, opened.last_run), (9, 2));
    let requests = [("r1".to_owned(), 1), ("r2".to_owned(), 2)];
    assert_eq!(opened.requests, requests);
    assert_eq!(opened.last_end.map(|r| (r.id, r.code)), Some((2, 499)));
}

#[tokio::test]
async fn loading_accepts_byte_order_mark_and_crlf() {
    let home = Home::new();
    let text = String::from_utf8(golden("present.jsonl")).expect("utf-8");
    home.write(
        "crab_user_1.jsonl",
        format!("\u{feff}{}", text.replace('\n', "\r\n")),
    );
    let opened = home.loaded("crab", "user").await;
    assert_eq!(opened.history.len(), 5);
    opened.log.synced(Position(0)).await.expect("nothing to do");
    let mut log = opened.log;
    append(&mut log, &[user("more")]).await;
    assert_eq!(home.loaded("crab", "user").await.history.len(), 6);
    let page = home
        .store
        .page(&LogPart::Conversation(key("crab", "user")), None, 100)
        .await;
    assert_eq!(page.expect("reads").entries.len(), 7);
}

#[tokio::test]
async fn unknown_fields_lines_and_roles_are_skipped_and_kept() {
    let home = Home::new();
    let bytes = golden("unknown.jsonl");
    home.write("crab_user_1.jsonl", &bytes);
    let mut opened = home.loaded("crab", "user").await;
    assert_eq!(
        told(&opened.history),
        ["user: one", "assistant: two parts", "user: "]
    );
    assert_eq!(opened.history[1].thinking[0].text, "plain");
    append(&mut opened.log, &[user("x")]).await;
    let now = home.read("crab_user_1.jsonl");
    assert_eq!(&now[..bytes.len()], bytes);
    let page = home
        .store
        .page(&LogPart::Conversation(key("crab", "user")), None, 100)
        .await;
    assert_eq!(page.expect("reads").entries.len(), 4);
    assert_eq!(opened.history[0].role, Role::User);
}

#[tokio::test]
async fn what_is_written_is_what_store_1_says() {
    use crabtalk_domain::Message;
    use std::sync::Arc;
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let mut answer = Message::assistant("");
    answer.tool_calls = vec![ToolCall {
        id: "c1".into(),
        name: "bash".into(),
        arguments: "{}".into(),
    }];
    answer.thinking = vec![Thinking {
        text: "hm".into(),
        signature: "s".into(),
    }];
    answer.at = "now".into();
    answer.usage = Some(Usage {
        prompt_tokens: 1,
        completion_tokens: 2,
        ..Usage::default()
    });
    let mut guest = Message::assistant("g");
    guest.agent = "ada".into();
    append(
        &mut log,
        &[
            Record::Run(run(1, RunPhase::Start)),
            user("q"),
            Record::Message(Arc::new(answer)),
            Record::Message(Arc::new(Message::tool("c1", "no", true))),
            Record::Message(Arc::new(guest)),
            compact("s", 2),
        ],
    )
    .await;
    let log = String::from_utf8(home.read("crab_user_1.jsonl")).expect("utf-8");
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"agent":"crab","created_by":"user","created_at":"2026-11-01T00:00:00Z","title":"","uptime_secs":0}"#,
            r#"{"meta":{"title":"","cwd":"/work","uptime_secs":0},"prev":0,"messages":0}"#,
            r#"{"run":{"id":1,"event":"start","origin":"client:local","request_id":"req-1","at":"2026-11-01T00:00:01Z"},"prev":0,"messages":0}"#,
            r#"{"role":"user","content":"q"}"#,
            r#"{"role":"assistant","tool_calls":[{"id":"c1","name":"bash","arguments":"{}"}],"thinking":[{"text":"hm","signature":"s"}],"at":"now","usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
            r#"{"role":"tool","content":"no","tool_call_id":"c1","is_error":true}"#,
            r#"{"role":"assistant","content":"g","agent":"ada"}"#,
            r#"{"compact":"s","title":"s.","archived_at":"2026-11-02T00:00:00Z","keep":2,"prev":0,"messages":4}"#,
        ]
    );
}

#[tokio::test]
async fn images_are_kept_unchanged_and_bad_ones_are_reported() {
    use crabtalk_domain::tool::ToolOutput;
    use crabtalk_domain::{Image, ImageType, Message};
    use std::sync::Arc;
    let home = Home::new();
    let mut log = home.open("crab", "user").await.log;
    let image = Image::new(ImageType::Png, b"\x89PNG!").expect("small");
    let output = ToolOutput::ok("a.png").with_images(vec![image.clone()]);
    append(
        &mut log,
        &[Record::Message(Arc::new(Message::result("c1", output)))],
    )
    .await;
    let name = "crab_user_1.jsonl";
    let line = "{\"role\":\"tool\",\"content\":\"a.png\",\"tool_call_id\":\"c1\",\
                \"images\":[{\"media_type\":\"image/png\",\"data\":\"iVBORyE=\"}]}";
    let text = String::from_utf8(home.read(name)).expect("utf-8");
    assert_eq!(text.lines().last(), Some(line));

    drop(log);
    let opened = home.loaded("crab", "user").await;
    assert_eq!(opened.history[0].images, [image]);
    assert_eq!(opened.history[0].content, "a.png");

    // Others may have written what no provider takes.
    let head = text.lines().next().expect("line 1");
    let bad = "[{\"media_type\":\"image/tiff\",\"data\":\"AAAA\"},{\"data\":1},\
               {\"media_type\":\"image/png\",\"data\":\"\\\"}\"}]";
    let bad = format!("{{\"role\":\"tool\",\"content\":\"x\",\"images\":{bad}}}");
    let odd = "{\"role\":\"tool\",\"content\":\"y\",\"images\":\"many\"}";
    home.write(
        "crab_ada_1.jsonl",
        format!("{}\n{bad}\n{odd}\n", head.replace("user", "ada")),
    );
    let opened = home.loaded("crab", "ada").await;
    let told: Vec<&str> = opened.history[0].content.lines().collect();
    assert_eq!(
        told,
        [
            "x",
            "[an image of the unknown type \"image/tiff\", left out]",
            "[an image, left out: its data is damaged]",
            "[image/png, left out: its data is damaged]",
        ]
    );
    assert_eq!(opened.history[1].content, "y");
    assert!(opened.history.iter().all(|m| m.images.is_empty()));
}

#[tokio::test]
async fn invalid_run_number_does_not_change_the_next_one() {
    let home = Home::new();
    home.write(
        "crab_user_1.jsonl",
        "{\"agent\":\"crab\",\"created_by\":\"user\"}\n\
         {\"run\":{\"id\":1,\"event\":\"start\"}}\n\
         {\"role\":\"user\",\"content\":\"hi\"}\n\
         {\"run\":{\"id\":18446744073709551615,\"event\":\"start\"}}\n\
         {\"meta\":{\"last_run\":18446744073709551615,\"uptime_secs\":18446744073709551615}}\n\
         {\"run\":{\"id\":1,\"event\":\"end\"}}\n",
    );
    let opened = home.loaded("crab", "user").await;
    assert_eq!((opened.last_run, opened.open_run), (1, None));
}
