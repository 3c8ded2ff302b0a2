use super::*;
use std::ffi::OsString;

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

/// The error that a text gets.
fn fails(text: &str, want: &str) {
    match parse(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => assert_eq!(error.to_string(), want, "{text}"),
    }
}

/// The warnings that a text gets, one per line.
fn warns(text: &str, want: &[&str]) {
    let (_, warnings) = parse(text).unwrap();
    assert_eq!(
        warnings.iter().map(Warning::to_string).collect::<Vec<_>>(),
        want,
        "{text}"
    );
}

#[test]
fn nothing_said_means_the_defaults() {
    let config = config("");
    assert_eq!(config.default_agent, "crab");
    assert_eq!(config.owners, ["user", "user/*", "ann", "ann/*"]);
    assert_eq!(config.storage.sync, SyncPolicy::Step);
    assert_eq!(config.storage.trash_days, 30);
    assert!(config.runs.detect && config.runs.sandbox == SandboxMode::Off && config.memory.enabled);
    assert_eq!(config.runs.ask_timeout_secs, 86_400);
    assert!(config.runs.prewarm);
}

#[test]
fn the_whole_file_is_read() {
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
sandbox = true
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
fn no_secret_is_shown() {
    let config = config(
        r#"
[provider.a]
kind = "openai"
base_url = "https://me:sk-hush@host/v1"
api_key = "sk-hush"
headers = { authorization = "Bearer sk-hush" }
[mcp.m]
command = "m"
args = ["--key=${KEY}"]
env = { T = "sk-hush" }
"#,
    );
    let shown = config.effective_json();
    for text in [format!("{config:?}"), shown.to_string()] {
        assert!(!text.contains("sk-hush"), "{text}");
    }
    assert_eq!(shown["provider"]["a"]["api_key"], "***");
    assert_eq!(shown["provider"]["a"]["base_url"], "https://***@host/v1");
    assert_eq!(shown["mcp"]["m"]["args"][0], "--key=${KEY}");
    assert_eq!(shown["mcp"]["m"]["env"]["T"], "***");
    assert_eq!(shown["storage"]["sync"], "step");
}

#[test]
fn a_missing_variable_disables_its_provider_and_says_so() {
    let config = config(
        "[provider.a]\nkind = \"openai\"\napi_key = \"${NO_KEY}\"\n\
         [provider.b]\nkind = \"openai\"\nbase_url = \"${NO_URL}\"\n\
         [mcp.m]\ncommand = \"m\"\nenv = { T = \"${NO_TOKEN}\" }\n",
    );
    assert_eq!(
        config.provider[0].key().unwrap_err().to_string(),
        "provider.a: the environment variable NO_KEY (named by api_key) is not set: set it where the daemon runs"
    );
    assert_eq!(config.provider[1].missing.as_ref().unwrap().key, "base_url");
    assert_eq!(config.mcp[0].missing.as_ref().unwrap().key, "env.T");
    assert_eq!(config.mcp[0].missing.as_ref().unwrap().owner, "mcp.m");
}

#[test]
fn a_client_that_logs_in_by_itself_has_all_that_takes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let load = |reach: &str, oauth: &str| {
        let text = format!("[mcp.m]\n{reach}\n[mcp.m.oauth]\n{oauth}\n");
        std::fs::write(&path, text).unwrap();
        Config::load(&path, &env).map(|(config, _)| config.mcp[0].oauth.clone())
    };
    let url = "url = \"https://m/mcp\"";
    let grant = "grant = \"client_credentials\"";
    std::fs::write(folder.path().join("secret"), " s3cret \n").unwrap();
    let whole = format!("{grant}\nclient_id = \"c\"\nclient_secret_file = \"secret\"");
    let oauth = load(url, &whole).unwrap();
    assert_eq!(oauth.grant, McpGrant::ClientCredentials);
    assert_eq!(oauth.secret("m").unwrap().unwrap().expose(), "s3cret");
    let both = format!("{whole}\nclient_secret = \"x\"");
    for (reach, oauth, why) in [
        (url, grant, "needs a client_id"),
        (
            url,
            "grant = \"client_credentials\"\nclient_id = \"c\"",
            "client_secret_file",
        ),
        ("command = \"m\"", whole.as_str(), "a server with a url"),
        (url, both.as_str(), "keep one of the two"),
        (url, "grant = \"password\"", "client_credentials"),
    ] {
        let error = load(reach, oauth).unwrap_err().to_string();
        assert!(error.contains(why), "{oauth}: {error}");
    }
    std::fs::write(folder.path().join("secret"), "").unwrap();
    let error = load(url, &whole)
        .unwrap()
        .secret("m")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("mcp.m.oauth.client_secret_file: there is no key in "),
        "{error}"
    );
}

