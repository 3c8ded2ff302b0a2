//! Lines of a log with anything in them.

use crate::encode;
use crate::line::{Kind, Line, Stamp, is_blank, kind, parse, parse_head};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/corpus/lines");

/// The short and the full classification of a line agree, and a parsed line
/// survives a round trip.
#[test]
fn fuzz_log_lines() {
    crabtalk_testkit::fuzz(CORPUS, |bytes| {
        let _ = parse_head(bytes).map(|head| head.key());
        let line = parse(bytes);
        assert!(!is_blank(bytes) || line.is_err());
        let Ok(line) = line else { return };
        let mut again = Vec::new();
        match line {
            Line::Message(message) => {
                assert_eq!(kind(bytes), Kind::Message);
                encode::message(&mut again, &message);
                let read = parse(&again);
                assert!(
                    matches!(&read, Ok(Line::Message(same)) if format!("{same:?}") == format!("{message:?}")),
                    "{message:?} became {read:?}"
                );
            }
            Line::Run(run, _) => {
                encode::run(&mut again, &run, Stamp::default());
                let read = parse(&again);
                assert!(
                    matches!(&read, Ok(Line::Run(same, _)) if *same == run),
                    "{run:?} became {read:?}"
                );
            }
            Line::Marker(_) => assert_eq!(kind(bytes), Kind::Marker),
            Line::Rewind(to, _) => {
                assert_eq!(kind(bytes), Kind::Other);
                encode::rewind(&mut again, to, "", Stamp::default());
                let read = parse(&again);
                assert!(matches!(read, Ok(Line::Rewind(same, _)) if same == to));
            }
            Line::Meta(..) | Line::ForeignRole | Line::Unknown => {
                assert_ne!(kind(bytes), Kind::Message);
            }
        }
    });
}
