//! From the tree of `config.toml` to its values.

mod mcp;

use super::expand::{MissingVariable, expand};
use super::models::read_models;
use super::sections::{cli, cron, limits, memory, runs, skills, storage};
use super::*;
use crate::name::{NAME_RULE, is_name};
use crate::reader::{Section, TextFile};
use crate::tree::{Field, from_toml};
use crate::{Secret, Written, home::expand_tilde};
use std::collections::BTreeMap;

/// MODEL-3.
const MAX_RETRIES: u32 = 2;

/// MODEL-3.
const TIMEOUT_SECS: u64 = 30;

/// A program that rings somewhere does so in a moment; one that hangs holds up
/// those that come after it.
const NOTIFY_TIMEOUT_SECS: u32 = 30;

/// Retries beyond this only hammer a server that is down.
const MAX_MAX_RETRIES: u64 = 20;

/// An hour: no server that is well takes longer to its first byte.
const MAX_TIMEOUT_SECS: u64 = 3_600;

pub(super) fn parse(
    text: &str,
    file: &Path,
    env: &Env<'_>,
) -> Result<(Config, Vec<Warning>), Error> {
    let tree = from_toml(text, file)?;
    let source = TextFile::new(file);
    let mut root = Section::new(&source, "", &tree)?;
    let reader = Reader { env, file };
    let config = reader.config(&mut root)?;
    root.finish();
    Ok((config, source.into_warnings()))
}

/// What the sections need beside themselves.
struct Reader<'a> {
    env: &'a Env<'a>,
    file: &'a Path,
}

