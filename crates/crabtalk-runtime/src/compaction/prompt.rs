//! The request for a summary.

/// Maximum bytes of an open question that is repeated after a summary. The middle of a
/// longer one is omitted; the archive has all of it.
const MAX_QUESTION_BYTES: usize = 16 * 1024;

/// Heading of the repeated question. A later compaction finds and replaces the question
/// by this line.
const QUESTION_HEADING: &str = "\n\nThe user's request that is being worked on, word for word:\n";

/// Heading of the todo list, by which a later compaction finds it.
const TODO_HEADING: &str = "\n\nThe todo list as it stands:";

const INSTRUCTION: &str = "\
Summarise this conversation so far. Your summary replaces all of it: you will continue with \
only the summary, so it must be complete on its own.

Keep: who you are, with your name, personality and notes on the relationship, as your instructions \
and any <self>, <identity> and <profile> blocks say; who the user is, with name, preferences and \
situation; decisions and their reasons; open tasks and their progress; facts, constraints and \
preferences that matter; results of tools that are still needed; who said what, if several agents \
took part.

Leave out: greetings, filler and acknowledgements; plans that were replaced or dropped; tool calls \
whose results the summary already contains.

Write dense prose, no lists and no headings, in the language of the conversation. Begin with a \
sentence that could be its title. Call no tools; answer with the summary alone.";

/// Composes the final message of a compaction request.
pub(super) fn instruction(own: Option<&str>, focus: Option<&str>) -> String {
    let instruction = own.unwrap_or(INSTRUCTION);
    match focus.map(str::trim).filter(|focus| !focus.is_empty()) {
        Some(focus) => format!("{instruction}\n\nFocus on this: {focus}"),
        None => instruction.to_owned(),
    }
}

/// Adds the todo list to a summary, before an open question.
pub(super) fn with_todo_list(summary: &str, list: &str) -> String {
    format!("{summary}{TODO_HEADING}{list}")
}

/// The todo list in an earlier summary.
pub(super) fn todo_list(summary: &str) -> Option<&str> {
    let (_, list) = summary.split_once(TODO_HEADING)?;
    Some(
        list.split_once(QUESTION_HEADING)
            .map_or(list, |(list, _)| list),
    )
}

/// Appends the open question to a summary.
pub(super) fn with_question(summary: &str, question: &str) -> String {
    let question = innermost(question);
    let question = if question.len() <= MAX_QUESTION_BYTES {
        question.to_owned()
    } else {
        let half = MAX_QUESTION_BYTES / 2;
        let (head, tail) = (
            &question[..question.floor_char_boundary(half)],
            &question[question.ceil_char_boundary(question.len() - half)..],
        );
        format!("{head}\n[.. the middle is in the archive ..]\n{tail}")
    };
    format!("{summary}{QUESTION_HEADING}{question}")
}

/// The question itself, without the heading that an earlier compaction added.
fn innermost(question: &str) -> &str {
    question
        .rsplit_once(QUESTION_HEADING)
        .map_or(question, |(_, innermost)| innermost)
}
