//! Images of people and of tools, as each provider takes them.

use crate::dialect::{Dialect, with_tools};
use crate::requests::without_marks;
use crate::support::{Bench, calling};
use crate::{Case, Cell};
use crabtalk_domain::model::{ErrorKind, Request};
use crabtalk_domain::tool::ToolOutput;
use crabtalk_domain::{Image, ImageType, Message};
use crabtalk_testkit::scripted::Format;
use std::sync::Arc;

pub(crate) const CASES: [Case; 8] = [
    Case::new("an image in a user message", |d| Box::pin(of_person(d))),
    Case::new("an image in a tool result", |d| Box::pin(shown(d))),
    Case::new("images in results of parallel calls", |d| {
        Box::pin(parallel(d))
    }),
    Case::new("an image without tools", |d| Box::pin(without_tools(d))),
    Case::new("successive requests with images share their prefix", |d| {
        Box::pin(prefix(d))
    }),
    Case::new("a model without vision gets a text note", |d| {
        Box::pin(blind(d))
    }),
    Case::new("too many images: the oldest become text notes", |d| {
        Box::pin(too_many(d))
    }),
    Case::new("a refused image request names the remedy", |d| {
        Box::pin(refused(d))
    }),
];

fn image(kind: ImageType, bytes: &[u8]) -> Image {
    Image::new(kind, bytes).expect("small")
}

fn result(id: &str, text: &str, images: &[Image]) -> Message {
    Message::result(id, ToolOutput::ok(text).with_images(images.to_vec()))
}

fn look(images: &[Image]) -> Request {
    with_tools(vec![
        Message::user("look"),
        calling(&[("c1", "read", "{\"path\":\"a\"}")]),
        result("c1", "a.png", images),
    ])
}

/// Models of everybody that take images, or do not.
async fn bench(dialect: Dialect, replies: usize, takes: bool) -> Bench {
    let replies = (0..replies).map(|_| dialect.text(&["ok"]));
    dialect
        .bench_with(replies, |model| model.images = Some(takes))
        .await
}

/// Sends requests which the server has to find right, and gives their bodies.
async fn bodies(dialect: Dialect, takes: bool, requests: &[Request]) -> Vec<String> {
    let bench = bench(dialect, requests.len(), takes).await;
    for request in requests {
        bench.send(request).await.expect("a valid request");
    }
    let got = bench.server.requests();
    got.into_iter().map(|received| received.text).collect()
}

/// An image as the format has it.
fn part(dialect: Dialect, image: &Image) -> String {
    let (kind, data) = (image.media_type().as_str(), image.base64());
    let short = kind.trim_start_matches("image/");
    match dialect.format() {
        Format::OpenAi => format!(
            "{{\"image_url\":{{\"url\":\"data:{kind};base64,{data}\"}},\"type\":\"image_url\"}}"
        ),
        Format::Anthropic => format!(
            "{{\"source\":{{\"data\":\"{data}\",\"media_type\":\"{kind}\",\"type\":\"base64\"}},\"type\":\"image\"}}"
        ),
        Format::Google => {
            format!("{{\"inlineData\":{{\"data\":\"{data}\",\"mimeType\":\"{kind}\"}}}}")
        }
        Format::Bedrock => {
            format!("{{\"image\":{{\"format\":\"{short}\",\"source\":{{\"bytes\":\"{data}\"}}}}}}")
        }
    }
}

