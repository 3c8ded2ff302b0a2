mod keys;
mod page;
mod remote;

use super::*;
use crabtalk_domain::storage::{RecallScope, SyncPolicy};
use std::ffi::OsString;
use std::path::PathBuf;

fn env(name: &str) -> Option<OsString> {
    match name {
        "HOME" => Some("/me".into()),
        "USER" => Some("ann".into()),
        "KEY" => Some("sk-hush".into()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<(Config, Vec<Warning>), Error> {
    Config::parse(text, Path::new("config.toml"), &env)
}

fn config(text: &str) -> Config {
    let (config, warnings) = parse(text).unwrap();
    assert_eq!(warnings, [], "{text}");
    config
}

/// Checks the error of a text, without the file's name.
fn fails(text: &str, want: &str) {
    match parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => assert_eq!(error.to_string(), format!("config.toml:{want}"), "{text}"),
    }
}

/// Checks the warnings of a text.
fn warns(text: &str, want: &[&str]) {
    let (_, warnings) = parse(text).unwrap();
    assert_eq!(
        warnings.iter().map(Warning::to_string).collect::<Vec<_>>(),
        want,
        "{text}"
    );
}

#[test]
fn empty_file_means_the_defaults() {
    let config = config("");
    assert_eq!(config.default_agent, "crab");
    assert_eq!(
        config.owners,
        ["user", "user/*", "user/*/*", "ann", "ann/*", "ann/*/*"]
    );
    assert_eq!(config.storage.sync, SyncPolicy::Step);
    assert_eq!(config.storage.trash_days, 30);
    assert!(config.runs.detect && config.runs.mode.is_none() && config.memory.enabled);
    assert_eq!(config.runs.ask_timeout_secs, 86_400);
    assert!(config.runs.prewarm);
}

#[test]
fn every_section_is_read() {
    let config = config(
        r#"
default_agent = "rev"
model = "sonnet"
owners = "user, ann"
[provider.anthropic]
kind = "anthropic"
base_url = "https://${USER}.example"
api_key = "${KEY}"
models = ["sonnet", { name = "opus", id = "o-4", context = 200000, price = { input = 3.0, output = 15 }, images = true }]
headers = { x-team = "t" }
max_retries = 0
timeout_secs = 5
[provider.local]
kind = "offline"
enabled = false
[mcp.files]
command = "mcp-server-filesystem"
args = ["/home/me/notes", "a,b", "--key=${KEY}"]
env = { TOKEN = "${KEY}" }
[mcp.web]
url = "http://127.0.0.1:1/mcp"
[memory]
enabled = false
recall_limit = 7
soul_editable = true
recall_scope = "agent"
[storage]
sync = "never"
[runs]
detect = false
resume = "auto"
ask_timeout_secs = 60
mode = "ask"
prewarm = false
[sandbox]
network = true
read = ["~/notes", "/a,b"]
write = ["/srv/cache"]
[limits]
queued_runs = 1
tokens_per_day = 5
money_per_day = 2
[skills]
import = true
disabled = ["x"]
"#,
    );
    assert_eq!(config.owners, ["user", "ann"]);
    let provider = &config.provider[0];
    assert_eq!(
        provider.base_url.as_ref().unwrap().value(),
        "https://ann.example"
    );
    assert_eq!(provider.key().unwrap().unwrap().expose(), "sk-hush");
    assert_eq!(provider.models[0].id, "sonnet");
    assert_eq!(
        provider.models[1].price,
        Some(Price {
            input: 3.0,
            output: 15.0
        })
    );
    let images: Vec<_> = provider.models.iter().map(|model| model.images).collect();
    assert_eq!(images, [None, Some(true)]);
    assert_eq!((provider.max_retries, provider.timeout_secs), (0, 5));
    assert!(!config.provider[1].enabled && config.provider[1].key().unwrap().is_none());
    let McpTransport::Stdio { args, env, .. } = &config.mcp[0].transport else {
        panic!()
    };
    assert_eq!(args[1].value(), "a,b");
    assert_eq!(args[2].value(), "--key=sk-hush");
    assert_eq!(env["TOKEN"].expose(), "sk-hush");
    assert_eq!(config.memory.recall_scope, RecallScope::Agent);
    assert_eq!(config.runs.resume, Resume::Auto);
    assert!(!config.runs.prewarm);
    assert_eq!(
        (config.limits.queued_runs, config.limits.tokens_per_day),
        (1, Some(5))
    );
    assert!(config.skills.import);
    assert_eq!(
        config.sandbox,
        Sandbox {
            network: true,
            read: vec!["/me/notes".into(), "/a,b".into()],
            write: vec!["/srv/cache".into()],
        }
    );
}

#[test]
fn wrong_values_name_position_key_and_remedy() {
    for (text, want) in [
        (
            "[runs]\ndetect = \"yes\"\n",
            "2:10: runs.detect: expected a boolean (true or false), found a string",
        ),
        (
            "model = 4\n",
            "1:9: model: expected a string (put it in quotes), found a whole number",
        ),
        (
            "memory = 1\n",
            "1:10: memory: expected a table of keys, found a whole number",
        ),
        (
            "[limits]\ncrons = -1\n",
            "2:9: limits.crons: expected a whole number from 0 to 4294967295, found -1",
        ),
        (
            "[limits]\ntokens_per_day = 1.5\n",
            "2:18: limits.tokens_per_day: expected a whole number of at least 0, found a number",
        ),
        (
            "[limits]\nanswer_bytes = 0\n",
            "2:16: limits.answer_bytes: expected a whole number from 1 to 8388608, found 0",
        ),
        (
            "[limits]\nmoney_per_day = -2\n",
            "2:17: limits.money_per_day: expected a number of at least 0, found -2",
        ),
        (
            "[storage]\nsync = \"stp\"\n",
            "2:8: storage.sync: expected one of step, run, never, found \"stp\" (did you mean step?)",
        ),
        (
            "owners = [\"a\", 1]\n",
            "1:16: owners[1]: expected a string (put it in quotes), found a whole number",
        ),
        (
            "default_agent = \"../x\"\n",
            "1:17: default_agent: \"../x\" is not a valid name: use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit",
        ),
        (
            "[runs]\nmode = \"full\"\n",
            "2:8: runs.mode: expected one of read-only, ask, auto, found \"full\"",
        ),
        (
            "[sandbox]\nread = [\"notes\"]\n",
            "2:8: sandbox.read: \"notes\" is not absolute: begin it with / or ~/",
        ),
        (
            "a = 1\nb = \n",
            "2:5: not valid TOML: string values must be quoted, expected literal string",
        ),
        (
            "model = \"a\"\nmodel = \"b\"\n",
            "2:1: not valid TOML: duplicate key",
        ),
    ] {
        fails(text, want);
    }
}

#[test]
fn wrong_providers_name_position_key_and_remedy() {
    for (text, want) in [
        (
            "[provider.a]\nkind = \"opnai\"\n",
            "2:8: provider.a.kind: expected one of openai, anthropic, google, bedrock, azure, ollama, offline, found \"opnai\" (did you mean openai?)",
        ),
        (
            "\n[provider.a]\nmodels = []\n",
            "2:1: provider.a.kind: missing: this key is required",
        ),
        (
            "[provider.a]\nkind = \"openai\"\n[provider.A]\nkind = \"openai\"\n",
            "3:11: provider.A: the name provider.a differs only in case: rename one of them",
        ),
        (
            "[provider.\"a b\"]\nkind = \"openai\"\n",
            "1:11: provider.\"a b\": \"a b\" is not a valid name: use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit",
        ),
        (
            "[provider.a]\nkind = \"openai\"\nmodels = [\"m\"]\n[provider.b]\nkind = \"openai\"\nmodels = [{ name = \"m\" }]\n",
            "6:10: provider.b.models: \"m\" is already a model of provider.a",
        ),
        (
            "[provider.a]\nkind = \"openai\"\nmodels = \"m\"\n",
            "3:10: provider.a.models: expected a list, found a string",
        ),
        (
            "[provider.a]\nkind = \"openai\"\nbase_url = \"host:1\"\n",
            "3:12: provider.a.base_url: expected a URL that begins with http:// or https://",
        ),
        (
            "[provider.a]\nkind = \"openai\"\napi_key = \"x\"\napi_key_file = \"y\"\n",
            "4:16: provider.a.api_key_file: api_key is set as well: keep one of the two",
        ),
        (
            "[provider.a]\nkind = \"openai\"\nmodels = [{ name = \"m\", price = { input = 1 } }]\n",
            "3:33: provider.a.models[0].price.output: missing: this key is required",
        ),
        (
            "[mcp.m]\nargs = []\n",
            "1:1: mcp.m: expected command (a program) or url (a server)",
        ),
        (
            "[mcp.m]\ncommand = \"m\"\nargs = \"a b\"\n",
            "3:8: mcp.m.args: expected a list, found a string",
        ),
        (
            "[mcp.m]\ncommand = \"m\"\nheaders = { a = \"b\" }\n",
            "1:1: mcp.m: headers belong to a url: a program takes env",
        ),
    ] {
        fails(text, want);
    }
}

#[test]
fn unknown_keys_warn_with_the_nearest() {
    warns(
        "modle = \"x\"\n[runs]\ndetcet = true\nfrobnicate = 1\n[provider.a]\nkind = \"openai\"\napikey = \"x\"\n\
         models = [{ name = \"m\", contxt = 1 }]\n",
        &[
            "config.toml:1:1: modle: unknown key, ignored; did you mean model?",
            "config.toml:3:1: runs.detcet: unknown key, ignored; did you mean detect?",
            "config.toml:4:1: runs.frobnicate: unknown key, ignored",
            "config.toml:7:1: provider.a.apikey: unknown key, ignored; did you mean api_key?",
            "config.toml:8:25: provider.a.models[0].contxt: unknown key, ignored; did you mean context?",
        ],
    );
}

#[test]
fn missing_file_means_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = Config::load(&folder.path().join("config.toml"), &env).unwrap();
    assert_eq!(config.default_agent, "crab");
}
