//! What a collector wants to read at the head of each request, such as a token.

use std::path::Path;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::TelemetryError;
use crate::secret_file;

/// The headers in a file, one in a line. Their values are printed nowhere.
///
/// # Errors
/// The file cannot be read, or others can read it, or a line is no header, or one that is Weir's to say.
pub(super) fn read(path: &Path) -> Result<HeaderMap, TelemetryError> {
    let text = secret_file::read("control.otlp_headers", path)?;
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let mut headers = HeaderMap::new();
    for (number, line) in lines {
        let (name, value) = header(line).ok_or_else(|| TelemetryError::Header { path: path.to_owned(), number })?;
        headers.append(name, value);
    }
    Ok(headers)
}

fn header(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let name: HeaderName = name.trim().parse().ok().filter(|name: &HeaderName| !OWN.contains(&name.as_str()))?;
    let mut value: HeaderValue = value.trim().parse().ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// Those that tell how a request is to be read.
const OWN: [&str; 6] =
    ["connection", "content-encoding", "content-length", "content-type", "host", "transfer-encoding"];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use testkit::TempDir;

    use super::*;

    #[test]
    fn headers_stand_in_a_file_that_nobody_else_can_read() {
        let directory = TempDir::new("headers");
        let path = directory.join("headers");
        let of = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read(&path).map_err(|error| error.to_string())
        };
        let headers = of("Authorization: Bearer a:b\n\nX-Scope-OrgID: daq\n", 0o600).unwrap();
        assert!(headers["authorization"] == "Bearer a:b" && headers["x-scope-orgid"] == "daq", "{:?}", headers.keys());
        assert!(!format!("{headers:?}").contains("Bearer"));
        assert!(of("A: b", 0o644).unwrap_err().contains("control.otlp_headers"));
        for wrong in
            ["Authorization", "A b: token", "A: token\nHost: other", "content-length: 7", ": token", "A: \u{7f}"]
        {
            let error = of(wrong, 0o600).unwrap_err();
            assert!(error.contains("expected NAME: VALUE") && !error.contains("token"), "{wrong:?}: {error}");
        }
    }
}
