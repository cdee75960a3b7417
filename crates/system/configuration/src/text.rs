//! The text of a configuration file, out of whatever somebody names as one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::problem::{ConfigurationError, Place, Problem};

/// Why a file has no text.
pub(crate) struct Unread {
    /// Line and column of the first byte that is no text, if there is one.
    at: Option<(usize, usize)>,
    message: String,
}

impl Unread {
    /// The same as an error of the file of this name.
    pub(crate) fn in_file(self, name: &str) -> ConfigurationError {
        let name = name.to_owned();
        let place = match self.at {
            Some((line, column)) => Place::At { name, line, column },
            None => Place::File { name },
        };
        ConfigurationError { problems: vec![Problem { place, key: String::new(), message: self.message }] }
    }
}

/// The text of the file at `path`, which errors call `what`.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, Unread> {
    let unread = |message: String| Unread { at: None, message };
    let mut bytes = Vec::new();
    let mut file = File::open(path).map_err(|error| unread(format!("cannot open: {error}")))?;
    let read = Read::by_ref(&mut file).take(FILE_SIZE_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| unread(format!("cannot read: {error}")))?;
    if let Some(data) = kind_of_data(&bytes) {
        return Err(unread(format!("expected a {what}, a text in TOML, found {data}")));
    }
    if bytes.len() as u64 > FILE_SIZE_MAX {
        return Err(unread(format!("expected a {what}, found a file larger than {FILE_SIZE_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..start]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count()) + 1;
        let byte = error.as_bytes()[start];
        Unread { at: Some((line, column)), message: format!("expected text in UTF-8, found the byte 0x{byte:02x}") }
    })
}

/// What a file is that begins like data.
fn kind_of_data(bytes: &[u8]) -> Option<&'static str> {
    let begins = |marks: &[&[u8]]| marks.iter().any(|mark| bytes.starts_with(mark));
    if begins(&[&RAW_FILE_START.to_le_bytes(), &RAW_FILE_START.to_be_bytes()]) {
        Some("a RAW data file: `weir file ls` says what is in it, and input.files of a configuration reads it")
    } else if begins(&[b"PAR1"]) {
        Some("a Parquet file: input.files of a configuration reads it")
    } else if bytes.contains(&0) {
        Some("a binary file")
    } else {
        None
    }
}

/// The first word of a RAW file (format note §11).
const RAW_FILE_START: u32 = 0x1234_aaaa;

/// Bounds what is read when somebody names a data file by mistake.
const FILE_SIZE_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a file with these bytes.
    fn said(test: &str, bytes: &[u8]) -> String {
        let directory = testkit::TempDir::new(test);
        let path = directory.join("given.toml");
        std::fs::write(&path, bytes).unwrap();
        let unread = read(&path, "configuration").expect_err("no configuration");
        unread.in_file("given.toml").to_string()
    }

    #[test]
    fn text_that_is_not_utf_8_is_said_with_its_line() {
        let latin = b"partition.name = \"p\"\nsfi.count = 1 # f\xfcr zwei\n";
        assert_eq!(said("latin", latin), "given.toml:2:18: expected text in UTF-8, found the byte 0xfc");
    }

    #[test]
    fn data_in_the_place_of_a_configuration_are_named() {
        let mut raw = RAW_FILE_START.to_le_bytes().to_vec();
        raw.resize(3 << 20, 7);
        assert!(said("raw", &raw).starts_with(
            "given.toml: expected a configuration, a text in TOML, found a RAW data file: `weir file ls` says"
        ));
        assert!(said("parquet", b"PAR1\x15\x04").contains("found a Parquet file"));
        assert!(said("binary", b"\x7fELF\0\0").contains("found a binary file"));
        assert!(said("long", &vec![b'#'; 2 << 20]).contains("found a file larger than 1048576 bytes"));
    }
}
