//! Whole numbers of the command line, and what is said of what is none.
//!
//! Invariant: a person is told what to write, never what a parser thought.

/// What is said of a number that no type of ours holds.
const TOO_LARGE: &str = "that number is larger than any that counts";

/// Reads a whole number that is that large or larger.
pub(crate) fn at_least<T: TryFrom<u64>>(
    least: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| match digits(text) {
        Digits::Number(number) if number >= least => {
            T::try_from(number).map_err(|_| TOO_LARGE.to_owned())
        }
        Digits::TooMany => Err(TOO_LARGE.to_owned()),
        Digits::Number(_) | Digits::None => Err(format!("write a whole number, {least} or more")),
    }
}

/// Reads a whole number from one to another, both included.
pub(crate) fn between<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = match digits(text) {
            Digits::Number(number) if (least..=most).contains(&number) => T::try_from(number).ok(),
            Digits::Number(_) | Digits::TooMany | Digits::None => None,
        };
        number.ok_or_else(|| format!("write a whole number from {least} to {most}"))
    }
}

/// What a word says that may be a number.
enum Digits {
    Number(u64),
    /// More digits than a number holds.
    TooMany,
    /// Something else than digits.
    None,
}

fn digits(text: &str) -> Digits {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Digits::None;
    }
    text.parse().map_or(Digits::TooMany, Digits::Number)
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::error::ErrorKind;
    use clap::{Arg, Command, CommandFactory, Parser};
    use std::any::TypeId;

    #[test]
    fn what_is_no_number_says_what_to_write() {
        let said = |line: &str| {
            let read = Cli::try_parse_from(line.split(' '));
            read.expect_err(line).render().to_string()
        };
        for (line, says) in [
            (
                "crabtalk history --limit x",
                "invalid value 'x' for '--limit <N>': write a whole number, 1 or more",
            ),
            (
                "crabtalk history --limit 0",
                "invalid value '0' for '--limit <N>': write a whole number, 1 or more",
            ),
            (
                "crabtalk search --limit 51 x",
                "invalid value '51' for '--limit <N>': write a whole number from 1 to 50",
            ),
            (
                "crabtalk stats --days 1e3",
                "invalid value '1e3' for '--days <N>': write a whole number from 1 to 400",
            ),
            (
                "crabtalk history --limit 99999999999999999999",
                "that number is larger than any that counts",
            ),
            (
                "crabtalk undo x",
                "invalid value 'x' for '[RUN]': write a whole number, 0 or more",
            ),
        ] {
            assert!(said(line).contains(says), "{line}: {}", said(line));
        }
    }

    fn is_number(argument: &Arg) -> bool {
        let read = argument.get_value_parser().type_id();
        let numbers = [
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<i64>(),
        ];
        numbers.iter().any(|number| read == *number)
    }

    /// A line for each number of a command and of those below it, in whose place
    /// stands a word.
    fn lines(command: &Command, path: &[String], found: &mut Vec<Vec<String>>) {
        let positionals: Vec<&Arg> = command.get_positionals().collect();
        for argument in command
            .get_arguments()
            .filter(|argument| is_number(argument))
        {
            let mut line = path.to_vec();
            match argument.get_long() {
                Some(long) => line.extend([format!("--{long}"), "word".into()]),
                None => {
                    let before = positionals
                        .iter()
                        .take_while(|p| p.get_id() != argument.get_id());
                    line.extend(before.map(|_| "1".to_owned()));
                    line.push("word".into());
                }
            }
            found.push(line);
        }
        for below in command.get_subcommands() {
            let path = [path, &[below.get_name().to_owned()]].concat();
            lines(below, &path, found);
        }
    }

    #[test]
    fn no_number_of_any_command_answers_with_a_parsers_words() {
        let mut found = Vec::new();
        let mut command = Cli::command();
        command.build();
        lines(&command, &["crabtalk".to_owned()], &mut found);
        assert!(found.len() > 20, "{found:?}");
        for line in found {
            let error = Cli::try_parse_from(&line).expect_err("it is no number");
            let said = error.render().to_string();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line:?}: {said}");
            assert!(said.contains("write a whole number"), "{line:?}: {said}");
        }
    }
}
