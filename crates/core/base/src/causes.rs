//! The causes of an error, apart from its own words: nobody reads a cause twice. They travel in one text where only a text has room.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::error::Error;
use core::iter::successors;

/// An error and what has led to it, the nearest cause first. Each loses the words that repeat the next one.
pub fn sentences(error: &dyn Error) -> Vec<String> {
    let mut all = Vec::from([error.to_string()]);
    for cause in successors(error.source(), |cause| (*cause).source()) {
        let cause = cause.to_string();
        let Some(before) = all.last_mut().filter(|before| **before != cause && !cause.is_empty()) else { continue };
        *before = without(before, &format!(": {cause}"));
        // In other places it cannot be taken out.
        if !before.contains(&cause) {
            all.push(cause);
        }
    }
    all
}

/// A text without this part, where it stands as one: at the end, or before another one.
fn without(text: &str, part: &str) -> String {
    text.strip_suffix(part).map_or_else(|| text.replacen(&format!("{part}: "), ": ", 1), Into::into)
}

/// The same in one text, which [`apart`] takes apart again.
pub fn together(error: &dyn Error) -> String {
    sentences(error).join(BECAUSE)
}

/// The sentences of a text: what it says, and perhaps what has led to that.
pub fn apart(text: &str) -> Vec<String> {
    text.split(BECAUSE).map(Into::into).collect()
}

const BECAUSE: &str = "\nbecause: ";

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use core::fmt;

    use super::*;

    #[derive(Debug)]
    struct Fault(&'static str, Option<Box<Self>>);

    impl fmt::Display for Fault {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Fault {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn told(texts: &[&'static str]) -> Vec<String> {
        let error = texts.iter().rev().fold(None, |cause, text| Some(Box::new(Fault(text, cause)))).unwrap();
        let told = sentences(&error);
        assert_eq!(apart(&together(&error)), told);
        told
    }

    #[test]
    fn each_cause_is_told_once_and_the_nearest_first() {
        assert_eq!(told(&["outer", "inner"]), ["outer", "inner"]);
        assert_eq!(told(&["a: b: c", "b: c", "c"]), ["a", "b", "c"]);
        assert_eq!(told(&["a: b", "a: b", "b"]), ["a", "b"], "what is passed on as it is");
        assert_eq!(
            told(&["cannot write x: no room: remove some", "no room"]),
            ["cannot write x: remove some", "no room"]
        );
        assert_eq!(told(&["cannot write a: no room left: no room", "no room"]), ["cannot write a: no room left"]);
        assert_eq!(told(&["cannot write a: no roomy disk", "no room", ""]), ["cannot write a: no roomy disk"]);
        assert_eq!(told(&["no room (disk)", "disk", "errno"]), ["no room (disk)", "errno"]);
    }
}
