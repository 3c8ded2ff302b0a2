//! Every tool of the protocol's own test server, through an agent.

use super::{declining, result, tool};
use crate::rig::TestEnv;
use crabtalk_proto::{Client, TestMcpMsg};
use serde_json::{Value, json};

/// Node and the server's program, if `.ci/run` has installed them.
fn installed(test: &str) -> Option<(String, String)> {
    let node = std::env::var("CRABTALK_NODE");
    let program = std::env::var("CRABTALK_MCP_EVERYTHING");
    match (node, program) {
        (Ok(node), Ok(program)) => Some((node, program)),
        _ => {
            crate::rig::skipped(test, "CRABTALK_NODE or CRABTALK_MCP_EVERYTHING is not set");
            None
        }
    }
}

/// Valid arguments of a tool and a part of its answer.
fn wanted(raw: &str) -> (Value, &'static str) {
    match raw {
        "echo" => (json!({"message": "hello"}), "hello"),
        "get-annotated-message" => (
            json!({"messageType": "error", "includeImage": true}),
            "Error",
        ),
        "get-env" => (json!({}), "PATH"),
        "get-resource-links" => (json!({"count": 2}), "demo://resource"),
        "get-resource-reference" => (
            json!({"resourceType": "Text", "resourceId": 1}),
            "demo://resource",
        ),
        "get-structured-content" => (json!({"location": "Chicago"}), "temperature"),
        "get-sum" => (json!({"a": 2, "b": 3}), "5"),
        "get-tiny-image" => (json!({}), "image"),
        "gzip-file-as-resource" => (
            json!({"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resource"}),
            "application/gzip",
        ),
        "trigger-long-running-operation" => (json!({"duration": 1, "steps": 2}), "completed"),
        // The tool is for clients that poll tasks, and reports that.
        "simulate-research-query" => (json!({"topic": "x"}), "task"),
        _ => (json!({}), ""),
    }
}

async fn call_all(env: &TestEnv, server: &str) {
    let test = TestMcpMsg {
        name: server.into(),
        config: String::new(),
    };
    let tested = env.connect().await.test_mcp(test).await.unwrap();
    assert!(tested.ok, "{tested:?}");
    assert!(tested.tools.len() >= 10, "{tested:?}");
    for known in tested.tools {
        let (arguments, holds) = wanted(&known.raw_name);
        let events = declining(env, tool(&known.name, arguments)).await;
        let answer = result(&events);
        let fails = known.raw_name == "simulate-research-query";
        assert_eq!(answer.is_error, fails, "{}: {answer:?}", known.name);
        assert!(answer.output.contains(holds), "{}: {answer:?}", known.name);
        if known.raw_name == "get-tiny-image" {
            assert_eq!(answer.images.len(), 1);
        }
    }
}

#[tokio::test]
async fn reference_server_tools_are_called_over_stdio() {
    let Some((node, program)) = installed("everything over stdio") else {
        return;
    };
    let env = TestEnv::new();
    super::allowing(&env);
    env.config(&format!(
        "[mcp.everything]\ncommand = \"{node}\"\nargs = [\"{program}\", \"stdio\"]\n"
    ));
    let _daemon = env.daemon().await;
    call_all(&env, "everything").await;
}
