//! What applications said of themselves.

use std::collections::BTreeMap;

use base::ids::NodeId;

use driver::{RECORDING_RESUMED, RECORDING_STALLED};

/// The last words of each application: why a forced end was needed, and what holds up the run now.
#[derive(Default)]
pub(super) struct Words {
    last: BTreeMap<NodeId, String>,
    /// Recorders that cannot write, with what they said of it.
    stalled: BTreeMap<NodeId, String>,
}

impl Words {
    /// Notes what an application said.
    pub(super) fn hear(&mut self, from: NodeId, text: &str) {
        match text {
            RECORDING_RESUMED => {
                self.last.remove(&from);
                self.stalled.remove(&from);
            }
            // What it said before is why.
            RECORDING_STALLED => {
                let text = match self.last.get(&from) {
                    Some(cause) => format!("recording has stalled: {cause}"),
                    None => "recording has stalled".to_owned(),
                };
                self.last.insert(from, text.clone());
                self.stalled.insert(from, text);
            }
            text => _ = self.last.insert(from, text.to_owned()),
        }
    }

    /// What holds up the run now, in words.
    pub(super) fn troubles(&self, name: impl Fn(NodeId) -> String) -> impl Iterator<Item = String> {
        self.stalled.iter().map(move |(node, text)| format!("{}: {text}", name(*node)))
    }

    /// The last words of each.
    pub(super) fn into_last(self) -> impl Iterator<Item = (NodeId, String)> {
        // A retry may have failed for another reason, but that it goes on failing comes first.
        let Self { last, stalled } = self;
        last.into_iter().map(move |(node, text)| (node, stalled.get(&node).cloned().unwrap_or(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_the_last_word_and_a_trouble_until_recording_goes_on() {
        let (mut words, sfo) = (Words::default(), NodeId(9));
        let troubles = |words: &Words| words.troubles(|node| format!("sfo-{}", node.0)).collect::<Vec<_>>();
        for _ in 0..2 {
            words.hear(sfo, "cannot write x: No space left on device");
            words.hear(sfo, RECORDING_STALLED);
            let said = "sfo-9: recording has stalled: cannot write x: No space left on device";
            assert_eq!(troubles(&words), [said]);
            words.hear(sfo, "something else");
            assert_eq!(troubles(&words), [said]);
            let last: Vec<_> = Words { last: words.last.clone(), stalled: words.stalled.clone() }.into_last().collect();
            assert_eq!(last, [(sfo, said["sfo-9: ".len()..].to_owned())]);
            words.hear(sfo, RECORDING_RESUMED);
            assert!(troubles(&words).is_empty());
        }
        assert_eq!(words.into_last().count(), 0);
    }
}
