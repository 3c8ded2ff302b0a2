//! Screens of real programs, and what they mean.

use super::*;
use crate::tmux::look::Look;

fn kind(name: &str) -> Kind {
    Kinds::new(&Table::new())
        .unwrap()
        .get(name)
        .unwrap()
        .clone()
}

const CODEX_ASKS: &str = "\
› please [tool:touch b.txt]

• I will run a command.

  Would you like to run the following command?

  Environment: local

  $ touch b.txt

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with `touch b.txt` (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
";

#[test]
fn codex_asks_and_the_same_text_further_up_does_not() {
    let codex = kind("codex");
    let asks = Look::of(CODEX_ASKS, (120, 39), false);
    let prompt = codex.prompt(&asks).unwrap();
    assert_eq!(
        (prompt.tool.as_str(), prompt.subject.as_deref()),
        ("bash", Some("touch b.txt"))
    );
    assert_eq!(prompt.rule.allow, ["1"]);
    assert!(!codex.is_ready(&asks));

    // The cursor is in the composer again, whatever is still to be read above.
    let old = format!("{CODEX_ASKS}\n› Ask Codex to do anything\n\n  ? for shortcuts\n");
    assert!(codex.prompt(&Look::of(&old, (2, 15), true)).is_none());
    let output = format!("{CODEX_ASKS}\n• one\n• two\n• three\n• four\n• five\n• six\n");
    assert!(codex.prompt(&Look::of(&output, (0, 20), false)).is_none());
}

#[test]
fn codex_is_ready_with_an_empty_composer() {
    let codex = kind("codex");
    let look = Look::of(
        "› Ask Codex to do anything\n\n  ? for shortcuts\n",
        (2, 0),
        true,
    );
    assert!(codex.is_ready(&look));
    assert_eq!(codex.composer.draft(&look).as_deref(), Some(""));
    let typed = Look::of(
        "› hello\n  there\n\n  scripted default · /w\n",
        (7, 1),
        true,
    );
    assert_eq!(codex.composer.draft(&typed).unwrap(), "hello\n  there");
}

#[test]
fn pi_asks_between_its_lines_and_types_between_them() {
    let pi = kind("pi");
    let line = "─".repeat(60);
    let asks = format!(
        "{line}\n\n Run this command?\n\n   touch b.txt\n\n → Yes\n   No\n\n ↑↓ navigate  enter select  \
         escape/ctrl+c cancel\n\n{line}\n/w (master)\n↑1.0k ↓20 1.0%/100k (auto)   scripted\n"
    );
    let prompt = pi
        .prompt(&Look::of(&asks, (120, 23), false))
        .unwrap()
        .subject;
    assert_eq!(prompt.as_deref(), Some("touch b.txt"));
    let typed = format!("{line}\nhello\nthere\n{line}\n/w\n0.0%/100k (auto)\n");
    let look = Look::of(&typed, (0, 2), false);
    assert_eq!(pi.composer.draft(&look).unwrap(), "hello\nthere");
    assert!(pi.is_ready(&look) && pi.prompt(&look).is_none());
}

#[test]
fn the_chat_names_the_tool_in_its_question() {
    let chat = kind("crabtalk");
    let asks = "crab wants to use bash:\n    ls\nAllow? [y]es once, [n]o (or n: reason) > \n";
    let prompt = chat.prompt(&Look::of(asks, (41, 2), true)).unwrap();
    assert_eq!(prompt.tool, "bash");
    assert!(chat.prompt(&Look::of(asks, (0, 3), true)).is_none());
}

#[test]
fn every_value_of_a_kind_can_be_changed_and_kinds_be_added() {
    let changes = "
        [codex.commands]
        compact = '/summarise'
        [mine]
        like = 'pi'
        command = ['mine']
        [other]
        command = ['other']
        ready = { shows = '^>' }
    ";
    let kinds = Kinds::new(&changes.parse().unwrap()).unwrap();
    let codex = kinds.get("codex").unwrap();
    assert_eq!(codex.commands.compact.as_deref(), Some("/summarise"));
    assert_eq!(codex.commands.leave.as_deref(), Some("/quit"));
    let mine = kinds.get("mine").unwrap();
    assert_eq!((mine.command.len(), mine.prompts.len()), (1, 2));
    assert!(kinds.get("other").unwrap().transcript.is_none());
    assert_eq!(kinds.names().count(), BUILT_IN.len() + 2);
}

#[test]
fn what_is_wrong_with_a_kind_is_said() {
    for (changes, says) in [
        ("x = 1", "has to be a table"),
        ("[x]\nlike = 'y'", "which is no kind"),
        ("[x]\nready = { shows = '^>' }", "command"),
        ("[codex.ready]\nshows = '('", "is no pattern"),
        ("[codex]\ncolour = 1", "colour"),
    ] {
        let error = Kinds::new(&changes.parse().unwrap())
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn the_chats_composer_is_where_the_cursor_is() {
    let chat = kind("crabtalk");
    let draft = |screen: &str, cursor| chat.composer.draft(&Look::of(screen, cursor, true));
    let idle = "crab> good day\nYou told me: good day\n\ncrab>\n";
    assert_eq!(draft(idle, (6, 3)).as_deref(), Some(""));
    assert_eq!(draft(idle, (0, 2)), None, "it answers");
    assert_eq!(
        draft("crab> one\n... two\n", (7, 1)).as_deref(),
        Some("onetwo")
    );
    let long = format!("crab> {}\nxyz\n", "x".repeat(74));
    assert_eq!(draft(&long, (3, 1)).unwrap().len(), 77);
}
