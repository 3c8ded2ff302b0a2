//! What a model sees of the images in a request.
//! Invariants: what is not shown is told in words; consecutive requests of a
//! conversation show the same, but when there are too many images, where the
//! older half leaves at once, so that provider caches miss seldom.

use crate::config::{Kind, ModelConfig};
use crate::known;
use crabtalk_domain::model::Request;
use crabtalk_domain::{Image, ImageType, Message};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Images of a request: with more some providers refuse it, others refuse
/// large images.
const MAX_IMAGES: usize = 20;
/// Base64 of a request's images together; the strictest provider takes 20 MB
/// with everything else.
const MAX_BYTES: usize = 15 << 20;

/// Why an image of a long conversation is gone.
const TOO_OLD: &str = "newer ones have taken its place; get it again if it is needed";

/// Whether a model takes images: as configured, else as is known of it, else
/// as is usual for its provider's kind. An image too many costs the whole
/// conversation its answer, one too few a look.
pub(crate) fn takes_images(kind: Kind, model: &ModelConfig) -> bool {
    let usual = match kind {
        Kind::Anthropic | Kind::Google => true,
        // Anything may be behind these.
        Kind::OpenAi | Kind::Azure | Kind::Ollama | Kind::Bedrock => false,
        Kind::Offline => return false,
    };
    model
        .images
        .or_else(|| known::images(&model.id))
        .unwrap_or(usual)
}

/// One model's view of one request.
pub(crate) struct Sight<'a> {
    kind: Kind,
    /// What to call the model; `None` if it sees.
    blind: Option<&'a str>,
    /// Messages before this one are too old to show their images.
    from: usize,
}

impl<'a> Sight<'a> {
    pub(crate) fn new(kind: Kind, model: &'a ModelConfig, request: &Request) -> Self {
        let blind = (!takes_images(kind, model)).then_some(model.name.as_str());
        Self {
            kind,
            blind,
            from: first_shown(request),
        }
    }

    /// What makes one sight differ from another.
    pub(crate) fn form(&self) -> (usize, u64) {
        let mut hash = DefaultHasher::new();
        self.blind.hash(&mut hash);
        (self.from, hash.finish())
    }

    /// A message at its place in the request, if the model does not see it as
    /// it is.
    pub(crate) fn of(&self, at: usize, message: &Message) -> Option<Message> {
        let all_seen = message
            .images
            .iter()
            .all(|image| self.note(at, image).is_none());
        (!all_seen).then(|| message.with_notes(|image| self.note(at, image)))
    }

    /// What stands for an image that is not seen.
    fn note(&self, at: usize, image: &Image) -> Option<String> {
        let kind = image.media_type();
        if let Some(name) = self.blind {
            Some(image.note_why(&format!("the model {name} takes no images")))
        } else if self.kind == Kind::Google && kind == ImageType::Gif {
            Some(image.note_why(&format!("the provider takes no {kind}; convert it to PNG")))
        } else if at < self.from {
            Some(image.note_why(TOO_OLD))
        } else {
            None
        }
    }
}

