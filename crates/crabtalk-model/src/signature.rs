//! Whose proof of reasoning a signature is, written into it.
//! Invariant: a provider gets only its own proofs back; it would
//! refuse the whole conversation for a foreign one.

/// Begins the data of a redacted block of Anthropic's.
const REDACTED: &str = "redacted_thinking:";
/// Begins a proof of Gemini's that belongs to a call, whose number follows.
const GOOGLE_CALL: &str = "gemini_call:";
/// Begins a proof of Gemini's that belongs to the text.
const GOOGLE_TEXT: &str = "gemini_text:";
/// Begins a redacted block as Bedrock encodes it.
const BEDROCK_REDACTED: &str = "bedrock_redacted:";

/// A signature, told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signature<'a> {
    /// Of a block of Claude's; the same wherever Claude runs.
    Claude(&'a str),
    /// A block that Anthropic does not show.
    Redacted(&'a str),
    /// Gemini's, to go back with this call of the message.
    GoogleCall(u32, &'a str),
    /// Gemini's, to go back with the text.
    GoogleText(&'a str),
    /// A block that Bedrock does not show.
    BedrockRedacted(&'a str),
    /// No proof at all.
    Missing,
}

impl<'a> Signature<'a> {
    /// Reads what [`Signature::write`] wrote.
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

    /// As a history keeps it.
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
