//! The shapes of an answer, as lenient as the servers are various.

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// One event, or a whole answer where the server did not stream.
#[derive(serde::Deserialize)]
pub(super) struct Event<'a> {
    #[serde(default)]
    pub(super) choices: First<Choice<'a>>,
    pub(super) usage: Option<Usage>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default, borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// What answers have that are not streamed.
    #[serde(default, borrow)]
    pub(super) message: Option<Delta<'a>>,
    #[serde(default)]
    pub(super) finish_reason: Text,
    /// Where some servers put the figures.
    pub(super) usage: Option<Usage>,
}

#[derive(serde::Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(default)]
    pub(super) content: Text,
    #[serde(default)]
    pub(super) reasoning_content: Text,
    #[serde(default)]
    pub(super) reasoning: Text,
    #[serde(default)]
    pub(super) refusal: Text,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(serde::Deserialize)]
pub(super) struct Call<'a> {
    pub(super) index: Option<u32>,
    #[serde(default)]
    pub(super) id: Text,
    #[serde(default, borrow)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(serde::Deserialize)]
pub(super) struct Function<'a> {
    #[serde(default)]
    pub(super) name: Text,
    /// A string as it should be, or an object.
    #[serde(default, borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    #[serde(default)]
    prompt_cache_hit_tokens: Count,
    #[serde(default)]
    prompt_cache_miss_tokens: Count,
}

#[derive(serde::Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Count,
}

#[derive(serde::Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl Usage {
    pub(super) fn into_domain(self) -> crabtalk_domain::Usage {
        let prompt_tokens = self.prompt_tokens.0.unwrap_or(0);
        let cached = self
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens.0);
        let hit = cached.or(self.prompt_cache_hit_tokens.0);
        let miss = self
            .prompt_cache_miss_tokens
            .0
            .or_else(|| hit.map(|hit| prompt_tokens.saturating_sub(hit)));
        crabtalk_domain::Usage {
            prompt_tokens,
            completion_tokens: self.completion_tokens.0.unwrap_or(0),
            cache_hit_tokens: hit,
            cache_miss_tokens: miss,
            reasoning_tokens: self
                .completion_tokens_details
                .and_then(|d| d.reasoning_tokens.0),
        }
    }
}

/// Text as a string, a list of parts, or nothing; always one allocation.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a list of text parts, or null")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.to_owned()))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Text, E> {
        Ok(Text(text))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Text, E> {
        Ok(Text(number.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut whole = String::new();
        while let Some(Text(part)) = parts.next_element()? {
            whole.push_str(&part);
        }
        Ok(Text(whole))
    }

    /// The `text` of a part.
    fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Text, A::Error> {
        let mut found = Text::default();
        while let Some(Text(key)) = part.next_key()? {
            if key == "text" {
                found = part.next_value()?;
            } else {
                part.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A count that some servers write as a float, or as null.
#[derive(Default)]
struct Count(Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;
        impl Visitor<'_> for CountVisitor {
            type Value = Count;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count or null")
            }
            fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
                Ok(Count(Some(count)))
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(count).ok()))
            }
            fn visit_f64<E: de::Error>(self, count: f64) -> Result<Count, E> {
                // Saturates; an invalid count is 0.
                Ok(Count(Some(count as u64)))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Count, E> {
                Ok(Count(None))
            }
        }
        deserializer.deserialize_any(CountVisitor)
    }
}

/// The first element of a list; a request asks for one choice.
pub(super) struct First<T>(pub(super) Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FirstVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
            type Value = First<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list or null")
            }
            fn visit_unit<E: de::Error>(self) -> Result<First<T>, E> {
                Ok(First(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First<T>, A::Error> {
                let first = list.next_element()?;
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_any(FirstVisitor(std::marker::PhantomData))
    }
}
