//! Reasoning signatures, tagged with their provider.
//! Invariant: a provider gets only its own signatures back; it would
//! refuse the whole conversation for a foreign one.

/// Prefix of a redacted block of Anthropic's.
const REDACTED: &str = "redacted_thinking:";
/// Prefix of a Gemini signature of a call, whose number follows.
const GOOGLE_CALL: &str = "gemini_call:";
/// Prefix of a Gemini signature of the text.
const GOOGLE_TEXT: &str = "gemini_text:";
/// Prefix of a redacted block in Bedrock's encoding.
const BEDROCK_REDACTED: &str = "bedrock_redacted:";

/// A parsed signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signature<'a> {
    /// Signature of a Claude thinking block, valid at all providers of Claude.
    Claude(&'a str),
    /// Redacted block of Anthropic's.
    Redacted(&'a str),
    /// Gemini's signature of this call of the message.
    GoogleCall(u32, &'a str),
    /// Gemini's signature of the text.
    GoogleText(&'a str),
    /// Redacted block of Bedrock's.
    BedrockRedacted(&'a str),
    /// No signature.
    Missing,
}

impl<'a> Signature<'a> {
    /// Parses the text of [`Signature::write`].
    pub(crate) fn read(text: &'a str) -> Self {
        if text.is_empty() {
            Self::Missing
        } else if let Some(data) = text.strip_prefix(REDACTED) {
            Self::Redacted(data)
        } else if let Some(data) = text.strip_prefix(BEDROCK_REDACTED) {
            Self::BedrockRedacted(data)
        } else if let Some(proof) = text.strip_prefix(GOOGLE_TEXT) {
            Self::GoogleText(proof)
        } else if let Some((number, proof)) = text
            .strip_prefix(GOOGLE_CALL)
            .and_then(|rest| rest.split_once(':'))
        {
            number
                .parse()
                .map_or(Self::Missing, |number| Self::GoogleCall(number, proof))
        } else {
            Self::Claude(text)
        }
    }

    /// Formats the signature for the history.
    pub(crate) fn write(self) -> String {
        match self {
            Self::Claude(text) => text.to_owned(),
            Self::Redacted(data) => format!("{REDACTED}{data}"),
            Self::GoogleCall(number, proof) => format!("{GOOGLE_CALL}{number}:{proof}"),
            Self::GoogleText(proof) => format!("{GOOGLE_TEXT}{proof}"),
            Self::BedrockRedacted(data) => format!("{BEDROCK_REDACTED}{data}"),
            Self::Missing => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_round_trip() {
        for signature in [
            Signature::Claude("EqQB+/=="),
            Signature::Redacted("data"),
            Signature::GoogleCall(3, "a:b=="),
            Signature::GoogleText("x"),
            Signature::BedrockRedacted("x"),
            Signature::Missing,
        ] {
            assert_eq!(Signature::read(&signature.write()), signature);
        }
        assert_eq!(Signature::read("gemini_call:x:y"), Signature::Missing);
    }
}