#[test]
fn a_key_file_is_read_when_the_key_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(
        &path,
        "[provider.a]\nkind = \"openai\"\napi_key_file = \"key\"\n",
    )
    .unwrap();
    let (config, _) = Config::load(&path, &env).unwrap();
    let error = config.provider[0].key().unwrap_err().to_string();
    assert!(
        error.starts_with("provider.a.api_key_file: there is no key in "),
        "{error}"
    );
    std::fs::write(folder.path().join("key"), " sk-1\n").unwrap();
    assert_eq!(config.provider[0].key().unwrap().unwrap().expose(), "sk-1");
    // What is wrong names the provider and does not show the key.
    std::fs::write(folder.path().join("key"), "sk-1\nsk-2\n").unwrap();
    let error = config.provider[0].key().unwrap_err().with_causes();
    assert!(
        error.starts_with("provider.a.api_key_file: the key holds a line break")
            && !error.contains("sk-"),
        "{error}"
    );
    std::fs::remove_file(folder.path().join("key")).unwrap();
    std::fs::create_dir(folder.path().join("key")).unwrap();
    let error = config.provider[0].key().unwrap_err().with_causes();
    assert!(
        error.starts_with("provider.a.api_key_file: cannot read ") && error.contains("folder"),
        "{error}"
    );
}

#[test]
fn a_key_of_several_lines_is_told_by_its_provider() {
    let text = "[provider.a]\nkind = \"openai\"\napi_key = \"sk-1\\nsk-2\"\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    let (config, _) = Config::load(&path, &env).unwrap();
    let error = config.provider[0].key().unwrap_err().to_string();
    assert!(
        error.starts_with("provider.a.api_key: the key holds a line break")
            && !error.contains("sk-"),
        "{error}"
    );
}

#[test]
fn wrong_types_say_what_would_be_right() {
    fails(
        "[runs]\ndetect = \"yes\"\n",
        "config.toml:2:10: runs.detect: expected a boolean (true or false), found a string",
    );
    fails(
        "model = 4\n",
        "config.toml:1:9: model: expected a string (put it in quotes), found a whole number",
    );
    fails(
        "memory = 1\n",
        "config.toml:1:10: memory: expected a table of keys, found a whole number",
    );
    fails(
        "[limits]\ncrons = -1\n",
        "config.toml:2:9: limits.crons: expected a whole number from 0 to 4294967295, found -1",
    );
    fails(
        "[limits]\ntokens_per_day = 1.5\n",
        "config.toml:2:18: limits.tokens_per_day: expected a whole number of at least 0, found a number",
    );
    fails(
        "[limits]\nanswer_bytes = 0\n",
        "config.toml:2:16: limits.answer_bytes: expected a whole number from 1 to 8388608, found 0",
    );
    fails(
        "[limits]\nmoney_per_day = -2\n",
        "config.toml:2:17: limits.money_per_day: expected a number of at least 0, found -2",
    );
    fails(
        "[storage]\nsync = \"stp\"\n",
        "config.toml:2:8: storage.sync: expected one of step, run, never, found \"stp\" (did you mean step?)",
    );
    fails(
        "owners = [\"a\", 1]\n",
        "config.toml:1:16: owners[1]: expected a string, found a whole number",
    );
    fails(
        "default_agent = \"../x\"\n",
        "config.toml:1:17: default_agent: \"../x\" is not a name: use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit",
    );
}

