//! Applications that will not return, and what led to a death.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use dataflow::component::PeerState;
use dataflow::message::Message;

use super::{Complaint, Entry, Registrar, RegistrarDriver, is_exit};
use crate::severity::Severity;

impl Registrar {
    /// A child will not return: the run ends. `why` it does not stands behind `how` it died.
    pub(super) fn lose_for_good(&mut self, driver: &mut dyn RegistrarDriver, place: usize, (how, why): (&str, &str)) {
        let entry = &mut self.entries[place];
        (entry.starts_at, entry.address, entry.is_gone) = (None, None, true);
        let node = entry.node;
        let text = format!("{} died{why}; the run ends", entry.name);
        driver.announce_death(Severity::Error, node, &text, self.causes(place, how));
        for other in (0..self.entries.len()).filter(|other| *other != place) {
            self.say(driver, other, Message::Gone(node));
        }
        driver.tell(node, PeerState::Gone);
        driver.lost_for_good(node, &format!("{how}{why}"));
    }

    /// `why` it is not started again stands behind `how` it died.
    pub(super) fn lose_between_runs(
        &mut self,
        driver: &mut dyn RegistrarDriver,
        place: usize,
        (how, why): (&str, &str),
    ) {
        let Entry { node, name, .. } = &self.entries[place];
        let text = format!("{name} is dead between two runs{why}; no run can begin");
        driver.announce_death(Severity::Error, *node, &text, self.causes(place, how));
        driver.lost_for_good(*node, &format!("{how}{why}"));
    }

    /// The causes of a death, the nearest first: how the process ended, and its own last complaint.
    pub(super) fn causes(&self, place: usize, how: &str) -> Vec<String> {
        let (node, life) = self.entries[place].member();
        let is_own = |complaint: &&Complaint| {
            (complaint.from, complaint.life, complaint.lost) == (node, life, None) && !is_exit(&complaint.text)
        };
        let own = self.complaints.iter().rfind(is_own).map(|complaint| complaint.text.clone());
        // A host is lost because of its agent, and that because of something that may have colons of its own.
        how.splitn(3, ": ").map(String::from).chain(own).collect()
    }
}