async fn shown(dialect: Dialect) -> Cell {
    let note = "[image/gif, 9 bytes, not shown: the provider takes no image/gif";
    let kinds = ImageType::ALL.map(|kind| image(kind, kind.as_str().as_bytes()));
    let asked = look(&kinds);
    let body = without_marks(&bodies(dialect, true, &[asked]).await[0]);
    let all = kinds.iter().filter(|image| {
        // It takes none of this kind, and says so.
        let seen = dialect != Dialect::Google || image.media_type() != ImageType::Gif;
        assert!(seen || body.contains(note), "{body}");
        seen
    });
    let all: Vec<String> = all.map(|image| part(dialect, image)).collect();
    let all = all.join(",");
    let whole = match dialect.format() {
        Format::OpenAi => format!(
            "{{\"content\":\"a.png\",\"role\":\"tool\",\"tool_call_id\":\"c1\"}},\
             {{\"content\":[{{\"text\":\"[images from the tool call c1]\",\"type\":\"text\"}},{all}],\"role\":\"user\"}}]}}"
        ),
        Format::Anthropic => format!(
            "{{\"content\":[{{\"text\":\"a.png\",\"type\":\"text\"}},{all}],\"tool_use_id\":\"c1\",\"type\":\"tool_result\"}}],\"role\":\"user\"}}]}}"
        ),
        Format::Google => format!(
            ",\"parts\":[{all}],\"response\":{{\"output\":\"a.png\\n{note}; convert it to PNG]\"}}}}}}],\"role\":\"user\"}}]}}"
        ),
        Format::Bedrock => format!(
            "{{\"toolResult\":{{\"content\":[{{\"text\":\"a.png\"}},{all}],\"toolUseId\":\"c1\"}}}}],\"role\":\"user\"}}]}}"
        ),
    };
    assert!(body.ends_with(&whole), "{whole}\n{body}");
    match dialect.format() {
        Format::OpenAi => Cell::Absent("in a message after the results"),
        Format::Anthropic | Format::Google | Format::Bedrock => Cell::Holds,
    }
}

async fn of_person(dialect: Dialect) -> Cell {
    let images = [
        image(ImageType::Png, b"one"),
        image(ImageType::Jpeg, b"two"),
    ];
    let asked = with_tools(vec![
        Message::user("what is this?").with_images(images.to_vec()),
        calling(&[("c1", "read", "{\"path\":\"a\"}")]),
        result("c1", "x", &[]),
        // Right behind a result, as after a run that was cut off.
        Message::user("and that?").with_images(images[..1].to_vec()),
    ]);
    let body = without_marks(&bodies(dialect, true, std::slice::from_ref(&asked)).await[0]);
    let [one, two] = images.each_ref().map(|image| part(dialect, image));
    let words = |text: &str| match dialect.format() {
        Format::OpenAi | Format::Anthropic => {
            format!("{{\"text\":\"{text}\",\"type\":\"text\"}}")
        }
        Format::Google | Format::Bedrock => format!("{{\"text\":\"{text}\"}}"),
    };
    let shown = |images: &str, text: &str| match dialect.format() {
        Format::OpenAi => format!("{},{images}", words(text)),
        Format::Anthropic | Format::Google | Format::Bedrock => {
            format!("{images},{}", words(text))
        }
    };
    let first = shown(&format!("{one},{two}"), "what is this?");
    let second = shown(&one, "and that?");
    assert!(body.contains(&first), "{first}\n{body}");
    assert!(body.contains(&second), "{second}\n{body}");
    let blind = &bodies(dialect, false, &[asked]).await[0];
    let note = "and that?\\n[image/png, 3 bytes, not shown: the model m takes no images]";
    assert!(blind.contains(note), "{blind}");
    Cell::Holds
}

async fn parallel(dialect: Dialect) -> Cell {
    let (one, two) = (
        image(ImageType::Png, b"one"),
        image(ImageType::Jpeg, b"two"),
    );
    let asked = with_tools(vec![
        Message::user("look"),
        calling(&[
            ("c1", "read", "{}"),
            ("c2", "bash", "{}"),
            ("c3", "read", "{}"),
        ]),
        result("c1", "first", std::slice::from_ref(&one)),
        result("c2", "words", &[]),
        result("c3", "", std::slice::from_ref(&two)),
        Message::user("steered"),
    ]);
    let body = &bodies(dialect, true, &[asked]).await[0];
    let at = |part: &str| body.find(part).unwrap_or_else(|| panic!("{part}: {body}"));
    let (one, two) = (at(&part(dialect, &one)), at(&part(dialect, &two)));
    let (first, words, steered) = (at("first"), at("words"), at("steered"));
    assert!(one < two && first < two && two < steered, "{body}");
    // Images are inside their result, or all behind the last one.
    assert_eq!(words < one, dialect.format() == Format::OpenAi, "{body}");
    Cell::Holds
}

