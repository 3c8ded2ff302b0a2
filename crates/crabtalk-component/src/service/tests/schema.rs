//! Tasks against the published schema of the task scheduler.

use super::*;

/// What the published schema of tasks (MS-TSCH 2.5) has of what we write. The scheduler refuses a
/// task with anything else.
enum Says {
    /// Each at most once, in any order (`xs:all`); the second ones have to be there.
    All(&'static str, &'static str),
    /// In this order.
    Sequence(&'static str),
    /// At least one of these, and at most so many.
    Some(&'static str, usize),
    /// One of these words.
    Word(&'static str),
    /// `xs:boolean`.
    Boolean,
    /// `xs:duration` without a sign, of so many seconds at least and at most.
    Duration(u64, u64),
    /// A number in this range.
    Number(u64, u64),
    /// Text of so many letters at least and at most.
    Text(usize, usize),
}

fn schema(element: &str) -> Says {
    let any = usize::MAX;
    match element {
        "Task" => Says::All(
            "RegistrationInfo Triggers Settings Data Principals Actions",
            "Actions",
        ),
        "RegistrationInfo" => Says::All(
            "URI SecurityDescriptor Source Date Author Version Description Documentation",
            "",
        ),
        "Triggers" => Says::Some(
            "BootTrigger RegistrationTrigger IdleTrigger TimeTrigger EventTrigger LogonTrigger \
             SessionStateChangeTrigger CalendarTrigger",
            48,
        ),
        "LogonTrigger" => Says::Sequence(
            "Enabled StartBoundary EndBoundary Repetition ExecutionTimeLimit UserId Delay",
        ),
        "Principals" => Says::Some("Principal", 1),
        "Principal" => Says::All(
            "UserId LogonType GroupId DisplayName RunLevel ProcessTokenSidType RequiredPrivileges",
            "",
        ),
        // Without what later versions added.
        "Settings" => Says::All(
            "AllowStartOnDemand RestartOnFailure MultipleInstancesPolicy \
             DisallowStartIfOnBatteries StopIfGoingOnBatteries AllowHardTerminate \
             StartWhenAvailable NetworkProfileName RunOnlyIfNetworkAvailable WakeToRun Enabled \
             Hidden DeleteExpiredTaskAfter IdleSettings NetworkSettings ExecutionTimeLimit \
             Priority RunOnlyIfIdle",
            "",
        ),
        "RestartOnFailure" => Says::All("Interval Count", "Interval Count"),
        "Actions" => Says::Some("Exec ComHandler SendEmail ShowMessage", 32),
        "Exec" => Says::All("Command Arguments WorkingDirectory", "Command"),
        "Enabled" | "DisallowStartIfOnBatteries" | "StopIfGoingOnBatteries" => Says::Boolean,
        "LogonType" => Says::Word("S4U Password InteractiveToken InteractiveTokenOrPassword"),
        "RunLevel" => Says::Word("LeastPrivilege HighestAvailable"),
        "MultipleInstancesPolicy" => Says::Word("Parallel Queue IgnoreNew StopExisting"),
        "ExecutionTimeLimit" => Says::Duration(0, u64::MAX),
        "Interval" => Says::Duration(60, 31 * 24 * 3600),
        "Count" => Says::Number(1, 255),
        "Command" => Says::Text(1, 260),
        "Arguments" | "Description" => Says::Text(0, any),
        other => panic!("{other} is not in the schema"),
    }
}

/// `P1DT2H3M4S` in seconds, as `xs:duration` spells it: parts in their order, `T` before
/// those of a day, at least one.
fn duration(text: &str) -> Option<u64> {
    let text = text.strip_prefix('P')?;
    let (days, times) = match text.split_once('T') {
        Some((_, "")) => return None,
        Some((days, times)) => (days, times),
        None => (text, ""),
    };
    let mut total = 0;
    for (mut rest, units) in [
        (days, &[('D', 86400)][..]),
        (times, &[('H', 3600), ('M', 60), ('S', 1)]),
    ] {
        let mut units = units.iter();
        while !rest.is_empty() {
            let (number, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
            let letter = behind.chars().next()?;
            let (_, seconds) = units.find(|(unit, _)| *unit == letter)?;
            total += number.parse::<u64>().ok()? * seconds;
            rest = &behind[1..];
        }
    }
    (!text.is_empty()).then_some(total)
}

/// Whether an element is one of the schema, with those in it.
fn check(node: roxmltree::Node<'_, '_>) -> Result<(), String> {
    let name = node.tag_name();
    if name.namespace() != Some(NAMESPACE) {
        return Err(format!("{} is in another namespace", name.name()));
    }
    let attributes: Vec<&str> = node.attributes().map(|a| a.name()).collect();
    let may_have = match name.name() {
        "Task" => "version",
        "Principal" | "LogonTrigger" | "Exec" => "id",
        "Actions" => "Context",
        _ => "",
    };
    if attributes.iter().any(|name| *name != may_have) {
        return Err(format!("{}: {attributes:?}", name.name()));
    }
    let elements: Vec<_> = node.children().filter(|n| n.is_element()).collect();
    let children: Vec<&str> = elements.iter().map(|n| n.tag_name().name()).collect();
    let text = node.text().unwrap_or_default();
    let places = |known: &str| -> Option<Vec<usize>> {
        let place = |child: &&str| known.split_whitespace().position(|known| known == *child);
        children.iter().map(place).collect()
    };
    let once = |mut places: Vec<usize>| {
        let count = places.len();
        places.sort_unstable();
        places.dedup();
        places.len() == count
    };
    let fine = match schema(name.name()) {
        Says::All(known, needed) => {
            let needed = needed.split_whitespace().all(|one| children.contains(&one));
            needed && places(known).is_some_and(once)
        }
        Says::Sequence(known) => {
            places(known).is_some_and(|places| places.is_sorted() && once(places))
        }
        Says::Some(known, most) => places(known).is_some() && (1..=most).contains(&children.len()),
        Says::Word(known) => known.split(' ').any(|known| known == text),
        Says::Boolean => ["true", "false", "1", "0"].contains(&text),
        Says::Duration(least, most) => {
            duration(text).is_some_and(|secs| (least..=most).contains(&secs))
        }
        Says::Number(least, most) => text
            .parse()
            .is_ok_and(|number| (least..=most).contains(&number)),
        Says::Text(least, most) => (least..=most).contains(&text.chars().count()),
    };
    let is_mixed = !children.is_empty() && !text.trim().is_empty();
    if !fine || is_mixed {
        return Err(format!("{}: {children:?} {text:?}", name.name()));
    }
    elements.into_iter().try_for_each(check)
}

/// Whether a task is one of the schema.
fn is_of_the_schema(text: &str) -> Result<(), String> {
    let task = roxmltree::Document::parse(text).map_err(|e| e.to_string())?;
    let root = task.root_element();
    if !root.has_tag_name((NAMESPACE, "Task")) || root.attribute("version") != Some("1.2") {
        return Err("it is no task of version 1.2".into());
    }
    // Whose actions they are is one of the principals, and no id is there twice.
    let of = |name: &'static str| {
        let mut all = root.descendants();
        all.find(move |node| node.has_tag_name((NAMESPACE, name)))
    };
    let context = of("Actions").and_then(|node| node.attribute("Context"));
    let ids: Vec<_> = root
        .descendants()
        .filter_map(|n| n.attribute("id"))
        .collect();
    if context.is_some_and(|context| ids != [context]) {
        return Err(format!("{context:?} is none of {ids:?}"));
    }
    check(root)
}

#[test]
fn a_task_is_one_of_its_schema() {
    let text = schtasks::text(&odd());
    assert_eq!(is_of_the_schema(&text), Ok(()));
    // Whatever breaks one of its rules is noticed.
    for (rule, from, to) in [
        ("the namespace", "2004/02/mit", "2004/03/mit"),
        ("the version", "version=\"1.2\"", "version=\"1\""),
        ("what has to be there", "<Command>cmd.exe</Command>", ""),
        ("an interval and a count", "<Count>10</Count>", ""),
        ("the least interval", "<Interval>PT1M", "<Interval>PT59S"),
        ("the spelling of times", "PT0S", "P0S"),
        ("the spelling of times", "PT0S", "0"),
        ("the range of numbers", "<Count>10", "<Count>256"),
        ("the spelling of booleans", "<Enabled>true", "<Enabled>True"),
        ("the words", "IgnoreNew", "ignoreNew"),
        ("the length of paths", "cmd.exe", &"c".repeat(261)),
        ("each once", "<Settings>", "<Settings><RestartOnFailure/>"),
        (
            "the order",
            "<Enabled>true</Enabled></LogonTrigger>",
            "<Delay>PT1S</Delay><Enabled>true</Enabled></LogonTrigger>",
        ),
        (
            "one principal",
            "</Principal>",
            "</Principal><Principal id=\"B\"/>",
        ),
        (
            "whose actions they are",
            "Context=\"Author\"",
            "Context=\"Other\"",
        ),
        ("attributes", "<Exec>", "<Exec name=\"x\">"),
        ("an action", "Exec>", "Run>"),
    ] {
        let broken = text.replace(from, to);
        assert_ne!(broken, text, "{rule}");
        let checked = std::panic::catch_unwind(|| is_of_the_schema(&broken));
        assert!(!matches!(checked, Ok(Ok(()))), "{rule}: {broken}");
    }
    for (text, seconds) in [
        ("PT0S", Some(0)),
        ("P1DT2H3M4S", Some(93784)),
        ("P1D", Some(86400)),
        ("PT90M", Some(5400)),
        ("PT", None),
        ("P", None),
        ("P1H", None),
        ("PT1D", None),
        ("PT1S1M", None),
        ("1M", None),
        ("", None),
    ] {
        assert_eq!(duration(text), seconds, "{text}");
    }
}

/// Its bytes say of themselves what they are, to a reader that is not ours.
#[test]
fn a_tasks_bytes_are_what_they_declare() {
    let test = "a_tasks_bytes_are_what_they_declare";
    if !crabtalk_testkit::tools::has_tools(test, &["python3"]) {
        return;
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), schtasks::task(&odd())).expect("written");
    let read = "import sys, xml.etree.ElementTree as tree; sys.stdout.buffer.write(\
        tree.parse(sys.argv[1]).getroot()[-1][0][1].text.encode())";
    let output = std::process::Command::new("python3")
        .args(["-c", read])
        .arg(file.path())
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("/opt/my apps/100%/") && said.contains("<&'>é"),
        "{said} {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

const NAMESPACE: &str = "http://schemas.microsoft.com/windows/2004/02/mit/task";