impl Reader<'_> {
    fn config(&self, root: &mut Section<'_>) -> Result<Config, Error> {
        let default_agent = match root.take("default_agent") {
            Some(entry) => {
                let name = root.text("default_agent", &entry.node)?;
                check(root, entry.node.at, "default_agent", &name)?;
                name
            }
            None => "crab".to_owned(),
        };
        let owners = self.owners(root)?;
        let user_home = (self.env)("HOME").map(PathBuf::from);
        Ok(Config {
            default_agent,
            model: root.string("model")?,
            tcp: remote::tcp(root, user_home.as_deref())?,
            token: remote::tokens(root, &owners, user_home.as_deref())?,
            owners,
            provider: self.providers(root)?,
            mcp: self.mcps(root)?,
            memory: memory(root.section_or_empty("memory")?)?,
            storage: storage(root.section_or_empty("storage")?)?,
            runs: runs(root.section_or_empty("runs")?)?,
            sandbox: self.sandbox(root.section_or_empty("sandbox")?)?,
            limits: limits(root.section_or_empty("limits")?)?,
            skills: skills(root.section_or_empty("skills")?)?,
            cron: cron(root.section_or_empty("cron")?)?,
            notify: self.notify(root.section_or_empty("notify")?)?,
            cli: cli(root.section_or_empty("cli")?)?,
        })
    }

    fn notify(&self, mut section: Section<'_>) -> Result<Notify, Error> {
        let url = match section.take("url") {
            Some(entry) => {
                let text = section.text("url", &entry.node)?;
                match expand(&text, self.env) {
                    Ok(url) if url.starts_with("http://") || url.starts_with("https://") => {
                        Some(Secret::new(url))
                    }
                    Ok(_) => {
                        return section.fail(
                            entry.node.at,
                            "url",
                            "is no address: expected https://host/path",
                        );
                    }
                    Err(variable) => {
                        let message = format!("names ${{{variable}}}, which is not set");
                        return section.fail(entry.node.at, "url", &message);
                    }
                }
            }
            None => None,
        };
        let notify = Notify {
            command: section.string("command")?,
            url,
            timeout_secs: section
                .count("timeout_secs", 1)?
                .unwrap_or(NOTIFY_TIMEOUT_SECS),
        };
        section.finish();
        Ok(notify)
    }

    /// Who has the owner's authority. A pattern that means nothing is an error,
    /// since whoever wrote it counts on it.
    fn owners(&self, root: &mut Section<'_>) -> Result<Vec<String>, Error> {
        let (Some(entry), Some(owners)) = (root.take("owners"), root.strings("owners")?) else {
            return Ok(self.default_owners());
        };
        for owner in &owners {
            let name = owner.strip_suffix("/*").unwrap_or(owner);
            if name.is_empty() || name.contains('*') {
                let message = format!(
                    "{owner:?}: expected a sender's whole name, or NAME/* for one more segment, as in \"user/*\""
                );
                return root.fail(entry.node.at, "owners", &message);
            }
        }
        Ok(owners)
    }

    /// `user`, the login name, and the projects of either (CONV-11).
    fn default_owners(&self) -> Vec<String> {
        let login = ["USER", "LOGNAME"].into_iter().find_map(|name| {
            (self.env)(name)?
                .into_string()
                .ok()
                .filter(|v| !v.is_empty())
        });
        let names = [Some("user".to_owned()), login.filter(|l| l != "user")];
        let with_projects = |name: String| {
            let projects = format!("{name}/*");
            [name, projects]
        };
        names
            .into_iter()
            .flatten()
            .flat_map(with_projects)
            .collect()
    }

    fn providers(&self, root: &mut Section<'_>) -> Result<Vec<Provider>, Error> {
        let mut providers: Vec<Provider> = Vec::new();
        let Some(section) = root.section("provider")? else {
            return Ok(providers);
        };
        let mut models: Vec<(String, String)> = Vec::new();
        check_names(&section)?;
        for entry in section.entries() {
            let below = section.below(entry)?;
            let provider = self.provider(&entry.key, below, &mut models)?;
            providers.push(provider);
        }
        Ok(providers)
    }

    fn provider(
        &self,
        name: &str,
        mut section: Section<'_>,
        models: &mut Vec<(String, String)>,
    ) -> Result<Provider, Error> {
        let Some(kind) = section.choice("kind", &ProviderKind::ALL)? else {
            let kinds = ProviderKind::ALL.map(|(kind, _)| kind).join(", ");
            return section.fail(
                section.at,
                "kind",
                &format!("missing, expected one of {kinds}"),
            );
        };
        let mut missing = None;
        let base_url = self.url(&mut section, "base_url", &mut missing)?;
        let api_key = match section.take("api_key") {
            Some(entry) => Some(Secret::new(
                self.expanded(&section, entry, "api_key", &mut missing)?
                    .value(),
            )),
            None => None,
        };
        let api_key_file = match section.take("api_key_file") {
            Some(entry) if api_key.is_some() => {
                let message = "there is an api_key already: keep one of the two";
                return section.fail(entry.at, "api_key_file", message);
            }
            Some(entry) => Some(self.path(&section.text("api_key_file", &entry.node)?)),
            None => None,
        };
        let provider = Provider {
            name: name.to_owned(),
            kind,
            enabled: section.boolean("enabled")?.unwrap_or(true),
            base_url,
            api_key: api_key.filter(|key| !key.expose().is_empty()),
            api_key_file,
            models: read_models(&mut section, name, models)?,
            headers: self.secrets(&mut section, "headers", &mut missing)?,
            max_retries: section
                .whole("max_retries", 0, MAX_MAX_RETRIES)?
                .map_or(MAX_RETRIES, |n| u32::try_from(n).expect("within the range")),
            timeout_secs: section
                .whole("timeout_secs", 1, MAX_TIMEOUT_SECS)?
                .unwrap_or(TIMEOUT_SECS),
            missing,
        };
        section.finish();
        Ok(provider)
    }

    fn url(
        &self,
        section: &mut Section<'_>,
        key: &'static str,
        missing: &mut Option<MissingVariable>,
    ) -> Result<Option<Written>, Error> {
        let Some(entry) = section.take(key) else {
            return Ok(None);
        };
        let had = missing.is_some();
        let url = self.expanded(section, entry, key, missing)?;
        let value = url.value();
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| value.len() > scheme.len() && value.starts_with(scheme));
        if !is_url && missing.is_some() == had {
            let message = "expected a URL that begins with http:// or https://";
            return section.fail(entry.node.at, key, message);
        }
        Ok(Some(url))
    }

    fn expanded(
        &self,
        section: &Section<'_>,
        entry: &Field,
        key: &str,
        missing: &mut Option<MissingVariable>,
    ) -> Result<Written, Error> {
        let text = section.text(key, &entry.node)?;
        Ok(self.written(text, section.path(), key, missing))
    }

    fn written(
        &self,
        text: String,
        owner: &str,
        key: &str,
        missing: &mut Option<MissingVariable>,
    ) -> Written {
        let value = expand(&text, self.env).unwrap_or_else(|variable| {
            missing.get_or_insert(MissingVariable {
                owner: owner.to_owned(),
                key: key.to_owned(),
                variable,
            });
            String::new()
        });
        Written::new(text, value)
    }

    fn secrets(
        &self,
        section: &mut Section<'_>,
        key: &'static str,
        missing: &mut Option<MissingVariable>,
    ) -> Result<BTreeMap<String, Secret>, Error> {
        let Some(table) = section.section(key)? else {
            return Ok(BTreeMap::new());
        };
        let owner = section.path().to_owned();
        let secrets = table.entries().iter().map(|entry| {
            let text = table.text(&entry.key, &entry.node)?;
            let key = format!("{key}.{}", entry.key);
            let value = self.written(text, &owner, &key, missing);
            Ok((entry.key.clone(), Secret::new(value.value())))
        });
        secrets.collect()
    }

    fn sandbox(&self, mut section: Section<'_>) -> Result<Sandbox, Error> {
        let sandbox = Sandbox {
            network: section.boolean("network")?.unwrap_or(false),
            read: self.folders(&mut section, "read")?,
            write: self.folders(&mut section, "write")?,
        };
        section.finish();
        Ok(sandbox)
    }

    /// Absolute paths; `~` is the user's home.
    fn folders(&self, section: &mut Section<'_>, key: &'static str) -> Result<Vec<PathBuf>, Error> {
        let user_home = (self.env)("HOME").map(PathBuf::from);
        let texts = section.exact_strings(key)?;
        let folders = texts.iter();
        folders
            .map(|text| absolute(section, key, text, user_home.as_deref()))
            .collect()
    }

    /// A path of the file: `~` is the user's home, relative means beside it.
    fn path(&self, text: &str) -> PathBuf {
        let user_home = (self.env)("HOME").map(PathBuf::from);
        let path = expand_tilde(text, user_home.as_deref());
        self.file
            .parent()
            .map_or_else(|| path.clone(), |folder| folder.join(&path))
    }
}

