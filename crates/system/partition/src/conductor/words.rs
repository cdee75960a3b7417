//! What applications said of themselves.

use std::collections::BTreeMap;

use base::ids::NodeId;

use driver::RECORDING_STALLED;

/// The last words of each application, with what led to them. They say why it died or a forced end was needed, and what
/// holds up the run now.
#[derive(Default)]
pub(super) struct Words {
    last: BTreeMap<NodeId, Vec<String>>,
    /// Recorders that cannot write, with what they said of it.
    stalled: BTreeMap<NodeId, Vec<String>>,
}

impl Words {
    /// Notes what an application said, with what led to it. What is known of that is returned.
    pub(super) fn hear(&mut self, from: NodeId, said: Vec<String>) -> Vec<String> {
        match said.first().map(String::as_str) {
            // What it said before is why.
            Some(RECORDING_STALLED) => {
                let causes = self.last.get(&from).cloned().unwrap_or_default();
                let words = [&["recording has stalled".to_owned()], &causes[..]].concat();
                self.last.insert(from, words.clone());
                self.stalled.insert(from, words);
                causes
            }
            _ => {
                let causes = said.get(1..).unwrap_or_default().to_vec();
                self.last.insert(from, said);
                causes
            }
        }
    }

    /// What an application has said holds no more: it goes on as it should, or was of a former life.
    pub(super) fn forget(&mut self, node: NodeId) {
        self.last.remove(&node);
        self.stalled.remove(&node);
    }

    /// What an application said last.
    pub(super) fn last(&self, node: NodeId) -> Option<String> {
        self.last.get(&node).map(|words| words.join(": "))
    }

    /// What holds up the run now, in words.
    pub(super) fn troubles(&self, name: impl Fn(NodeId) -> String) -> impl Iterator<Item = String> {
        self.stalled.iter().map(move |(node, words)| format!("{}: {}", name(*node), words.join(": ")))
    }

    /// The last words of each.
    pub(super) fn into_last(self) -> impl Iterator<Item = (NodeId, String)> {
        // A retry may have failed for another reason, but that it goes on failing comes first.
        let Self { last, stalled } = self;
        last.into_iter().map(move |(node, words)| (node, stalled.get(&node).unwrap_or(&words).join(": ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_the_last_word_and_a_trouble_until_recording_goes_on() {
        let (mut words, sfo) = (Words::default(), NodeId(9));
        let troubles = |words: &Words| words.troubles(|node| format!("sfo-{}", node.0)).collect::<Vec<_>>();
        let hear =
            |words: &mut Words, said: &[&str]| words.hear(sfo, said.iter().map(|&said| said.to_owned()).collect());
        for _ in 0..2 {
            assert_eq!(hear(&mut words, &["cannot write x", "No space left on device"]), ["No space left on device"]);
            assert_eq!(hear(&mut words, &[RECORDING_STALLED]), ["cannot write x", "No space left on device"]);
            let said = "sfo-9: recording has stalled: cannot write x: No space left on device";
            assert_eq!(troubles(&words), [said]);
            hear(&mut words, &["something else"]);
            assert_eq!(troubles(&words), [said]);
            let last: Vec<_> = Words { last: words.last.clone(), stalled: words.stalled.clone() }.into_last().collect();
            assert_eq!(last, [(sfo, said["sfo-9: ".len()..].to_owned())]);
            words.forget(sfo);
            assert!(troubles(&words).is_empty());
        }
        hear(&mut words, &["no room", "a quota"]);
        assert_eq!(words.last(sfo).as_deref(), Some("no room: a quota"));
        words.forget(sfo);
        assert_eq!(words.into_last().count(), 0);
    }
}
