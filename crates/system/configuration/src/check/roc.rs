//! What read-out crates demand: `[roc]`.

use super::{Checker, word};
use crate::tables::{Level1Source, OnMissing};

impl Checker<'_> {
    pub(super) fn roc(&mut self) {
        let p = self.partition;
        let Some(roc) = &p.roc else { return };
        let within = roc.count.saturating_mul(roc.ros);
        if within > p.ros.count {
            let message = format!(
                "{} crates of {} read-out systems need ros.count = {within} or more, found {}",
                roc.count, roc.ros, p.ros.count
            );
            self.problem(&["roc.ros", "roc.count", "ros.count"], message);
        }
        match p.level1.as_ref().map(|level1| level1.source) {
            None => {
                let message = "needs the table [level1], which is absent: a crate is told of triggers".to_owned();
                self.problem(&["roc", "level1"], message);
            }
            Some(source @ (Level1Source::Link | Level1Source::Time)) => {
                let message = format!(
                    "cannot go with level1.source = {}: the read-out systems of a crate say nothing to level 1",
                    word(source)
                );
                self.problem(&["roc", "level1.source"], message);
            }
            Some(_) => {}
        }
        if let Some(place) = p.source.iter().position(|source| source.on_missing == OnMissing::Wait) {
            let key = format!("source[{place}].on_missing");
            let message = "cannot go with wait: the EBIF of a crate answers without data that are late".to_owned();
            self.problem(&["roc", &key], message);
        }
    }
}
