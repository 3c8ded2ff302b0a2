//! `init`: creates a working configuration from detected providers (OPS-1).
//!
//! Invariants: with options or without a terminal no questions are asked; a configured
//! provider is replaced only with `--force`; the new configuration is tested with one
//! request, and is kept even if that fails.

use super::Context;
use crate::args::Init;
use crate::error::Error;
use crate::follow::Interrupts;
use crate::json;
use crate::terminal::Terminal;
use crabtalk_config::nearest;
use crabtalk_proto::{
    Client, FindProvidersMsg, FoundProvider, ListModelsMsg, ListProvidersMsg, ModelTest,
    SetConfigMsg, TestModelMsg,
};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// The kinds of `[provider.NAME]`, and whether they need a key.
const KINDS: [(&str, bool); 7] = [
    ("openai", true),
    ("anthropic", true),
    ("google", true),
    ("bedrock", true),
    ("azure", true),
    ("ollama", false),
    ("offline", false),
];

/// Maximum models shown of one provider.
const SHOWN_MODELS: usize = 12;

/// The chosen configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Choice {
    name: String,
    kind: String,
    base_url: String,
    key: Key,
    models: Vec<String>,
    model: String,
}

/// The source of the key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Key {
    #[default]
    None,
    /// A variable of the daemon's environment.
    Variable(String),
    /// A file that contains only the key.
    File(String),
    Typed(String),
}

pub(super) async fn run(context: &mut Context, args: Init) -> Result<(), Error> {
    let mut connection = context.connection().await?;
    let configured = connection.list_providers(ListProvidersMsg {}).await?;
    let found = connection.find_providers(FindProvidersMsg {}).await?;
    let text = std::fs::read_to_string(context.home.config_file()).unwrap_or_default();
    let is_configured =
        toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.get("provider").is_some());
    if is_configured && !args.force {
        let names: Vec<String> = configured.providers.into_iter().map(|p| p.name).collect();
        context.note(&format!(
            "crabtalk: a provider is configured already ({}); --force adds or replaces one",
            names.join(", ")
        ))?;
        return tried(context, "").await;
    }
    let choice = match Asker::of(context, &args) {
        None => from_options(&args, context.global.model.as_deref(), &found.providers)?,
        Some(mut asker) => asker.choose(&found.providers).await?,
    };
    write(context, &choice).await?;
    let models = connection.list_models(ListModelsMsg {}).await?;
    let is_known = models.models.iter().any(|model| model.name == choice.model);
    let model = if is_known { choice.model.as_str() } else { "" };
    if args.no_test {
        let said = format!("crabtalk: {} of {} is set", choice.model, choice.name);
        return context.done(
            json!({"provider": choice.name, "model": choice.model}),
            &said,
        );
    }
    tried(context, model).await
}

/// Sends a test request to the model and reports the result.
async fn tried(context: &mut Context, model: &str) -> Result<(), Error> {
    let request = TestModelMsg {
        model: model.to_owned(),
    };
    let test = context.call(request).await?;
    told(context, &test)
}

/// Shows the result of the test request.
pub(super) fn told(context: &mut Context, test: &ModelTest) -> Result<(), Error> {
    if context.global.json {
        context.console.screen.json(&json::of(test))?;
        return match test.ok {
            true => Ok(()),
            false => Err(Error::RunFailed),
        };
    }
    if !test.ok {
        return Err(Error::Failed(format!(
            "{} does not answer: {}; change it with `crabtalk config edit`, test it with `crabtalk models test`",
            test.model, test.error
        )));
    }
    let of = match test.provider.is_empty() {
        true => String::new(),
        false => format!(" of {}", test.provider),
    };
    let screen = &mut context.console.screen;
    Ok(screen.note(&format!(
        "crabtalk: {}{of} answers in {} ms ({} tokens read, {} written)",
        test.model, test.took_ms, test.input_tokens, test.output_tokens
    ))?)
}