#[test]
fn providers_say_what_would_be_right() {
    fails(
        "[provider.a]\nkind = \"opnai\"\n",
        "config.toml:2:8: provider.a.kind: expected one of openai, anthropic, google, bedrock, azure, ollama, offline, found \"opnai\" (did you mean openai?)",
    );
    fails(
        "\n[provider.a]\nmodels = []\n",
        "config.toml:2:1: provider.a.kind: missing, expected one of openai, anthropic, google, bedrock, azure, ollama, offline",
    );
    fails(
        "[provider.a]\nkind = \"openai\"\n[provider.A]\nkind = \"openai\"\n",
        "config.toml:3:11: provider.A: provider.a has that name already, in other case",
    );
    fails(
        "[provider.\"a b\"]\nkind = \"openai\"\n",
        "config.toml:1:11: provider.\"a b\": \"a b\" is not a name: use 1 to 64 letters, digits, `_` or `-`, beginning with a letter or digit",
    );
    fails(
        "[provider.a]\nkind = \"openai\"\nmodels = [\"m\"]\n[provider.b]\nkind = \"openai\"\nmodels = [{ name = \"m\" }]\n",
        "config.toml:6:11: provider.b.models: \"m\" is a model of provider.a already",
    );
    fails(
        "[provider.a]\nkind = \"openai\"\nmodels = \"m\"\n",
        "config.toml:3:10: provider.a.models: expected a list of names, or of tables such as { name = \"x\" }, found a string",
    );
    fails(
        "[provider.a]\nkind = \"openai\"\nbase_url = \"host:1\"\n",
        "config.toml:3:12: provider.a.base_url: expected a URL that begins with http:// or https://",
    );
    fails(
        "[provider.a]\nkind = \"openai\"\napi_key = \"x\"\napi_key_file = \"y\"\n",
        "config.toml:4:1: provider.a.api_key_file: there is an api_key already: keep one of the two",
    );
    fails(
        "[provider.a]\nkind = \"openai\"\nmodels = [{ name = \"m\", price = { input = 1 } }]\n",
        "config.toml:3:33: provider.a.models.price.output: missing, expected the price of a million tokens",
    );
    fails(
        "[mcp.m]\nargs = []\n",
        "config.toml:1:1: mcp.m.command: missing, expected command (a program) or url (a server)",
    );
    fails(
        "[mcp.m]\ncommand = \"m\"\nargs = \"a b\"\n",
        "config.toml:3:8: mcp.m.args: expected a list of strings, as in [\"one\", \"two\"], found a string",
    );
}

#[test]
fn the_sandbox_is_off_on_or_strict() {
    let mode = |text: &str| config(&format!("[runs]\nsandbox = {text}\n")).runs.sandbox;
    assert_eq!(mode("false"), SandboxMode::Off);
    assert_eq!(mode("true"), SandboxMode::On);
    assert_eq!(mode("\"strict\""), SandboxMode::Strict);
    fails(
        "[runs]\nsandbox = \"Strict\"\n",
        "config.toml:2:11: runs.sandbox: expected true, false or strict, found \"Strict\"",
    );
    fails(
        "[runs]\nsandbox = 1\n",
        "config.toml:2:11: runs.sandbox: expected true, false or strict, found a whole number",
    );
}

#[test]
fn the_sandbox_opens_whole_paths_only() {
    assert_eq!(config("").sandbox, Sandbox::default());
    fails(
        "[sandbox]\nread = [\"notes\"]\n",
        "config.toml:1:1: sandbox.read: \"notes\" is not absolute: begin it with / or ~/",
    );
    fails(
        "[sandbox]\nnetwork = \"yes\"\n",
        "config.toml:2:11: sandbox.network: expected a boolean (true or false), found a string",
    );
    warns(
        "[sandbox]\nreads = [\"/x\"]\n",
        &["config.toml:2:1: sandbox.reads: unknown key, ignored; did you mean read?"],
    );
}

