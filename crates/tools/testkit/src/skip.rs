use std::env;
use std::fs::OpenOptions;
use std::io::Write;

/// Says that a test, or part of one, does not run here, and why; the caller then returns.
///
/// The line `SKIPPED <name>: <reason>` goes to the error output, past the capture of the test runner. It is also added
/// to the file that the variable `WEIR_SKIP_LOG` names. `make test` prints that file at its end.
///
/// # Panics
/// If `CI=true`, where every test must run.
pub fn skip(name: &str, reason: &str) {
    let line = format!("SKIPPED {name}: {reason}\n");
    assert!(env::var("CI").as_deref() != Ok("true"), "with CI=true every test must run; {line}");
    // One write each, so that lines of concurrent tests do not mix. The print macros would be captured.
    let mut error = std::io::stderr().lock();
    error.write_all(line.as_bytes()).expect("the error output takes a line");
    if let Some(path) = env::var_os("WEIR_SKIP_LOG").filter(|path| !path.is_empty()) {
        let mut log = OpenOptions::new().create(true).append(true).open(&path);
        let file = log.as_mut().expect("the file named by WEIR_SKIP_LOG can be opened");
        file.write_all(line.as_bytes()).expect("the file named by WEIR_SKIP_LOG takes a line");
    }
}
