//! Completes a parsed configuration: inserts values of the environment, resolves paths, and
//! checks conditions on several keys.

use super::expand::{MissingVariable, expand};
use super::{Config, Mcp, McpGrant, McpTransport, Provider, TcpTls};
use crate::error::Diagnostic;
use crate::home::expand_tilde;
use crate::name::{NAME_RULE, is_name};
use crate::tree::reader::{join, read};
use crate::tree::{Field, Node, Value, from_toml};
use crate::{Env, Error, Secret, Warning, Written};
use crabtalk_domain::Mode;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

pub(super) fn parse(
    text: &str,
    file: &Path,
    env: &Env<'_>,
) -> Result<(Config, Vec<Warning>), Error> {
    let mut tree = from_toml(text, file)?;
    spell_models_out(&mut tree);
    let (mut config, mut warnings) = read::<Config>(&tree, file)?;
    let resolver = Resolver {
        tree: &tree,
        file,
        env,
        user_home: env("HOME").map(PathBuf::from),
    };
    resolver.config(&mut config)?;
    warnings.sort_by_key(|w| (w.line, w.column));
    Ok((config, warnings))
}

/// Converts models that are given by their name to tables with that name.
fn spell_models_out(tree: &mut Node) {
    let providers = tree
        .field_mut("provider")
        .map(|field| &mut field.node.value);
    let Some(Value::Table(providers)) = providers else {
        return;
    };
    for provider in providers {
        let models = provider.node.field_mut("models");
        let Some(Value::List(models)) = models.map(|field| &mut field.node.value) else {
            continue;
        };
        for model in models {
            if let Value::String(_) = model.value {
                let (at, node) = (model.at, model.clone());
                let key = "name".to_owned();
                model.value = Value::Table(vec![Field { key, at, node }]);
            }
        }
    }
}

struct Resolver<'a> {
    tree: &'a Node,
    file: &'a Path,
    env: &'a Env<'a>,
    user_home: Option<PathBuf>,
}

