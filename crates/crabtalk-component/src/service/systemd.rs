//! A unit for systemd; see systemd.service(5) and systemd.syntax(7).

use super::Definition;

/// The text of the unit.
pub(super) fn unit(definition: &Definition) -> String {
    let command = command(&definition.command);
    let environment = definition.environment().into_iter();
    let environment: String = environment
        .map(|(name, value)| format!("Environment={}\n", variable(name, &value)))
        .collect();
    let log = specifiers(&definition.log());
    // The daemon writes its own log.
    let (kind, output) = match definition.is_daemon {
        true => ("Type=notify\nNotifyAccess=main\n", String::new()),
        false => (
            "",
            format!("StandardOutput=append:{log}\nStandardError=append:{log}\n"),
        ),
    };
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
         {output}\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        name = definition.component.name(),
        description = specifiers(definition.component.description()),
    )
}

/// A variable in the syntax of units.
pub(super) fn variable(name: &str, value: &str) -> String {
    quoted(&specifiers(&format!("{name}={value}")))
}

/// The command line. systemd does not accept quotes and some other characters in the path of
/// the program; such a program is run by a shell.
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

/// Quotes an argument and escapes `$`, which begins a variable.
fn argument(word: &str) -> String {
    quoted(&specifiers(word).replace('$', "$$"))
}

/// Escapes `%`, which begins a specifier.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