/// An absolute path; `~` is the user's home.
pub(super) fn absolute(
    section: &Section<'_>,
    key: &str,
    text: &str,
    user_home: Option<&Path>,
) -> Result<PathBuf, Error> {
    let path = expand_tilde(text, user_home);
    if path.is_absolute() {
        return Ok(path);
    }
    let message = format!("{text:?} is not absolute: begin it with / or ~/");
    section.fail(section.at, key, &message)
}

/// Checks the names of tables: the rule, and that none repeats in other case.
pub(super) fn check_names(section: &Section<'_>) -> Result<(), Error> {
    for (i, entry) in section.entries().iter().enumerate() {
        check(section, entry.at, &entry.key, &entry.key)?;
        let twin = section.entries()[..i]
            .iter()
            .find(|e| e.key.eq_ignore_ascii_case(&entry.key));
        if let Some(twin) = twin {
            let message = format!(
                "{} has that name already, in other case",
                section.name(&twin.key)
            );
            return section.fail(entry.at, &entry.key, &message);
        }
    }
    Ok(())
}

fn check(
    section: &Section<'_>,
    at: crate::tree::Position,
    key: &str,
    name: &str,
) -> Result<(), Error> {
    if is_name(name) {
        return Ok(());
    }
    section.fail(at, key, &format!("{name:?} is not a name: use {NAME_RULE}"))
}