/// The place of the first message whose images are shown. Follows from what
/// stands before alone, so that every later request finds the same.
fn first_shown(request: &Request) -> usize {
    if !request.history.has_images() {
        return 0;
    }
    let mut shown: VecDeque<(usize, usize, usize)> = VecDeque::new();
    let (mut count, mut bytes, mut from, mut step) = (0, 0, 0, 0);
    for (at, message) in request.messages().enumerate() {
        if !message.tool_calls.is_empty() {
            step = at;
        }
        if message.images.is_empty() {
            continue;
        }
        let size = message.images.iter().map(|i| i.base64().len()).sum();
        shown.push_back((at, message.images.len(), size));
        count += message.images.len();
        bytes += size;
        if count <= MAX_IMAGES && bytes <= MAX_BYTES {
            continue;
        }
        while let Some((oldest, images, size)) = shown.front().copied() {
            let too_many = count > MAX_IMAGES || bytes > MAX_BYTES;
            let over_half = count > MAX_IMAGES / 2 || bytes > MAX_BYTES / 2;
            // Images of the running step were never seen: they stay if they can.
            if !(too_many || over_half && oldest < step) {
                break;
            }
            shown.pop_front();
            count -= images;
            bytes -= size;
            from = oldest + 1;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crabtalk_domain::ToolCall;
    use crabtalk_domain::tool::ToolOutput;
    use std::sync::Arc;

    /// A history of steps with a result each that shows so many images of so
    /// many bytes; answers how many messages are too old after each step.
    fn check(steps: &[(usize, usize)]) -> Vec<usize> {
        let (mut history, mut seen) = (Vec::new(), Vec::new());
        for (images, bytes) in steps {
            let image = Image::new(ImageType::Png, &vec![0; *bytes]).expect("small enough");
            let mut call = Message::assistant("");
            call.tool_calls.push(ToolCall::default());
            let output = ToolOutput::ok("").with_images(vec![image; *images]);
            history.extend([call, Message::result("", output)].map(Arc::new));
            seen.push(first_shown(&Request::new("", history.clone())));
        }
        seen
    }

    #[test]
    fn the_older_half_leaves_at_once() {
        let seen = check(&[(1, 9); 34]);
        // Result n stands at 2n + 1; the 21st pushes eleven out.
        assert_eq!(seen[19], 0);
        assert_eq!(seen[20], 2 * 11);
        assert_eq!(seen[30], 2 * 11);
        assert_eq!(seen[31], 2 * 22);
        let large = 3 << 20;
        assert_eq!(check(&[(1, large); 5]), [0, 0, 0, 6, 6]);
    }

    #[test]
    fn the_images_of_a_step_stay_as_far_as_they_can() {
        let image = Image::new(ImageType::Png, &vec![0; 3 << 20]).expect("small enough");
        let mut call = Message::assistant("");
        call.tool_calls = vec![ToolCall::default(); 4];
        let mut history = vec![Arc::new(call)];
        for _ in 0..4 {
            let output = ToolOutput::ok("").with_images(vec![image.clone()]);
            history.push(Arc::new(Message::result("", output)));
        }
        let request = Request::new("", history);
        assert_eq!(first_shown(&request), 2, "three of four fit");
    }

    #[test]
    fn who_sees_is_configured_or_known_or_usual() {
        for (kind, id, configured, want) in [
            (Kind::OpenAi, "gpt-5", None, true),
            (Kind::OpenAi, "gpt-5", Some(false), false),
            (Kind::OpenAi, "gpt-3.5-turbo", None, false),
            (Kind::OpenAi, "somebody/else", None, false),
            (Kind::OpenAi, "somebody/else", Some(true), true),
            (Kind::OpenAi, "Qwen/Qwen2.5-VL-7B-Instruct", None, true),
            (Kind::Ollama, "llama3.2:3b", None, false),
            (Kind::Ollama, "llava:13b", None, true),
            (Kind::Ollama, "gemma3:1b", None, false),
            (Kind::Ollama, "gemma3:27b", None, true),
            (Kind::Azure, "my-deployment", None, false),
            (Kind::Azure, "gpt-4o", None, true),
            (Kind::Anthropic, "claude-of-tomorrow", None, true),
            (Kind::Anthropic, "somebody-else", None, true),
            (Kind::Google, "gemini-of-tomorrow", None, true),
            (Kind::Google, "gemma-3-1b-it", None, false),
            (
                Kind::Bedrock,
                "eu.anthropic.claude-sonnet-4-5-v1:0",
                None,
                true,
            ),
            (Kind::Bedrock, "amazon.nova-micro-v1:0", None, false),
            (Kind::Bedrock, "meta.llama3-70b", None, false),
            (Kind::Offline, "offline", Some(true), false),
        ] {
            let mut model = ModelConfig::new(id);
            model.images = configured;
            assert_eq!(
                takes_images(kind, &model),
                want,
                "{kind} {id} {configured:?}"
            );
        }
    }
}
