//! Screens of real programs, and their interpretation.

use super::*;
use crate::terminal::tmux::look::Look;

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
    let always = "don't ask again for commands that start with `touch b.txt` (p)";
    assert_eq!(prompt.always.as_deref(), Some(always));
    assert!(!codex.is_ready(&asks));

    // The cursor is in the composer again.
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
fn output_of_pi_that_looks_like_a_question_is_ignored() {
    let pi = kind("pi");
    let line = "─".repeat(60);
    // The cursor is never shown, and few lines follow: only the composer's frame
    // distinguishes output from a prompt.
    let said = format!(
        " Run this command?\n\n   rm -rf /\n\n → Yes\n   No\n\n{line}\n\n{line}\n/w (master)\n\
         ↑1.0k ↓20 1.0%/100k (auto)   scripted\n"
    );
    let look = Look::of(&said, (0, 12), false);
    assert!(pi.prompt(&look).is_none());
    assert!(pi.is_ready(&look), "and it hinders no message");
    assert_eq!(pi.composer.draft(&look).unwrap(), "");
}

#[test]
fn the_chat_asks_in_a_frame_and_types_between_rule_and_status() {
    let chat = kind("crabtalk");
    let frame = "\u{250f}\u{2501} crab wants to use bash \u{b7} 2 lines\n\u{2503} ls\n\u{2503} pwd\n\u{2503}\n\u{2503} in /w\n";
    let status = "  \u{2838} crab \u{b7} ~/w \u{b7} offline \u{b7} 650 tokens\n";
    let choices =
        "\u{2517}\u{2501}  y allow once    a always exactly this    n deny    v view all\n";
    let asks = format!("\u{2838} bash ls \u{b7} 3s\n{frame}{choices}{status}");
    let look = Look::of(&asks, (0, 7), false);
    let prompt = chat.prompt(&look).unwrap();
    assert_eq!(prompt.tool, "bash");
    assert_eq!(prompt.always.as_deref(), Some("always exactly this"));
    let once = asks.replace("    a always exactly this", "");
    let look_once = Look::of(&once, (0, 7), false);
    assert_eq!(chat.prompt(&look_once).unwrap().always, None);
    assert!(!chat.is_ready(&look));
    // Before keys are accepted, and while a person types.
    let settles = "\u{2517}\u{2501} a moment: what you type now is no answer\n";
    let asks_not = format!("{frame}{settles}{status}");
    assert!(chat.prompt(&Look::of(&asks_not, (0, 7), false)).is_none());
    assert!(chat.prompt(&Look::of(&asks, (2, 5), true)).is_none());

    let rule = "\u{2500}".repeat(60);
    let idle = format!(
        "\u{203a} earlier\n\n  an answer\n\n{rule}\n\u{203a} say something; / commands, @ files, ! \
         shell\n  crab \u{b7} ~/w\n"
    );
    let look = Look::of(&idle, (2, 5), true);
    assert!(chat.is_ready(&look) && chat.prompt(&look).is_none());
    assert_eq!(chat.composer.draft(&look).unwrap(), "");
    let typed = format!("{rule}\n\u{203a} hello\n  there\n{status}");
    let look = Look::of(&typed, (7, 2), true);
    assert_eq!(chat.composer.draft(&look).unwrap(), "hello\n  there");
}

#[test]
fn kinds_can_be_changed_and_added() {
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
    assert_eq!(codex.commands.clear.as_deref(), Some("/clear"));
    let mine = kinds.get("mine").unwrap();
    assert_eq!((mine.command.len(), mine.prompts.len()), (1, 2));
    assert!(kinds.get("other").unwrap().transcript.is_none());
    assert_eq!(kinds.names().count(), BUILT_IN.len() + 2);
}

#[test]
fn invalid_kind_is_reported() {
    for (changes, says) in [
        ("x = 1", "has to be a table"),
        ("[x]\nlike = 'y'", "not a known kind"),
        ("[x]\nready = { shows = '^>' }", "command"),
        ("[codex.ready]\nshows = '('", "is not a valid pattern"),
        ("[codex]\ncolour = 1", "colour"),
    ] {
        let error = Kinds::new(&changes.parse().unwrap())
            .unwrap_err()
            .to_string();
        assert!(error.contains(says), "{error}");
    }
}
