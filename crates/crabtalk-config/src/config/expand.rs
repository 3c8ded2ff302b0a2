//! `${ENV}` in values of the configuration (MODEL-2).

use crate::{Env, Error};

/// An unset variable in a value, which makes the value's owner unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingVariable {
    /// `provider.NAME` or `mcp.NAME`.
    pub owner: String,
    /// The key whose value contains the variable.
    pub key: String,
    /// The name of the variable.
    pub variable: String,
}

impl MissingVariable {
    /// Creates the error about it.
    pub fn to_error(&self) -> Error {
        Error::MissingVariable {
            owner: self.owner.clone(),
            key: self.key.clone(),
            variable: self.variable.clone(),
        }
    }
}

/// Replaces `${NAME}` by the variable's value; `$${` means `${`. The error is the name of an
/// unset or empty variable.
pub(super) fn expand(text: &str, env: &Env<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let escaped = rest[..at].ends_with('$');
        let Some(end) = rest[at..].find('}').filter(|_| !escaped) else {
            out.push_str(&rest[..at - usize::from(escaped)]);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        };
        let name = &rest[at + 2..at + end];
        out.push_str(&rest[..at]);
        if is_variable(name) {
            let value = env(name).and_then(|value| value.into_string().ok());
            out.push_str(
                &value
                    .filter(|v| !v.is_empty())
                    .ok_or_else(|| name.to_owned())?,
            );
        } else {
            out.push_str(&rest[at..=at + end]);
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn variables_are_replaced() {
        let env = |name: &str| -> Option<OsString> {
            match name {
                "A" => Some("1".into()),
                "EMPTY" => Some("".into()),
                _ => None,
            }
        };
        for (text, want) in [
            ("plain", Ok("plain")),
            ("x${A}y${A}", Ok("x1y1")),
            ("$A ${} ${a b} ${", Ok("$A ${} ${a b} ${")),
            ("$${A} ${A}", Ok("${A} 1")),
            ("${B}", Err("B")),
            ("${EMPTY}", Err("EMPTY")),
        ] {
            let want = want.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(expand(text, &env), want, "{text}");
        }
    }
}
