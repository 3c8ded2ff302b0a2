//! A task for the task scheduler of Windows: XML of its schema 1.2.

use super::Definition;
use super::xml::escaped;

/// The task in UTF-16 with a byte order mark, as `schtasks /XML` reads it.
pub(super) fn task(definition: &Definition) -> Vec<u8> {
    let text = text(definition);
    std::iter::once(0xfeff)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// The XML text of the task.
pub(super) fn text(definition: &Definition) -> String {
    // The scheduler drops the output of a task, so a shell redirects it to the log. One pair of
    // quotes encloses the whole line. `cmd /c` reads the line as typed input, in which `%` is literal
    // unless a pair encloses the name of a variable; `%%`, as in a batch file, would yield two.
    let words: Vec<String> = definition
        .command
        .iter()
        .map(|word| argument(word))
        .collect();
    let output = match definition.is_daemon {
        true => String::new(),
        false => format!(" >> {} 2>&1", argument(&definition.log())),
    };
    let line = format!(
        "/d /s /c \"set \"CRABTALK_HOME={home}\" && {command}{output}\"",
        home = definition.home.path().display(),
        command = words.join(" "),
        output = output,
    );
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-16\"?>\r\n\
         <Task version=\"1.2\" xmlns=\"http://schemas.microsoft.com/windows/2004/02/mit/task\">\r\n\
         <RegistrationInfo><Description>{description}</Description></RegistrationInfo>\r\n\
         <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>\r\n\
         <Principals><Principal id=\"Author\"><LogonType>InteractiveToken</LogonType>\
         <RunLevel>LeastPrivilege</RunLevel></Principal></Principals>\r\n\
         <Settings><MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>\
         <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>\
         <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>\
         <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>\
         <RestartOnFailure><Interval>PT1M</Interval><Count>10</Count></RestartOnFailure></Settings>\r\n\
         <Actions Context=\"Author\"><Exec><Command>cmd.exe</Command>\
         <Arguments>{line}</Arguments></Exec></Actions>\r\n\
         </Task>\r\n",
        description = escaped(&format!(
            "CrabTalk {}: {}",
            definition.component.name(),
            definition.component.description()
        )),
        line = escaped(&line),
    )
}

/// Quotes an argument as programs split their command lines: backslashes are special
/// only before a quote, where each is doubled.
fn argument(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:\\".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let (mut out, mut backslashes) = (String::from("\""), 0);
    for c in word.chars() {
        match c {
            '\\' => backslashes += 1,
            '"' => {
                out.push_str(&"\\".repeat(backslashes * 2 + 1));
                out.push('"');
                backslashes = 0;
                continue;
            }
            _ => {
                out.push_str(&"\\".repeat(backslashes));
                backslashes = 0;
                out.push(c);
                continue;
            }
        }
    }
    out.push_str(&"\\".repeat(backslashes * 2));
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_as_programs_read_them() {
        for (word, want) in [
            ("plain", "plain"),
            ("C:\\Program Files\\x.exe", "\"C:\\Program Files\\x.exe\""),
            ("", "\"\""),
            ("a\"b", "\"a\\\"b\""),
            ("a\\\"b", "\"a\\\\\\\"b\""),
            ("ends with\\", "\"ends with\\\\\""),
        ] {
            assert_eq!(argument(word), want, "{word}");
        }
    }
}
