//! The kinds that come with this crate.

/// Their names and data.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("claude", include_str!("claude.toml")),
    ("codex", include_str!("codex.toml")),
    ("crabtalk", include_str!("crabtalk.toml")),
    ("gemini", include_str!("gemini.toml")),
    ("pi", include_str!("pi.toml")),
];