impl Resolver<'_> {
    /// Creates an error at a value. If the last key is absent, its table has the position.
    fn fail<T>(&self, path: &[&str], message: &str) -> Result<T, Error> {
        let mut at = self.tree.at;
        let mut node = Some(self.tree);
        for key in path {
            node = node.and_then(|node| Some(&node.field(key)?.node));
            at = node.map_or(at, |node| node.at);
        }
        let name = path
            .iter()
            .fold(String::new(), |name, key| join(&name, key));
        let message = format!("{name}: {message}");
        Err(Error::Invalid(Diagnostic::new(self.file, at, message)))
    }

    fn has(&self, key: &str) -> bool {
        self.tree.field(key).is_some()
    }

    fn config(&self, config: &mut Config) -> Result<(), Error> {
        if !self.has("default_agent") {
            config.default_agent = "crab".to_owned();
        } else if !is_name(&config.default_agent) {
            let name = &config.default_agent;
            let message = format!("{name:?} is not a valid name: use {NAME_RULE}");
            return self.fail(&["default_agent"], &message);
        }
        if !self.has("owners") {
            config.owners = self.default_owners();
        }
        self.check_owners(&config.owners)?;
        if config.runs.mode == Some(Mode::Full) {
            let modes = Mode::ALL.map(Mode::as_str)[..3].join(", ");
            let message = format!("expected one of {modes}, found \"full\"");
            return self.fail(&["runs", "mode"], &message);
        }
        for table in ["provider", "mcp", "token"] {
            self.check_names(table)?;
        }
        self.providers(&mut config.provider)?;
        for mcp in &mut config.mcp {
            self.mcp(mcp)?;
        }
        let sandbox = &mut config.sandbox;
        for (key, folders) in [("read", &mut sandbox.read), ("write", &mut sandbox.write)] {
            self.absolute(&["sandbox", key], folders)?;
        }
        self.notify(config)?;
        if let Some(tcp) = &mut config.tcp
            && let TcpTls::Files { cert, key } = &mut tcp.tls
        {
            self.absolute(&["tcp", "cert"], [cert])?;
            self.absolute(&["tcp", "key"], [key])?;
        }
        self.tokens(config)
    }

    /// A pattern without a meaning is an error, since its author relies on it.
    fn check_owners(&self, owners: &[String]) -> Result<(), Error> {
        for owner in owners {
            let name = owner.trim_end_matches("/*");
            if name.is_empty() || name.contains('*') {
                let message = format!(
                    "{owner:?}: expected a sender's whole name, with /* for each further segment, as in \"user/*\""
                );
                return self.fail(&["owners"], &message);
            }
        }
        Ok(())
    }

    /// `user` and the login name, with the projects and topics of both (CONV-11).
    fn default_owners(&self) -> Vec<String> {
        let login = ["USER", "LOGNAME"].into_iter().find_map(|name| {
            let value = (self.env)(name)?.into_string().ok()?;
            (!value.is_empty()).then_some(value)
        });
        let names = [Some("user".to_owned()), login.filter(|l| l != "user")];
        let names = names.into_iter().flatten();
        names
            .flat_map(|name| {
                let (projects, topics) = (format!("{name}/*"), format!("{name}/*/*"));
                [name, projects, topics]
            })
            .collect()
    }

    /// Checks that names of tables follow the rule, and that no two differ only in case.
    fn check_names(&self, table: &str) -> Result<(), Error> {
        let Some(Value::Table(fields)) = self.tree.field(table).map(|field| &field.node.value)
        else {
            return Ok(());
        };
        for (i, field) in fields.iter().enumerate() {
            let key = &field.key;
            let twin = fields[..i].iter().find(|f| f.key.eq_ignore_ascii_case(key));
            let message = match twin {
                Some(twin) => {
                    let twin = join(table, &twin.key);
                    format!("the name {twin} differs only in case: rename one of them")
                }
                None if !is_name(key) => {
                    format!("{key:?} is not a valid name: use {NAME_RULE}")
                }
                None => continue,
            };
            let message = format!("{}: {message}", join(table, key));
            let diagnostic = Diagnostic::new(self.file, field.at, message);
            return Err(Error::Invalid(diagnostic));
        }
        Ok(())
    }

    fn providers(&self, providers: &mut [Provider]) -> Result<(), Error> {
        let mut owners: HashMap<String, String> = HashMap::new();
        for provider in providers {
            let name = provider.name.clone();
            let path = |key| ["provider", &name, key];
            let mut variables = self.variables(format!("provider.{name}"));
            if let Some(url) = &mut provider.base_url {
                variables.written("base_url", url);
                if !is_url(url) && variables.missing.is_none() {
                    return self.fail(&path("base_url"), NOT_A_URL);
                }
            }
            if provider.api_key.is_some() && provider.api_key_file.is_some() {
                let message = "api_key is set as well: keep one of the two";
                return self.fail(&path("api_key_file"), message);
            }
            variables.secret("api_key", &mut provider.api_key);
            variables.secrets("headers", &mut provider.headers);
            provider.missing = variables.missing;
            self.beside_file(&mut provider.api_key_file);
            for model in &mut provider.models {
                if model.id.is_empty() {
                    model.id.clone_from(&model.name);
                }
                if model.name.trim().is_empty() {
                    return self.fail(&path("models"), "a model's name must not be empty");
                }
                // Only one provider may have a model with this name (MODEL-1).
                if let Some(owner) = owners.insert(model.name.clone(), name.clone()) {
                    let message =
                        format!("{:?} is already a model of provider.{owner}", model.name);
                    return self.fail(&path("models"), &message);
                }
            }
        }
        Ok(())
    }

    fn mcp(&self, mcp: &mut Mcp) -> Result<(), Error> {
        let name = mcp.name.clone();
        let mut variables = self.variables(format!("mcp.{name}"));
        let is_http = match &mut mcp.transport {
            McpTransport::Stdio { command, args, env } => {
                variables.written("command", command);
                for arg in args {
                    variables.written("args", arg);
                }
                variables.secrets("env", env);
                false
            }
            McpTransport::Http { url, headers } => {
                variables.written("url", url);
                if !is_url(url) && variables.missing.is_none() {
                    return self.fail(&["mcp", &name, "url"], NOT_A_URL);
                }
                variables.secrets("headers", headers);
                true
            }
        };
        let oauth = &mut mcp.oauth;
        if oauth.client_secret.is_some() && oauth.client_secret_file.is_some() {
            let message = "client_secret is set as well: keep one of the two";
            return self.fail(&["mcp", &name, "oauth", "client_secret_file"], message);
        }
        oauth.client_id = variables.text("client_id", &oauth.client_id);
        variables.secret("client_secret", &mut oauth.client_secret);
        self.beside_file(&mut oauth.client_secret_file);
        let has_secret = oauth.client_secret.is_some() || oauth.client_secret_file.is_some();
        let is_whole = !oauth.client_id.is_empty() && has_secret && is_http;
        // A variable that is not set is reported when the server is used.
        if oauth.grant == McpGrant::ClientCredentials && variables.missing.is_none() && !is_whole {
            let message = "client_credentials needs a client_id, a client_secret or client_secret_file, and a server with a url";
            return self.fail(&["mcp", &name, "oauth", "grant"], message);
        }
        mcp.missing = variables.missing;
        Ok(())
    }

    fn notify(&self, config: &mut Config) -> Result<(), Error> {
        let Some(url) = &mut config.notify.url else {
            return Ok(());
        };
        let message = match expand(url.expose(), self.env) {
            Ok(text) if text.starts_with("http://") || text.starts_with("https://") => {
                *url = Secret::new(text);
                return Ok(());
            }
            Ok(_) => NOT_A_URL.to_owned(),
            Err(variable) => format!("the environment variable {variable} is not set"),
        };
        self.fail(&["notify", "url"], &message)
    }

    fn tokens(&self, config: &mut Config) -> Result<(), Error> {
        let mut hashes = HashMap::new();
        for token in &mut config.token {
            let path = ["token", &token.name];
            // A token's name is its sender, which must not be an owner's or reserved (CONV-10).
            if config.owners.contains(&token.name) {
                return self.fail(&path, "an owner has this name: choose another name");
            }
            let reserved = ["cron", "event", "delegate"];
            if reserved.contains(&token.name.to_ascii_lowercase().as_str()) {
                return self.fail(&path, "the name is reserved: choose another name");
            }
            if let Some(other) = hashes.insert(token.hash.0, token.name.clone()) {
                let message = format!(
                    "token.{other} has the same hash: make each token with `crabtalk tokens add`"
                );
                return self.fail(&path, &message);
            }
            if let Some(folders) = &mut token.cwd {
                self.absolute(&["token", &token.name, "cwd"], folders)?;
            }
        }
        Ok(())
    }

    fn variables(&self, owner: String) -> Variables<'_> {
        Variables {
            env: self.env,
            owner,
            missing: None,
        }
    }

    /// Makes paths absolute; `~` is the user's home.
    fn absolute<'p>(
        &self,
        key: &[&str],
        paths: impl IntoIterator<Item = &'p mut PathBuf>,
    ) -> Result<(), Error> {
        for path in paths {
            let written = path.to_string_lossy().into_owned();
            *path = expand_tilde(&written, self.user_home.as_deref());
            if !path.is_absolute() {
                let message = format!("{written:?} is not absolute: begin it with / or ~/");
                return self.fail(key, &message);
            }
        }
        Ok(())
    }

    /// Resolves a path of the file: `~` is the user's home, and a relative path refers to the
    /// file's folder.
    fn beside_file(&self, path: &mut Option<PathBuf>) {
        if let (Some(path), Some(folder)) = (path, self.file.parent()) {
            let whole = expand_tilde(&path.to_string_lossy(), self.user_home.as_deref());
            *path = folder.join(whole);
        }
    }
}

