//! Standard input as part of a question.
//!
//! Invariant: only a pipe or a file is read; a terminal belongs to the user, and other
//! inputs may never end.

use crate::error::Error;
use std::io::Read;

pub(crate) use crate::system::is_piped;

/// Maximum size, which fits a frame with the question (WIRE-1).
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Size above which a note is printed: about 50,000 tokens.
const MUCH_BYTES: usize = 200_000;

/// Reads all input; invalid UTF-8 is replaced.
pub(crate) fn read(input: impl Read) -> Result<String, Error> {
    let mut bytes = Vec::new();
    input
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::io("read standard input", &e))?;
    if bytes.len() as u64 > MAX_BYTES {
        let limit = MAX_BYTES / 1024 / 1024;
        return Err(Error::Usage(format!(
            "standard input has more than {limit} MiB: put it into a file and name the file in the question"
        )));
    }
    if bytes.contains(&0) {
        return Err(Error::Usage(
            "standard input is binary: put it into a file and name the \
             file in the question"
                .to_owned(),
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads standard input if it is a pipe or file, unless disabled.
pub(crate) fn piped(no_stdin: bool) -> Result<String, Error> {
    let input = std::io::stdin();
    match !no_stdin && is_piped(&input) {
        true => read(input.lock()),
        false => Ok(String::new()),
    }
}

/// A note about large input.
pub(crate) fn note(piped: &str) -> Option<String> {
    (piped.len() > MUCH_BYTES).then(|| {
        format!(
            "crabtalk: {} KB of standard input go to the model",
            piped.len() / 1000
        )
    })
}

/// Appends standard input to a question.
pub(crate) fn append(question: &str, piped: &str) -> String {
    match (question.trim().is_empty(), piped.trim().is_empty()) {
        (_, true) => question.to_owned(),
        (true, false) => piped.to_owned(),
        (false, false) => format!("{question}\n\n{piped}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn only_a_pipe_or_a_file_is_read() {
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(is_piped(&reader));
        assert!(is_piped(&tempfile::tempfile().unwrap()));
        assert!(!is_piped(&File::open("/dev/null").unwrap()));
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(!is_piped(&socket));
    }

    #[test]
    fn standard_input_follows_the_question() {
        assert_eq!(append("fix", "diff\n"), "fix\n\ndiff\n");
        assert_eq!(append("fix", " \n"), "fix");
        assert_eq!(append("", "diff"), "diff");
        assert_eq!(read(&b"a\xffb"[..]).unwrap(), "a\u{fffd}b");
        let huge = std::io::repeat(b'x').take(MAX_BYTES + 1);
        assert!(matches!(read(huge), Err(Error::Usage(_))));
        let binary = read(&b"\x7fELF\0\0"[..]).unwrap_err().to_string();
        assert!(binary.starts_with("standard input is binary"), "{binary}");
        assert_eq!(note(&"x".repeat(200_000)), None);
        let much = note(&"x".repeat(312_000)).unwrap();
        assert!(much.contains("312 KB"), "{much}");
    }
}
