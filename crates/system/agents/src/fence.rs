//! Whether another run control has taken over what this one conducts.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file says which process may conduct. Who takes over writes there before anything else. So run control that was stopped meanwhile
/// reads that it is another one, and must not touch anything any more. Clones are the same fence.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<Mutex<Option<(PathBuf, String)>>>);

impl Fence {
    /// From now on this process may act while this file holds these words.
    pub fn raise(&self, file: PathBuf, words: String) {
        *self.state() = Some((file, words));
    }

    /// Nobody can take over any more.
    pub fn lower(&self) {
        *self.state() = None;
    }

    /// Whether another run control has taken over.
    pub fn is_passed(&self) -> bool {
        // Nobody has taken over where the file is gone, or cannot be read.
        self.state().as_ref().is_some_and(|(file, words)| fs::read_to_string(file).is_ok_and(|text| text != *words))
    }

    fn state(&self) -> MutexGuard<'_, Option<(PathBuf, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use testkit::TempDir;

    use super::*;

    #[test]
    fn only_other_words_pass_a_fence_that_was_raised() {
        let (directory, fence) = (TempDir::new("fence"), Fence::default());
        let file = directory.join("who");
        fence.raise(file.clone(), "this one".into());
        assert!(!fence.is_passed(), "no file");
        fs::write(&file, "this one").unwrap();
        assert!(!fence.is_passed());
        fs::write(&file, "").unwrap();
        assert!(fence.clone().is_passed(), "another one is about to write");
        fence.lower();
        assert!(!fence.is_passed());
    }
}
