//! Converts the result of a tool for a model.
//!
//! Invariants: everything that is dropped is named; long texts and other content go to a
//! bounded number of files; images stay images.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crabtalk_domain::tool::ToolOutput;
use crabtalk_domain::{BoxFuture, ConversationKey, Image, MAX_IMAGES};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use std::path::PathBuf;
use std::sync::Arc;

/// Longest text passed to a model, as for commands.
const MAX_TEXT: usize = 30_000;

/// Maximum number of files per result. A conversation stores some dozens, and one result must
/// not replace them all.
const MAX_KEPT: usize = 16;

/// Stores content that is not passed to a model whole.
pub trait Outputs: Send + Sync {
    /// Writes a file to the conversation's output folder, which its agent may read.
    fn keep<'a>(
        &'a self,
        key: &'a ConversationKey,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<PathBuf, String>>;
}

/// Converts the answer of a server.
pub(crate) async fn output(
    result: CallToolResult,
    key: &ConversationKey,
    outputs: &dyn Outputs,
) -> ToolOutput {
    let (mut parts, mut images) = (Vec::new(), Vec::new());
    let mut shelf = Shelf {
        key,
        outputs,
        kept: 0,
    };
    for block in result.content {
        match block {
            ContentBlock::Text(text) => parts.push(text.text),
            ContentBlock::Image(image) => {
                parts.extend(image_of(&image.mime_type, image.data, &mut images));
            }
            ContentBlock::Audio(audio) => {
                parts.push(shelf.kept("audio", &audio.mime_type, &audio.data).await);
            }
            ContentBlock::ResourceLink(link) => {
                let said = link.description.or(link.title).unwrap_or(link.name);
                parts.push(format!("[resource {}: {said}]", link.uri));
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    parts.push(format!("[resource {uri}]\n{text}"));
                }
                ResourceContents::BlobResourceContents {
                    uri,
                    mime_type,
                    blob,
                    ..
                } => {
                    let kind = mime_type.unwrap_or_else(|| "application/octet-stream".into());
                    let note = if kind.starts_with("image/") {
                        image_of(&kind, blob, &mut images)
                    } else {
                        Some(shelf.kept("file", &kind, &blob).await)
                    };
                    parts.push(format!("[resource {uri}]"));
                    parts.extend(note);
                }
                _ => parts.push("[a resource of an unknown kind]".into()),
            },
            _ => parts.push("[content of an unknown kind]".into()),
        }
    }
    let has_words = parts.iter().any(|part| !part.trim().is_empty());
    if let Some(value) = result.structured_content.filter(|_| !has_words) {
        parts.push(value.to_string());
    }
    let content = shortened(parts.join("\n"), key, outputs).await;
    ToolOutput {
        content,
        is_error: result.is_error.unwrap_or(false),
        images,
    }
}

/// Decodes an image, or returns the reason why it is left out.
fn image_of(kind: &str, data: String, images: &mut Vec<Image>) -> Option<String> {
    if images.len() >= MAX_IMAGES {
        return Some(format!("[an image, left out: the limit is {MAX_IMAGES}]"));
    }
    match Image::from_base64(kind, Arc::from(data)) {
        Ok(image) => {
            images.push(image);
            None
        }
        Err(note) => Some(note),
    }
}

/// The error of a failed call for a model, shortened if the server's text is long.
pub(crate) async fn failed(
    why: String,
    key: &ConversationKey,
    outputs: &dyn Outputs,
) -> ToolOutput {
    ToolOutput::error(shortened(why, key, outputs).await)
}

/// The folder for files of one result.
struct Shelf<'a> {
    key: &'a ConversationKey,
    outputs: &'a dyn Outputs,
    /// The number of files.
    kept: usize,
}

impl Shelf<'_> {
    /// Stores content that a model cannot read, and returns a note.
    async fn kept(&mut self, what: &str, kind: &str, data: &str) -> String {
        let kind: String = kind
            .chars()
            .filter(|c| c.is_ascii_graphic())
            .take(80)
            .collect();
        if self.kept >= MAX_KEPT {
            return format!("[{what} ({kind}), left out: the limit is {MAX_KEPT} files]");
        }
        let Ok(bytes) = BASE64_STANDARD.decode(data) else {
            return format!("[{what} ({kind}), left out: its data is damaged]");
        };
        self.kept += 1;
        let length = bytes.len();
        match self.outputs.keep(self.key, bytes).await {
            Ok(path) => format!("[{what} ({kind}, {length} bytes) is in {}]", path.display()),
            Err(why) => format!("[{what} ({kind}, {length} bytes) could not be saved: {why}]"),
        }
    }
}