#[test]
fn syntax_errors_name_the_place() {
    fails(
        "a = 1\nb = \n",
        "config.toml:2:5: not valid TOML: string values must be quoted, expected literal string",
    );
    fails(
        "model = \"a\"\nmodel = \"b\"\n",
        "config.toml:2:1: not valid TOML: duplicate key",
    );
}

fn hash(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

#[test]
fn listeners_have_a_port_and_are_encrypted_beyond_loopback() {
    let tcp = |text: &str| config(&format!("[tcp]\n{text}\n")).tcp.expect("a section");
    let addresses = |text: &str| {
        let listen = tcp(text).listen;
        listen.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(config("").tcp, None);
    assert_eq!(addresses("listen = \"127.0.0.1\""), ["127.0.0.1:6688"]);
    assert_eq!(
        addresses("listen = [\"localhost:7\", \"[::1]\", \"127.0.0.1:7\"]"),
        ["127.0.0.1:7", "[::1]:6688"]
    );
    assert_eq!(tcp("listen = \"0.0.0.0\"\ntls = true").tls, TcpTls::Own);
    let proxied = tcp("listen = \"0.0.0.0:1\"\nproxy = \"10.0.0.2\"");
    assert_eq!((proxied.tls, proxied.proxy.len()), (TcpTls::Off, 1));
    fails(
        "[tcp]\nlisten = \"0.0.0.0:6688\"\n",
        "config.toml:1:1: tcp.listen: 0.0.0.0:6688 is reached from elsewhere, where nothing may go \
         unencrypted: set tls = true, or cert and key, or name the proxy in front that encrypts \
         (proxy = \"ADDRESS\")",
    );
    fails(
        "[tcp]\nport = 6688\n",
        "config.toml:1:1: tcp.listen: missing, expected where to listen, as in \"127.0.0.1:6688\"",
    );
    fails(
        "[tcp]\nlisten = \"127.0.0.1\"\ntsl = true\n",
        "config.toml:3:1: tcp.tsl: unknown key; did you mean tls?",
    );
    fails(
        "[tcp]\nlisten = \"example.org:1\"\n",
        "config.toml:1:1: tcp.listen: \"example.org:1\" is no address to listen on: expected \
         ADDRESS:PORT, as in 127.0.0.1:6688 or [::]:6688",
    );
    fails(
        "[tcp]\nlisten = \"127.0.0.1\"\ncert = \"/c\"\n",
        "config.toml:1:1: tcp.key: missing: the certificate's key, PEM",
    );
}

#[test]
fn tokens_say_what_they_reach_and_what_is_misspelt_opens_nothing() {
    let config = config(&format!(
        "[token.phone]\nhash = \"{}\"\nrole = \"talk\"\nsenders = [\"tg:*\"]\nuntil = 2027-01-31\n\
         [token.ops]\nhash = \"{}\"\nrole = \"operate\"\ncwd = \"~/work\"\n",
        hash('a'),
        hash('b')
    ));
    let [phone, ops] = &config.token[..] else {
        panic!("{:?}", config.token)
    };
    assert_eq!(
        (phone.name.as_str(), phone.role),
        ("phone", TokenRole::Talk)
    );
    assert_eq!(phone.senders.as_deref(), Some(&["tg:*".to_owned()][..]));
    assert_eq!(phone.until.unwrap().to_string(), "2027-02-01T00:00:00Z");
    assert_eq!(ops.cwd.as_deref(), Some(&[PathBuf::from("/me/work")][..]));
    assert_eq!(ops.hash.to_string(), hash('b'));
    let token =
        |name: &str, rest: &str| format!("[token.{name}]\nhash = \"{}\"\n{rest}", hash('a'));
    for (text, want) in [
        (
            token("x", "role = \"talk\"\nsender = \"a\"\n"),
            "config.toml:4:1: token.x.sender: unknown key; did you mean senders?",
        ),
        (
            token("x", "role = \"talk\"\nsenders = []\n"),
            "config.toml:1:1: token.x.senders: is empty: name something, or leave it out",
        ),
        (
            token("user", "role = \"talk\"\n"),
            "config.toml:1:8: token.user: an owner has that name: a token speaks under its own",
        ),
        (
            token("x", "role = \"boss\"\n"),
            "config.toml:3:8: token.x.role: expected one of talk, operate, admin, found \"boss\"",
        ),
        (
            token("x", "role = \"talk\"\nuntil = \"soon\"\n"),
            "config.toml:4:9: token.x.until: expected a date, as in 2027-01-31, or an instant, as in \
             2027-01-31T12:00:00Z",
        ),
        (
            "[token.x]\nhash = \"secret\"\nrole = \"talk\"\n".to_owned(),
            "config.toml:1:1: token.x.hash: expected sha256: and 64 hexadecimal digits, as `crabtalk \
             tokens add` writes it",
        ),
        (
            token("x", "role = \"talk\"\n") + &token("y", "role = \"talk\"\n"),
            "config.toml:4:8: token.y: another token has the same hash: make each with `crabtalk \
             tokens add`",
        ),
    ] {
        fails(&text, want);
    }
}

#[test]
fn unknown_keys_warn_with_the_nearest() {
    warns(
        "modle = \"x\"\n[runs]\ndetcet = true\nfrobnicate = 1\n[provider.a]\nkind = \"openai\"\napikey = \"x\"\n",
        &[
            "config.toml:1:1: modle: unknown key, ignored; did you mean model?",
            "config.toml:3:1: runs.detcet: unknown key, ignored; did you mean detect?",
            "config.toml:4:1: runs.frobnicate: unknown key, ignored",
            "config.toml:7:1: provider.a.apikey: unknown key, ignored; did you mean api_key?",
        ],
    );
}

#[test]
fn a_file_that_is_not_there_means_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let (config, _) = Config::load(&folder.path().join("config.toml"), &env).unwrap();
    assert_eq!(config.default_agent, "crab");
}

/// Every key that there is, in the words of the page that people read.
#[test]
fn the_reference_names_every_key() {
    let text = r#"
        [provider.p]
        kind = "openai"
        base_url = "http://127.0.0.1:1"
        api_key = "x"
        models = [{ name = "m", id = "i", context = 1, price = { input = 1.0, output = 1.0 }, images = true }]
        headers = { a = "b" }
        [mcp.program]
        command = "x"
        args = ["y"]
        env = { A = "b" }
        [mcp.address]
        url = "https://x.example"
        headers = { a = "b" }
        oauth = { client_id = "i", client_secret = "s", scopes = ["r"] }
        [memory]
        provider = "address"
        [tcp]
        listen = "127.0.0.1:0"
    "#;
    // What the tables below hold has names that people choose.
    const NAMED: [&str; 5] = ["provider", "mcp", "token", "headers", "env"];
    fn keys(value: &serde_json::Value, named: bool, found: &mut Vec<String>) {
        let Some(table) = value.as_object() else {
            if let Some(list) = value.as_array() {
                list.iter().for_each(|one| keys(one, false, found));
            }
            return;
        };
        for (key, below) in table {
            if !named {
                found.push(key.clone());
            }
            keys(below, !named && NAMED.contains(&key.as_str()), found);
        }
    }
    let mut found = Vec::new();
    keys(&config(text).effective_json(), false, &mut found);
    assert!(found.len() > 60, "{found:?}");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let is_told = |key: &str| {
        [format!("`{key}`"), format!("{key} ="), format!("[{key}")]
            .iter()
            .any(|form| page.contains(form.as_str()))
    };
    let untold: Vec<_> = found.iter().filter(|key| !is_told(key)).collect();
    assert!(
        untold.is_empty(),
        "docs/guide/configuration.md lacks {untold:?}"
    );
}
