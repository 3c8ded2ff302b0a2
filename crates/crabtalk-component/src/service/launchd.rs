//! A property list for launchd; see launchd.plist(5).

use super::Definition;
use super::xml::escaped;

/// The text of the list.
pub(super) fn plist(definition: &Definition) -> String {
    let text = |text: &str| format!("<string>{}</string>", escaped(text));
    let command: Vec<String> = definition
        .command
        .iter()
        .map(|word| format!("\t\t{}\n", text(word)))
        .collect();
    let variable =
        |(name, value): (&str, String)| format!("\t\t<key>{name}</key>\n\t\t{}\n", text(&value));
    let environment: Vec<String> = definition.environment().into_iter().map(variable).collect();
    let log = text(&definition.log());
    let output = match definition.is_daemon {
        true => String::new(),
        false => format!(
            "\t<key>StandardOutPath</key>\n\t{log}\n\t<key>StandardErrorPath</key>\n\t{log}\n"
        ),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \t<key>Label</key>\n\t{label}\n\
         \t<key>ProgramArguments</key>\n\t<array>\n{command}\t</array>\n\
         \t<key>EnvironmentVariables</key>\n\t<dict>\n{environment}\t</dict>\n\
         \t<key>RunAtLoad</key>\n\t<true/>\n\
         \t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n\
         \t<key>Umask</key>\n\t<integer>63</integer>\n\
         {output}\
         </dict>\n\
         </plist>\n",
        label = text(&definition.component.label()),
        command = command.concat(),
        environment = environment.concat(),
        output = output,
    )
}
