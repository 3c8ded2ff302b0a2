use super::super::requests::{Names, Recorded, row};
use crabtalk_proto::{OPERATIONS, Role};
use std::fmt::Write as _;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol/reach.md");

const HEAD: &str = "# Reach

[Roles](roles.md) lists the operations that a token's role allows. This page lists the objects that each operation names: the token must reach
them by its agents, senders and folders. An object beyond its reach is treated as absent: lists omit it, and requests that name it fail as if it did not exist.
A folder must be below one of the token's folders. The last column is the operation's entry in the audit: `first` is written before the operation, which is refused
if the entry cannot be written; `if possible` never refuses the operation. A test generates this page from the table that every request passes.

| operation | least role | names | audit |
|---|---|---|---|
";

fn named(names: Names<'_>) -> &'static str {
    match names {
        Names::Nothing => "no object with an owner",
        Names::Pair(..) => "a conversation: the token must reach its agent and sender, else 404",
        Names::Speaks(..) => {
            "a conversation to speak in: the token must reach agent and guest, else 404, and the sender, else 403"
        }
        Names::Agent(_) => "an agent: the token must reach it, else 404",
        Names::Answer => {
            "objects in the answer, which is filtered, or one given by number or file, else 404"
        }
        Names::Event(_) => {
            "an event: the token must reach all agents and the sender `event:SOURCE`, else 403"
        }
        Names::Node => {
            "the whole node: the token must not be restricted to agents or senders, else 403"
        }
    }
}

#[test]
fn reach_page_equals_the_table() {
    let mut page = HEAD.to_owned();
    for operation in OPERATIONS {
        let request = operation.empty();
        let entry = match row(&request).1 {
            Recorded::No => "",
            Recorded::First(_) => "first",
            Recorded::Anyway(_) => "if possible",
            Recorded::Answer => "allowing: first; denying: if possible",
        };
        let (name, role) = (operation.name, operation.role.name());
        writeln!(
            page,
            "| `{name}` | {role} | {} | {entry} |",
            named(row(&request).0)
        )
        .unwrap();
    }
    if std::env::var_os("CRABTALK_UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/protocol/reach.md differs from the table; CRABTALK_UPDATE_DOCS=1 rewrites it"
    );
}

#[test]
fn admin_operations_that_change_state_are_recorded() {
    for operation in OPERATIONS {
        if operation.role < Role::Admin {
            continue;
        }
        let request = operation.empty();
        let only_reads = operation.name.starts_with("get_") || operation.name.starts_with("list_");
        // A login is recorded when it is finished, a new chain in itself.
        let other = [
            "extension",
            "test_mcp",
            "login_mcp",
            "test_model",
            "find_providers",
            "new_audit_chain",
        ];
        let other = other.contains(&operation.name);
        assert_eq!(
            row(&request).1 == Recorded::No,
            only_reads || other,
            "{}",
            operation.name
        );
    }
}
