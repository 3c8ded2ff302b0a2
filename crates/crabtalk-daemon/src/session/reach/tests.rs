use super::super::recorded::{Recorded, recorded};
use super::*;
use crabtalk_proto::{OPERATIONS, Role};
use std::fmt::Write as _;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol/reach.md");

const HEAD: &str = "# Reach

Which operations a token's role allows stands in [roles](roles.md). This page says what each of them names, and so what a
token has to reach beside that: by its agents, its senders, its folders. What it does not reach does not exist for it: lists leave it out, and asking for it is
answered as if it were not there. Where a folder is named, it has to lie below one of the token's. The last column says what the audit has of it: an entry
that is written before, without which it is not done; or one that is written if the disk takes it, because it only stops something. A test writes this page from
the two matches that every request passes.

| operation | least role | names | audit |
|---|---|---|---|
";

fn named(names: Names<'_>) -> &'static str {
    match names {
        Names::Nothing => "nothing that anybody owns",
        Names::Pair(..) => "a conversation: its agent and its sender are to be reached, else 404",
        Names::Speaks(..) => {
            "a conversation to speak in: agent and guest are to be reached, else 404, and the sender, else 403"
        }
        Names::Agent(_) => "an agent, which is to be reached, else 404",
        Names::Answer => {
            "what its answer holds, or a number or file finds: the rest is left out, or 404"
        }
        Names::Event(_) => {
            "an event: all agents are to be reached, and the sender `event:SOURCE`, else 403"
        }
        Names::Node => "the whole node: for tokens without agents and senders, else 403",
    }
}

#[test]
fn the_page_of_reach_is_the_table() {
    let mut page = HEAD.to_owned();
    for operation in OPERATIONS {
        let request = operation.empty();
        let entry = match recorded(&request) {
            Recorded::No => "",
            Recorded::First(_) => "first",
            Recorded::Anyway(_) => "if it can",
            Recorded::Answer => "allowing first, denying if it can",
        };
        let (name, role) = (operation.name, operation.role.name());
        writeln!(
            page,
            "| `{name}` | {role} | {} | {entry} |",
            named(names(&request))
        )
        .unwrap();
    }
    if std::env::var_os("CRABTALK_UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(
        written == page,
        "docs/protocol/reach.md is not the table; CRABTALK_UPDATE_DOCS=1 writes it anew"
    );
}

#[test]
fn what_changes_the_configuration_or_lets_somebody_in_is_recorded() {
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
            recorded(&request) == Recorded::No,
            only_reads || other,
            "{}",
            operation.name
        );
    }
}