async fn without_tools(dialect: Dialect) -> Cell {
    let image = image(ImageType::Webp, b"w");
    let mut asked = look(std::slice::from_ref(&image));
    asked.tools = Arc::default();
    asked.closing = Some(Arc::new(Message::user("and?")));
    let body = without_marks(&bodies(dialect, true, &[asked]).await[0]);
    assert!(body.contains(&part(dialect, &image)), "{body}");
    Cell::Holds
}

async fn prefix(dialect: Dialect) -> Cell {
    let image = image(ImageType::Png, b"the same");
    let first = look(std::slice::from_ref(&image));
    let mut second = first.clone();
    let mut history = second.history.to_vec();
    history.extend([Message::assistant("seen"), Message::user("and now?")].map(Arc::new));
    second.injected_at = history.len();
    second.history = history.into();
    // Copies are encoded again, as after a restart.
    let mut again = second.clone();
    let copies = again.history.iter().map(|m| Arc::new((**m).clone()));
    again.history = copies.collect::<Vec<_>>().into();
    let sent = bodies(dialect, true, &[first, second, again]).await;
    let part = part(dialect, &image);
    let (before, after) = (without_marks(&sent[0]), without_marks(&sent[1]));
    let end = before.find(&part).expect("it is sent") + part.len();
    assert!(after.starts_with(&before[..end]), "{before}\n{after}");
    assert_eq!(sent[1], sent[2]);
    Cell::Holds
}

async fn blind(dialect: Dialect) -> Cell {
    let image = image(ImageType::Png, &[7; 34_567]);
    let asked = look(std::slice::from_ref(&image));
    let seeing = bench(dialect, 1, true).await;
    seeing.send(&asked).await.expect("a valid request");
    // The same history, once shown, then to a model that takes none.
    let body = &bodies(dialect, false, std::slice::from_ref(&asked)).await[0];
    let note = "a.png\\n[image/png, 34 KB, not shown: the model m takes no images]";
    assert!(body.contains(note), "{body}");
    assert!(!body.contains(image.base64()), "{body}");
    let mut other = asked;
    other.model = "other".into();
    let body = &bodies(dialect, false, &[other]).await[0];
    assert!(body.contains("the model other takes no images"), "{body}");
    Cell::Holds
}

async fn refused(dialect: Dialect) -> Cell {
    let asked = look(&[image(ImageType::Png, b"broken")]);
    for takes in [true, false] {
        let refusal = dialect.refusal(400, "could not process image");
        let bench = dialect
            .bench_with([refusal], |model| model.images = Some(takes))
            .await;
        let error = bench.send(&asked).await.expect_err("refused");
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(error.message.contains("could not process"), "{error}");
        assert_eq!(error.message.contains("images = false"), takes, "{error}");
    }
    Cell::Holds
}

async fn too_many(dialect: Dialect) -> Cell {
    let mut history = vec![Message::user("look")];
    let mut sent = Vec::new();
    let bench = bench(dialect, 30, true).await;
    for step in 0..30 {
        let id = format!("c{step}");
        history.push(calling(&[(&id, "read", "{}")]));
        let image = image(ImageType::Png, id.as_bytes());
        history.push(result(&id, "x", std::slice::from_ref(&image)));
        // The server takes 20 images.
        let asked = with_tools(history.clone());
        bench.send(&asked).await.expect("a valid request");
        let body = bench.server.requests()[step].text.clone();
        assert!(body.contains(&part(dialect, &image)), "{body}");
        sent.push(body.matches("newer images replaced it").count());
    }
    assert_eq!((sent[19], sent[20], sent[29]), (0, 11, 11));
    Cell::Holds
}
