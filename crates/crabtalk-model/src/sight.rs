//! Images in a request, for models with and without image input.
//! Invariant: each omitted image is replaced by a note.

use crate::config::{Kind, ModelConfig};
use crate::known;
use crabtalk_domain::model::Request;
use crabtalk_domain::{Image, ImageType, Message};
use std::borrow::Cow;

/// Whether a model accepts images: by configuration, else by the built-in table, else by
/// its provider's kind. A wrong yes makes the provider refuse the whole
/// conversation; a wrong no only hides an image.
pub(crate) fn takes_images(kind: Kind, model: &ModelConfig) -> bool {
    let usual = match kind {
        Kind::Anthropic | Kind::Google => true,
        // These may serve any model.
        Kind::OpenAi | Kind::Azure | Kind::Ollama | Kind::Bedrock => false,
        Kind::Offline => return false,
    };
    model
        .images
        .or_else(|| known::images(&model.id))
        .unwrap_or(usual)
}

/// Adapts requests to one model's image input.
pub(crate) struct Sight<'a> {
    kind: Kind,
    /// The name of a model without image input, for the notes.
    blind: Option<&'a str>,
}

impl<'a> Sight<'a> {
    pub(crate) fn new(kind: Kind, model: &'a ModelConfig) -> Self {
        let blind = (!takes_images(kind, model)).then_some(model.name.as_str());
        Self { kind, blind }
    }

    /// The message with its images, or with notes instead.
    pub(crate) fn of<'m>(&self, message: &'m Message) -> Cow<'m, Message> {
        if message
            .images
            .iter()
            .all(|image| self.note(image).is_none())
        {
            return Cow::Borrowed(message);
        }
        Cow::Owned(message.with_notes(|image| self.note(image)))
    }

    /// Whether the request sends any image.
    pub(crate) fn shows_images(&self, request: &Request) -> bool {
        let mut images = request.messages().flat_map(|message| &message.images);
        images.any(|image| self.note(image).is_none())
    }

    /// The note that replaces an image.
    fn note(&self, image: &Image) -> Option<String> {
        let kind = image.media_type();
        if let Some(name) = self.blind {
            Some(image.note_why(&format!("the model {name} takes no images")))
        } else if self.kind == Kind::Google && kind == ImageType::Gif {
            Some(image.note_why(&format!("the provider takes no {kind}; convert it to PNG")))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vision_is_configured_or_known() {
        for (kind, id, configured, want) in [
            (Kind::OpenAi, "gpt-5", None, true),
            (Kind::OpenAi, "gpt-5", Some(false), false),
            (Kind::OpenAi, "gpt-3.5-turbo", None, false),
            (Kind::OpenAi, "other/model", None, false),
            (Kind::OpenAi, "other/model", Some(true), true),
            (Kind::OpenAi, "Qwen/Qwen2.5-VL-7B-Instruct", None, true),
            (Kind::Ollama, "llama3.2:3b", None, false),
            (Kind::Ollama, "llava:13b", None, true),
            (Kind::Ollama, "gemma3:1b", None, false),
            (Kind::Ollama, "gemma3:27b", None, true),
            (Kind::Azure, "my-deployment", None, false),
            (Kind::Azure, "gpt-4o", None, true),
            (Kind::Anthropic, "claude-of-tomorrow", None, true),
            (Kind::Anthropic, "other-model", None, true),
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
