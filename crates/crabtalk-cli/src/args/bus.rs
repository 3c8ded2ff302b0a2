//! Arguments of `subscriptions` and `publish`.

use clap::{Args, Subcommand};

#[derive(Debug, Default, Subcommand)]
pub(crate) enum Subscriptions {
    /// List subscriptions with the results of their events.
    #[default]
    List,
    /// Run an agent on events from a source.
    Add {
        /// Source of the events; `*` and `?` are wildcards, as in `build:*`.
        source: String,
        /// Run on the next event only.
        #[arg(long)]
        once: bool,
        /// Text before the payload.
        #[arg(
            long,
            value_name = "TEXT",
            default_value = "",
            hide_default_value = true
        )]
        prompt: String,
    },
    /// Remove a subscription; active runs continue.
    Rm {
        /// Number of the subscription.
        id: u64,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Source of the event, without spaces, such as `build:failed`.
    pub(crate) source: String,
    /// Text of the event; standard input is appended.
    #[arg(trailing_var_arg = true)]
    pub(crate) payload: Vec<String>,
    /// Do not read standard input.
    #[arg(long)]
    pub(crate) no_stdin: bool,
}
