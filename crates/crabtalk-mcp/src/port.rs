//! What a port file says (COMP-1).

/// A port file is no longer than this.
pub const MAX_PORT_FILE_BYTES: usize = 256;

/// What a port file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortFile {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// Which start of the component this is; the older form has none.
    pub instance: String,
}

/// Why a file is no port file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortFileError {
    /// It is too long.
    #[error("it is longer than {MAX_PORT_FILE_BYTES} bytes")]
    TooLong,
    /// There is no port in it.
    #[error("its first line is no port between 1 and 65535")]
    NoPort,
    /// What follows the port is no instance.
    #[error("its second line is no instance id, which takes letters, digits and dashes")]
    NoInstance,
}

impl PortFile {
    /// Reads the text of a port file: a port, and on the second line, if there
    /// is one, an id of the component's start.
    pub fn parse(bytes: &[u8]) -> Result<Self, PortFileError> {
        if bytes.len() > MAX_PORT_FILE_BYTES {
            return Err(PortFileError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| PortFileError::NoPort)?;
        let mut lines = text.trim_end().lines();
        let first = lines.next().unwrap_or_default().trim();
        let digits = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
        let port = first.parse().ok().filter(|port| digits && *port != 0);
        let port = port.ok_or(PortFileError::NoPort)?;
        let instance = lines.next().map_or("", str::trim);
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if !instance.bytes().all(plain) || lines.next().is_some() {
            return Err(PortFileError::NoInstance);
        }
        Ok(Self {
            port,
            instance: instance.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let read = |text: &str| {
            let file = PortFile::parse(text.as_bytes()).expect("a port file");
            (file.port, file.instance)
        };
        assert_eq!(read("4711"), (4711, String::new()));
        assert_eq!(read("4711\nabc-1\n"), (4711, "abc-1".to_owned()));
        assert_eq!(read(" 80 \r\n"), (80, String::new()));
    }

    #[test]
    fn what_is_no_port_file_is_named() {
        for (bytes, why) in [
            (&b""[..], PortFileError::NoPort),
            (b"0", PortFileError::NoPort),
            (b"65536", PortFileError::NoPort),
            (b"+80", PortFileError::NoPort),
            (b"80 81", PortFileError::NoPort),
            (b"\xff\xfe", PortFileError::NoPort),
            (b"80\n../x", PortFileError::NoInstance),
            (b"80\nx\ny", PortFileError::NoInstance),
            (&[b'1'; 300], PortFileError::TooLong),
        ] {
            assert_eq!(PortFile::parse(bytes), Err(why), "{bytes:?}");
        }
    }
}
