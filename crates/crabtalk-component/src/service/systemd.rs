//! A unit for systemd, as systemd.service(5) and systemd.syntax(7) have it.

use super::Definition;

/// The text of the unit.
pub(super) fn unit(definition: &Definition) -> String {
    let command = command(&definition.command);
    let variable = |(name, value): (&str, String)| {
        let set = quoted(&specifiers(&format!("{name}={value}")));
        format!("Environment={set}\n")
    };
    let environment: String = definition.environment().into_iter().map(variable).collect();
    let kind = match definition.notifies {
        true => "Type=notify\nNotifyAccess=main\n",
        false => "",
    };
    let log = specifiers(&definition.log());
    format!(
        "[Unit]\n\
         Description=CrabTalk {name}: {description}\n\
         \n\
         [Service]\n\
         {kind}ExecStart={command}\n\
         {environment}\
         Restart=on-failure\n\
         RestartSec=2\n\
         UMask=0077\n\
         StandardOutput=append:{log}\n\
         StandardError=append:{log}\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        name = definition.component.name(),
        description = specifiers(definition.component.description()),
    )
}

/// The first word is a path without variables, in which systemd accepts no quotes
/// and the like. A shell hands on what it does not.
fn command(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/-_.+@,= %".contains(c);
    let (program, rest) = words.split_first().expect("a definition has a program");
    let mut line: Vec<String> = match program.chars().all(plain) {
        true => vec![quoted(&specifiers(program))],
        false => ["/bin/sh", "-c", "exec \"$0\" \"$@\"", program]
            .map(argument)
            .to_vec(),
    };
    line.extend(rest.iter().map(|word| argument(word)));
    line.join(" ")
}

/// A word of a command: `$` begins a variable there, too.
fn argument(word: &str) -> String {
    quoted(&specifiers(word).replace('$', "$$"))
}

/// `%` begins a specifier.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
