//! Google's Gemini, by `streamGenerateContent`.

mod decode;
mod encode;

pub(crate) use decode::Decoder;
pub(crate) use encode::body;

/// The version in a Gemini name, without the dot: `gemini-2.5-pro` is 25.
/// `None` for aliases such as `gemini-flash-latest` and for other models.
fn version(model_id: &str) -> Option<u32> {
    let rest = crate::known::bare(model_id).strip_prefix("gemini-")?;
    let number = rest.split('-').next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Some(major * 10 + minor.min(9))
}

/// Whether the model belongs to the Gemini family.
fn is_gemini(model_id: &str) -> bool {
    crate::known::bare(model_id).starts_with("gemini-")
}

/// Whether the model can show its thoughts; older models refuse the option.
fn thinks(model_id: &str) -> bool {
    is_gemini(model_id) && version(model_id).is_none_or(|version| version >= 25)
}

/// Whether the model refuses calls in the history without signatures.
fn wants_proofs(model_id: &str) -> bool {
    is_gemini(model_id) && version(model_id).is_none_or(|version| version >= 30)
}

/// Whether results may contain images; older models refuse that and get them
/// behind the result.
fn nests_images(model_id: &str) -> bool {
    version(model_id).is_some_and(|version| version >= 30)
}

#[cfg(test)]
mod tests;
