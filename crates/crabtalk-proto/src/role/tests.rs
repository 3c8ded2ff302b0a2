use super::*;
use crate::{ClientMessage, ErrorMsg, Ping, Server, ServerMessage, StreamMsg, server_message};
use crate::{ListProvidersMsg, ReloadMsg, SetProviderMsg};
use futures_util::{FutureExt, StreamExt};
use std::fmt::Write as _;
use std::sync::Arc;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol/roles.md");

const HEAD: &str = "# Roles

The operations that each role may use; each role includes the previous roles. A connection on the Unix socket has `admin`. A TCP
connection has `stranger` until it sends a token, then the token's role. An operation above the role is answered with 403, and the connection
stays usable. A test generates this page from the list of operations.

| operation | | stranger | talk | operate | admin |
|---|---|---|---|---|---|
";

#[test]
fn roles_page_is_current() {
    let mut page = HEAD.to_owned();
    for operation in OPERATIONS {
        let about = operation.about.trim();
        write!(page, "| `{}` | {about} |", operation.name).unwrap();
        for role in Role::ALL {
            let may = role.check(operation.name, operation.role).is_ok();
            page.push_str(if may { " yes |" } else { " |" });
        }
        page.push('\n');
    }
    if std::env::var_os("CRABTALK_UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/protocol/roles.md is not the table; CRABTALK_UPDATE_DOCS=1 rewrites it"
    );
}

/// Implements no operation; the role is checked first.
struct Closed(Role);

impl Server for Closed {
    fn version(&self) -> &str {
        "1"
    }

    fn role(&self) -> Role {
        self.0
    }
}

fn code(role: Role, request: impl Into<ClientMessage>) -> u32 {
    let reply = Arc::new(Closed(role)).dispatch(request.into());
    let answers: Vec<ServerMessage> = reply.collect().now_or_never().expect("at once");
    let [
        ServerMessage {
            msg: Some(server_message::Msg::Error(ErrorMsg { code, .. })),
        },
    ] = &answers[..]
    else {
        panic!("one error: {answers:?}")
    };
    *code
}

#[test]
fn role_is_checked_before_the_request() {
    // Allowed requests answer 501, because nothing is implemented.
    for role in Role::ALL {
        let needs = |least: Role| if role >= least { 501 } else { 403 };
        assert_eq!(code(role, Ping {}), needs(Role::Stranger));
        assert_eq!(code(role, StreamMsg::default()), needs(Role::Talk));
        assert_eq!(code(role, ListProvidersMsg {}), needs(Role::Operate));
        assert_eq!(code(role, SetProviderMsg::default()), needs(Role::Admin));
        assert_eq!(code(role, ReloadMsg {}), needs(Role::Admin));
    }
}

#[test]
fn refusal_names_both_roles() {
    let refused = Role::Talk.check("reload", Role::Admin);
    let refused = refused.expect_err("it may not").to_string();
    assert!(
        refused.contains("`reload` needs the role admin"),
        "{refused}"
    );
    assert!(refused.contains("has talk"), "{refused}");
}

/// Requests that widen agents' permissions or show secrets need `admin`.
#[test]
fn configuration_changes_need_admin() {
    for operation in OPERATIONS {
        let changes = [
            "create_agent",
            "update_agent",
            "delete_agent",
            "set_local_mcps",
        ];
        let provider = operation.name.ends_with("_provider");
        if changes.contains(&operation.name) || provider {
            assert_eq!(operation.role, Role::Admin, "{}", operation.name);
        }
    }
}
