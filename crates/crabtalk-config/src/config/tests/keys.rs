//! Keys and secrets.

use super::*;

#[test]
fn effective_json_masks_secrets() {
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
fn unset_variable_disables_its_owner() {
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
fn client_credentials_need_client_secret_and_url() {
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
        error.starts_with("mcp.m.oauth.client_secret_file: "),
        "{error}"
    );
}

#[test]
fn key_file_is_read_at_each_use() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(
        &path,
        "[provider.a]\nkind = \"openai\"\napi_key_file = \"key\"\n",
    )
    .unwrap();
    let (config, _) = Config::load(&path, &env).unwrap();
    let error = config.provider[0].key().unwrap_err().to_string();
    assert!(error.starts_with("provider.a.api_key_file: "), "{error}");
    std::fs::write(folder.path().join("key"), " sk-1\n").unwrap();
    assert_eq!(config.provider[0].key().unwrap().unwrap().expose(), "sk-1");
    std::fs::write(folder.path().join("key"), "sk-1\nsk-2\n").unwrap();
    let error = config.provider[0].key().unwrap_err().with_causes();
    assert!(
        error.starts_with("provider.a.api_key_file: the key contains a line break")
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