/// Builds the configuration from options and detected values, without questions.
fn from_options(
    args: &Init,
    model: Option<&str>,
    found: &[FoundProvider],
) -> Result<Choice, Error> {
    let wanted = args.provider.as_deref().or(args.kind.as_deref());
    let known = match wanted {
        None => found.first(),
        Some(name) => found
            .iter()
            .find(|one| one.name == name || one.kind == name),
    };
    if known.is_none() && wanted.is_none() {
        return Err(Error::Usage(format!(
            "no key and no local model server found; use `crabtalk init --kind KIND --model NAME \
             --key-file FILE`, where KIND is one of {}",
            kinds()
        )));
    }
    let mut choice = known.map_or_else(
        || Choice {
            name: wanted.unwrap_or_default().to_owned(),
            ..Choice::default()
        },
        of_found,
    );
    if let Some(name) = &args.provider {
        choice.name.clone_from(name);
    }
    if let Some(kind) = args.kind.clone().or_else(|| {
        let named = args.provider.clone().filter(|_| choice.kind.is_empty());
        named.filter(|name| needs_key(name).is_some())
    }) {
        choice.kind = kind;
    }
    if let Some(url) = &args.base_url {
        choice.base_url.clone_from(url);
    }
    choice.key = match (&args.key_env, &args.key_file) {
        (Some(variable), _) => Key::Variable(variable.clone()),
        (None, Some(file)) => Key::File(file.display().to_string()),
        (None, None) => choice.key,
    };
    if let Some(model) = model {
        model.clone_into(&mut choice.model);
        if !choice.models.contains(&choice.model) {
            choice.models.insert(0, model.to_owned());
        }
    }
    checked(choice)
}

/// Whether a kind needs a key; `None` for an unknown kind.
fn needs_key(kind: &str) -> Option<bool> {
    let known = KINDS.iter().find(|(known, _)| *known == kind);
    known.map(|(_, needs)| *needs)
}

fn kinds() -> String {
    KINDS.map(|(kind, _)| kind).join(", ")
}

/// Checks that a configuration can be written and used.
fn checked(choice: Choice) -> Result<Choice, Error> {
    let Some(needs_key) = needs_key(&choice.kind) else {
        let hint = match nearest(&choice.kind, KINDS.iter().map(|(kind, _)| *kind)) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("use --kind with one of {}", kinds()),
        };
        return Err(Error::Usage(format!(
            "{:?} is not a kind of provider; {hint}",
            choice.kind
        )));
    };
    if choice.models.is_empty() && choice.kind != "offline" {
        return Err(Error::Usage(format!(
            "give a model of {} with --model",
            choice.name
        )));
    }
    // A private server with the format of another kind may need no key.
    if needs_key && choice.key == Key::None && choice.base_url.is_empty() {
        return Err(Error::Usage(format!(
            "{} needs a key: --key-env names a variable of the daemon's environment, --key-file a file",
            choice.name
        )));
    }
    Ok(choice)
}

fn of_found(found: &FoundProvider) -> Choice {
    Choice {
        name: found.name.clone(),
        kind: found.kind.clone(),
        base_url: found.base_url.clone(),
        key: match found.variable.is_empty() {
            true => Key::None,
            false => Key::Variable(found.variable.clone()),
        },
        model: found.models.first().cloned().unwrap_or_default(),
        models: found.models.clone(),
    }
}

impl Choice {
    /// The table `[provider.NAME]`.
    fn table(&self) -> Value {
        let mut table = json!({"kind": self.kind});
        if !self.base_url.is_empty() {
            table["base_url"] = self.base_url.as_str().into();
        }
        match &self.key {
            Key::None => {}
            Key::Variable(name) => table["api_key"] = format!("${{{name}}}").into(),
            Key::File(path) => table["api_key_file"] = path.as_str().into(),
            // The daemon reads `$${` as `${`.
            Key::Typed(key) => table["api_key"] = key.replace("${", "$${").into(),
        }
        if !self.models.is_empty() {
            table["models"] = json!(self.models);
        }
        table
    }
}

async fn write(context: &mut Context, choice: &Choice) -> Result<(), Error> {
    let mut connection = context.connection().await?;
    let mut set = vec![(format!("provider.{}", choice.name), choice.table())];
    if !choice.model.is_empty() {
        set.push(("model".to_owned(), choice.model.clone().into()));
    }
    for (key, value) in set {
        let request = SetConfigMsg {
            key,
            value: Some(value.to_string()),
            ..SetConfigMsg::default()
        };
        connection.set_config(request).await?;
    }
    let path = context.home.config_file();
    context.note(&format!("crabtalk: wrote {}", path.display()))
}