const NOT_A_URL: &str = "expected a URL that begins with http:// or https://";

fn is_url(url: &Written) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| url.value().len() > scheme.len() && url.value().starts_with(scheme))
}

/// Inserts the environment's values into one owner's texts, and remembers the first unset
/// variable.
struct Variables<'a> {
    env: &'a Env<'a>,
    owner: String,
    missing: Option<MissingVariable>,
}

impl Variables<'_> {
    fn text(&mut self, key: &str, text: &str) -> String {
        expand(text, self.env).unwrap_or_else(|variable| {
            self.missing.get_or_insert(MissingVariable {
                owner: self.owner.clone(),
                key: key.to_owned(),
                variable,
            });
            String::new()
        })
    }

    fn written(&mut self, key: &str, written: &mut Written) {
        let value = self.text(key, written.value());
        written.set_value(value);
    }

    /// Treats an empty secret as absent.
    fn secret(&mut self, key: &str, secret: &mut Option<Secret>) {
        let value = secret.take().map(|secret| self.text(key, secret.expose()));
        *secret = value.filter(|value| !value.is_empty()).map(Secret::new);
    }

    fn secrets(&mut self, key: &str, secrets: &mut BTreeMap<String, Secret>) {
        for (name, secret) in secrets {
            *secret = Secret::new(self.text(&format!("{key}.{name}"), secret.expose()));
        }
    }
}
