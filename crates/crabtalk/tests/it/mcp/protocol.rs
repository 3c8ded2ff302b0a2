//! The protocol messages for MCP servers.

use super::server;
use crate::rig::{TestEnv, has_tools};
use crabtalk_proto::{
    Client, DeleteMcpMsg, ListMcpsMsg, McpInfo, ResourceKind, SetEnabledMsg, SetLocalMcpsMsg,
    SetMcpMsg, TestMcpMsg,
};
use serde_json::json;

/// The test server's program as `files`, with a secret.
fn files() -> SetMcpMsg {
    let config =
        json!({"command": "python3", "args": [server(), "stdio"], "env": {"KEY": "s3cret"}});
    SetMcpMsg {
        name: "files".into(),
        config: config.to_string(),
    }
}

#[tokio::test]
async fn servers_are_listed_and_tested() {
    if !has_tools("servers_are_listed_and_tested", &["python3"]) {
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon().await;
    let mut client = env.connect().await;
    client.set_mcp(files()).await.unwrap();
    let listed = client.list_mcps(ListMcpsMsg {}).await.unwrap().mcps;
    assert_eq!(
        (listed[0].name.as_str(), listed[0].state.as_str()),
        ("files", "idle")
    );
    assert_eq!(listed[0].env["KEY"], "***");
    let test = |name: &str, config: String| TestMcpMsg {
        name: name.into(),
        config,
    };
    let tested = client.test_mcp(test("files", String::new())).await.unwrap();
    assert!(tested.ok, "{tested:?}");
    assert_eq!(tested.server, "test 1");
    assert!(
        tested
            .tools
            .iter()
            .any(|tool| tool.name == "files__look" && tool.read_only)
    );
    assert!(tested.steps.len() >= 3, "{:?}", tested.steps);
    // A server that is not configured; the test reports its error.
    let broken = json!({"command": "python3", "args": [server(), "stdio"], "env": {"BROKEN": "1", "COMPLAIN": "no luck"}});
    let tested = client
        .test_mcp(test("tried", broken.to_string()))
        .await
        .unwrap();
    assert!(!tested.ok && tested.error.contains("no luck"), "{tested:?}");
    let unknown = client.test_mcp(test("nobody", String::new())).await;
    assert_eq!(unknown.unwrap_err().code(), Some(404));
    let odd = SetMcpMsg {
        name: "a__b".into(),
        ..files()
    };
    assert_eq!(client.set_mcp(odd).await.unwrap_err().code(), Some(400));
}

#[tokio::test]
async fn servers_are_changed_and_removed_with_comments_kept() {
    if !has_tools(
        "servers_are_changed_and_removed_with_comments_kept",
        &["python3"],
    ) {
        return;
    }
    let env = TestEnv::new();
    env.config("# mine\n[limits] # bounds\ncrons = 3\n");
    let _daemon = env.daemon().await;
    let mut client = env.connect().await;
    client.set_mcp(files()).await.unwrap();
    let listed = client.list_mcps(ListMcpsMsg {}).await.unwrap().mcps;
    // An older client sends the whole list, with masked secrets.
    let mut old: Vec<McpInfo> = listed;
    old.push(McpInfo {
        name: "remote".into(),
        url: "http://127.0.0.1:9/mcp".into(),
        enabled: false,
        auto_restart: true,
        ..McpInfo::default()
    });
    client
        .set_local_mcps(SetLocalMcpsMsg { mcps: old })
        .await
        .unwrap();
    let text = std::fs::read_to_string(env.home.join("config/config.toml")).unwrap();
    assert!(
        text.contains("# mine") && text.contains("# bounds") && text.contains("s3cret"),
        "{text}"
    );
    let off = SetEnabledMsg {
        kind: ResourceKind::Mcp.into(),
        name: "files".into(),
        enabled: false,
    };
    client.set_enabled(off).await.unwrap();
    let listed = client.list_mcps(ListMcpsMsg {}).await.unwrap().mcps;
    assert!(listed.iter().all(|mcp| mcp.state == "off"), "{listed:?}");
    for name in ["files", "remote"] {
        client
            .delete_mcp(DeleteMcpMsg { name: name.into() })
            .await
            .unwrap();
    }
    let gone = client
        .delete_mcp(DeleteMcpMsg {
            name: "files".into(),
        })
        .await;
    assert_eq!(gone.unwrap_err().code(), Some(404));
    assert!(
        client
            .list_mcps(ListMcpsMsg {})
            .await
            .unwrap()
            .mcps
            .is_empty()
    );
}