/// Asks questions at the terminal.
struct Asker<'a> {
    terminal: &'a mut dyn Terminal,
    interrupts: &'a mut Interrupts,
}

impl<'a> Asker<'a> {
    /// The questions, or `None` with options or without a terminal.
    fn of(context: &'a mut Context, args: &Init) -> Option<Self> {
        let says = args.yes || args.provider.is_some() || args.kind.is_some();
        let terminal = context.console.terminal.as_mut().filter(|_| !says)?;
        Some(Self {
            terminal: &mut **terminal,
            interrupts: &mut context.console.interrupts,
        })
    }

    async fn ask(&mut self, question: &str) -> Result<String, Error> {
        let failed = |e| Error::io("ask at the terminal", &e);
        self.terminal.show(question).map_err(failed)?;
        let line = tokio::select! {
            line = self.terminal.line() => line.map_err(failed)?,
            _ = self.interrupts.next() => None,
        };
        let line = line.ok_or(Error::Interrupted)?;
        Ok(line.trim().to_owned())
    }

    async fn choose(&mut self, found: &[FoundProvider]) -> Result<Choice, Error> {
        let mut text = String::from("Found here:\n");
        for (one, number) in found.iter().zip(1..) {
            let from = match one.variable.is_empty() {
                true => format!("a server at {}", one.base_url),
                false => format!("{} is set", one.variable),
            };
            text.push_str(&format!("  {number}  {} ({from})\n", one.name));
        }
        if found.is_empty() {
            text.push_str("  no key and no local model server\n");
        }
        text.push_str("  k  another provider, with a key\n  o  the offline demonstration\n");
        let usual = if found.is_empty() { "k" } else { "1" };
        let question = format!("{text}Use which one? [{usual}] > ");
        loop {
            let line = self.ask(&question).await?;
            let line = if line.is_empty() { usual } else { &line };
            let chosen = line.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            let chosen = chosen.and_then(|n| found.get(n));
            match (chosen, line) {
                (Some(found), _) => return self.model_of(of_found(found)).await,
                (None, "k") => return self.typed().await,
                (None, "o") => {
                    return checked(Choice {
                        name: "offline".to_owned(),
                        kind: "offline".to_owned(),
                        ..Choice::default()
                    });
                }
                (None, _) => {}
            }
        }
    }

    async fn model_of(&mut self, mut choice: Choice) -> Result<Choice, Error> {
        let shown = choice.models.iter().take(SHOWN_MODELS);
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        let question = format!(
            "Models: {}\nDefault model? [{}] > ",
            shown.join(", "),
            choice.model
        );
        let line = self.ask(&question).await?;
        if !line.is_empty() {
            if !choice.models.contains(&line) {
                choice.models.insert(0, line.clone());
            }
            choice.model = line;
        }
        checked(choice)
    }

    async fn typed(&mut self) -> Result<Choice, Error> {
        let kind = loop {
            let kind = self.ask(&format!("Kind ({}) > ", kinds())).await?;
            if needs_key(&kind).is_some() {
                break kind;
            }
        };
        let base_url = self.ask("Address (empty for the default) > ").await?;
        self.terminal.hide(true);
        let key = self
            .ask("API key (hidden; stored in config.toml, readable only by you) > ")
            .await;
        self.terminal.hide(false);
        let key = key?;
        // Ends the line after a hidden answer.
        let ended = self.terminal.show("\n");
        ended.map_err(|e| Error::io("ask at the terminal", &e))?;
        let model = loop {
            let model = self.ask("Model, by the provider's name > ").await?;
            if !model.is_empty() || kind == "offline" {
                break model;
            }
        };
        checked(Choice {
            name: kind.clone(),
            kind,
            base_url,
            key: match key.is_empty() {
                true => Key::None,
                false => Key::Typed(key),
            },
            models: match model.is_empty() {
                true => Vec::new(),
                false => vec![model.clone()],
            },
            model,
        })
    }
}
