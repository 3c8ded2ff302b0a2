//! Whether commands run in the sandbox, as the configuration and agents say it.

/// Whether bash runs in the sandbox (GATE-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// `false`: outside.
    #[default]
    Off,
    /// `true`: in it, with what the machine has of it.
    On,
    /// `"strict"`: in it, and not at all where it has no namespaces.
    Strict,
}

impl serde::Serialize for SandboxMode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_bool(false),
            Self::On => serializer.serialize_bool(true),
            Self::Strict => serializer.serialize_str("strict"),
        }
    }
}
