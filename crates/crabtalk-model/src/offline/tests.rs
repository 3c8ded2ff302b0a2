use super::*;
use crate::config::{Kind, ModelConfig};
use crabtalk_domain::model::Response;
use crabtalk_domain::tool::ToolSpec;
use crabtalk_domain::{Image, ImageType, Permission};
use std::future::poll_fn;
use std::sync::Arc;
use tokio::time::Instant;

fn request(messages: Vec<Message>) -> Request {
    let mut request = Request::new(
        "sys",
        messages.into_iter().map(Arc::new).collect::<Vec<_>>(),
    );
    let spec = ToolSpec {
        name: "bash".into(),
        description: String::new(),
        parameters: serde_json::json!({}).into(),
        default_permission: Permission::Ask,
    };
    request.tools = Arc::new(vec![Arc::new(spec)]);
    request
}

async fn play(request: &Request) -> (Response, Vec<Chunk>) {
    let model = ModelConfig::new("offline");
    let sight = Sight::new(Kind::Offline, &model);
    let mut offline = Offline::answer(request, &sight);
    let (mut response, mut all) = (Response::default(), Vec::new());
    while let Some(chunk) = poll_fn(|cx| offline.poll_chunk(cx)).await {
        let chunk = chunk.expect("it never fails");
        all.push(chunk.clone());
        response.push(chunk);
    }
    (response, all)
}

async fn said(text: &str) -> Response {
    play(&request(vec![Message::user(text)])).await.0
}

#[tokio::test]
async fn message_is_repeated_with_an_introduction() {
    let mut guest = Message::assistant("hi");
    guest.agent = "ada".into();
    let request = request(vec![Message::user("a"), guest, Message::user("hello crab")]);
    let (answer, chunks) = play(&request).await;
    for part in [
        "demonstration",
        "hello crab",
        "3 messages",
        "1 tool (bash)",
        "1 guest (ada)",
    ] {
        assert!(answer.content.contains(part), "{part}: {}", answer.content);
    }
    assert_eq!(answer.stop, Some(StopReason::Done));
    assert!(answer.usage.is_some_and(|usage| usage.prompt_tokens > 0));
    assert!(chunks.len() > 10, "word by word");
    assert_eq!(play(&request).await.1, chunks, "deterministic");
}

#[tokio::test]
async fn tool_commands_are_called_and_reported() {
    let answer = said("/tool bash {\"command\":\n \"ls\"}").await;
    assert_eq!(answer.tool_calls.len(), 1);
    assert_eq!(answer.tool_calls[0].name, "bash");
    assert_eq!(answer.tool_calls[0].arguments, "{\"command\":\n \"ls\"}");
    assert_eq!(
        (answer.content.as_str(), answer.stop),
        ("", Some(StopReason::ToolCalls))
    );

    let mut calling = Message::assistant("");
    calling.tool_calls = answer.tool_calls.clone();
    let result = Message::tool(&answer.tool_calls[0].id, "a.txt", false);
    let mut after = request(vec![Message::user("/tool bash {}"), calling, result]);
    let (report, _) = play(&after).await;
    assert_eq!(report.content, "bash answered:\na.txt");
    let image = Image::new(ImageType::Png, &[0; 34_000]).expect("small");
    let mut history = after.history.to_vec();
    let result = Arc::make_mut(history.last_mut().expect("the result"));
    result.images = vec![image];
    after.history = history.into();
    let (report, _) = play(&after).await;
    let note = "[image/png, 34 KB, not shown: the model offline takes no images]";
    assert_eq!(report.content, format!("bash answered:\na.txt\n{note}"));
    assert!(report.tool_calls.is_empty());
}

#[tokio::test]
async fn several_calls_in_one_message_are_made_at_once() {
    let answer = said("/tool bash {\"command\":\"a\"}\n/tool edit\n/ask Which one?").await;
    let names: Vec<_> = answer
        .tool_calls
        .iter()
        .map(|call| call.name.as_str())
        .collect();
    assert_eq!(names, ["bash", "edit", "ask_user"]);
    assert!(
        answer.content.contains("not offered a tool \"edit\""),
        "{}",
        answer.content
    );
    let ids: BTreeSet<_> = answer.tool_calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), 3);
    let ask: serde_json::Value =
        serde_json::from_str(&answer.tool_calls[2].arguments).expect("json");
    assert_eq!(ask["questions"][0]["question"], "Which one?");
}

#[tokio::test]
async fn bad_arguments_are_explained_and_unknown_commands_repeated() {
    let answer = said("/tool bash {oops").await;
    assert!(answer.tool_calls.is_empty() && answer.content.contains("not JSON"));
    assert!(said("/tool").await.content.contains("needs the name"));
    assert!(said("/dance now").await.content.contains("/dance now"));
    assert!(said("/slow fast").await.content.contains("/slow fast"));
}

#[tokio::test]
async fn think_command_streams_thinking() {
    let answer = said("/think it over\nand then this").await;
    assert_eq!(answer.thinking[0].text, "it over");
    assert!(answer.content.contains("and then this"));
    assert_eq!(said("/think it over").await.content, "I thought: it over");
}

#[tokio::test(start_paused = true)]
async fn slow_pauses_between_words() {
    let begin = Instant::now();
    let (answer, chunks) = play(&request(vec![Message::user("/slow 50 one two")])).await;
    let words = chunks
        .iter()
        .filter(|chunk| matches!(chunk, Chunk::Text(_)))
        .count() as u128;
    assert!(answer.content.contains("You told me: one two"));
    assert_eq!(begin.elapsed().as_millis() / 50, words);
}

#[tokio::test]
async fn compaction_request_gets_first_sentences() {
    let long = "The build fails. ".repeat(200);
    let mut request = request(vec![
        Message::user(long.clone()),
        Message::assistant("I fixed v1.2 of it! And more."),
        Message::user("/tool bash {}"),
    ]);
    request.closing = Some(Arc::new(Message::user("Summarise the conversation.")));
    let (answer, _) = play(&request).await;
    assert_eq!(
        answer.content,
        "3 messages about: The build fails.\n- user: The build fails.\n\
         - assistant: I fixed v1.2 of it!\n- user: /tool bash {}"
    );
    assert!(answer.tool_calls.is_empty());
}