/// The beginning and the end of a long text, with the path of the whole.
async fn shortened(text: String, key: &ConversationKey, outputs: &dyn Outputs) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let head = text.floor_char_boundary(MAX_TEXT / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_TEXT / 2);
    let whole = match outputs.keep(key, text.clone().into_bytes()).await {
        Ok(path) => format!("the whole output is in {}", path.display()),
        Err(why) => format!("the whole output could not be kept: {why}"),
    };
    format!(
        "{}\n[... {} of {} bytes are not shown; {whole}]\n{}",
        &text[..head],
        tail - head,
        text.len(),
        &text[tail..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Files(Mutex<Vec<Vec<u8>>>);

    impl Outputs for Files {
        fn keep<'a>(
            &'a self,
            _: &'a ConversationKey,
            bytes: Vec<u8>,
        ) -> BoxFuture<'a, Result<PathBuf, String>> {
            self.0.lock().expect("whole").push(bytes);
            Box::pin(std::future::ready(Ok("/outputs/1".into())))
        }
    }

    async fn made(result: serde_json::Value) -> (ToolOutput, Vec<Vec<u8>>) {
        let key = ConversationKey::new("crab", "user").expect("valid");
        let shelf = Files::default();
        let result = serde_json::from_value(result).expect("a result");
        let output = output(result, &key, &shelf).await;
        (output, shelf.0.into_inner().expect("whole"))
    }

    #[tokio::test]
    async fn every_kind_of_content_reaches_the_model() {
        let png = "iVBORw0KGgo=";
        let (output, kept) = made(json!({"isError": true, "content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "data": png, "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "a:1", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "a:2", "blob": "AAAA", "mimeType": "application/gzip"}},
            {"type": "resource", "resource": {"uri": "a:3", "blob": png, "mimeType": "image/png"}},
            {"type": "resource_link", "uri": "a:4", "name": "n", "description": "a link"},
        ]}))
        .await;
        assert!(output.is_error);
        assert_eq!((output.images.len(), kept.len()), (2, 2));
        let want = "hello\n[audio (audio/wav, 3 bytes) is in /outputs/1]\n[resource a:1]\ninside\n\
            [resource a:2]\n[file (application/gzip, 3 bytes) is in /outputs/1]\n[resource a:3]\n[resource a:4: a link]";
        assert_eq!(output.content, want);
    }

    #[tokio::test]
    async fn a_result_of_many_files_keeps_some_and_names_the_others() {
        let audio = json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
        let blob = json!({"uri": "a:1", "blob": "AAAA", "mimeType": "application/gzip"});
        let blob = json!({"type": "resource", "resource": blob});
        let content: Vec<_> = (0..100)
            .flat_map(|_| [audio.clone(), blob.clone()])
            .collect();
        let (output, kept) = made(json!({"content": content})).await;
        // All notes fit into the answer, so that no further file is needed.
        assert_eq!(kept.len(), MAX_KEPT);
        let left_out = output.content.matches("left out").count();
        assert_eq!(left_out, 200 - MAX_KEPT);
    }

    #[tokio::test]
    async fn an_error_is_shortened_as_a_text_is() {
        let key = ConversationKey::new("crab", "user").expect("valid");
        let files = Files::default();
        let output = failed("no ".repeat(MAX_TEXT), &key, &files).await;
        assert!(output.is_error && output.content.len() < MAX_TEXT + 200);
        assert_eq!(files.0.into_inner().expect("whole").len(), 1);
    }

    #[tokio::test]
    async fn a_structured_result_without_words_is_told() {
        let (output, _) = made(json!({"content": [], "structuredContent": {"n": 1}})).await;
        assert_eq!(output.content, r#"{"n":1}"#);
    }

    #[tokio::test]
    async fn a_long_text_is_shortened_and_kept_whole() {
        let text = "é".repeat(MAX_TEXT);
        let (output, kept) = made(json!({"content": [{"type": "text", "text": text}]})).await;
        assert!(output.content.len() < MAX_TEXT + 200);
        assert!(output.content.contains("the whole output is in /outputs/1"));
        assert_eq!(kept, [text.into_bytes()]);
    }
}
