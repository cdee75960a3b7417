//! What the tables of the selection demand of each other: `[menu]`, `[l2pu]`, `[ef]`, `[pt]`.

use super::{Checker, is_word, word};
use crate::tables::{EventOrder, FilterPolicy, L2pu, Level1Source, Preprocessing, Pt, Strategy};
use crate::units::Interval;

impl Checker<'_> {
    pub(super) fn selection(&mut self) {
        self.without_building();
        self.phased();
        self.dead_time();
        self.menu();
        self.processing();
    }

    /// A chain that ends with level 2.
    fn without_building(&mut self) {
        let p = self.partition;
        if p.builds() {
            return;
        }
        match p.l2sv.as_ref().map(|l2sv| l2sv.count) {
            None => self.problem(
                &["sfi.count", "l2sv"],
                "expected at least 1; 0 needs the table [l2sv], whose supervisor then clears the read-out".to_owned(),
            ),
            Some(1) => {}
            Some(count) => {
                let message =
                    format!("expected 1 with sfi.count = 0, found {count}: one supervisor clears the read-out");
                self.problem(&["l2sv.count", "sfi.count"], message);
            }
        }
        for (table, present) in
            [("ef", p.ef.is_some()), ("pt", p.pt.is_some()), ("sfo", p.sfo.is_some()), ("stream", !p.stream.is_empty())]
        {
            if present {
                let message = format!("[{table}] needs events that are built: sfi.count of at least 1");
                self.problem(&[table, "sfi.count"], message);
            }
        }
    }

    /// Each unit has its builder, which can use what the unit has.
    fn phased(&mut self) {
        let p = self.partition;
        let Some(l2pu) = p.l2pu.as_ref().filter(|l2pu| l2pu.phased) else { return };
        if l2pu.count != p.sfi.count {
            let message = format!(
                "needs as many units as event builders: l2pu.count is {}, sfi.count {}",
                l2pu.count, p.sfi.count
            );
            self.problem(&["l2pu.phased", "l2pu.count", "sfi.count"], message);
        }
        if p.ros.preprocessing != Preprocessing::None {
            let message = "not with ros.preprocessing: what level 2 gets is no event data then".to_owned();
            self.problem(&["l2pu.phased", "ros.preprocessing"], message);
        }
    }

    /// Buckets that hold and drain; steps of a profile in their order.
    fn dead_time(&mut self) {
        let Some(level1) = &self.partition.level1 else { return };
        let buckets = level1.dead_time.iter().flat_map(|dead_time| &dead_time.complex);
        for (index, bucket) in buckets.enumerate() {
            for (key, value) in [("size", bucket.size), ("drain", bucket.drain)] {
                if value == 0 {
                    let key = format!("level1.dead_time.complex.{index}.{key}");
                    self.problem(&[&key, "level1.dead_time.complex"], "expected at least 1".to_owned());
                }
            }
        }
        let mut before = Interval::default();
        for (index, step) in level1.profile.iter().enumerate() {
            let key = |key: &str| format!("level1.profile.{index}.{key}");
            if step.from <= before {
                let message = format!("expected a time after {before}, found {}", step.from);
                self.problem(&[&key("from"), "level1.profile"], message);
            }
            if step.rate.millihertz() == 0 {
                self.problem(&[&key("rate"), "level1.profile"], "missing; expected a rate above 0".to_owned());
            }
            before = step.from;
        }
        if !level1.profile.is_empty()
            && matches!(level1.source, Level1Source::External | Level1Source::Link | Level1Source::Time)
        {
            let message =
                format!("not for level1.source = {}, whose triggers come when they come", word(level1.source));
            self.problem(&["level1.profile", "level1.source"], message);
        }
    }

    fn menu(&mut self) {
        let p = self.partition;
        if let Some(l2pu) = &p.l2pu
            && l2pu.strategy != Strategy::Generate
            && l2pu.asked != L2pu::default().asked
        {
            let message = "only the strategy \"generate\" asks for the data of a part".to_owned();
            self.problem(&["l2pu.asked", "l2pu.strategy"], message);
        }
        let by_menu = p.l2pu.as_ref().is_some_and(|l2pu| l2pu.strategy == Strategy::Menu);
        if by_menu && p.menu.is_none() {
            let message = "\"menu\" needs the table [menu], which is absent".to_owned();
            self.problem(&["l2pu.strategy", "menu"], message);
        }
        let Some(menu) = &p.menu else { return };
        if menu.chain.is_empty() {
            self.problem(&["menu.chain", "menu"], "missing; expected at least one [[menu.chain]]".to_owned());
        }
        let by_filter = p.pt.as_ref().is_some_and(Pt::is_menu);
        if !by_menu && !by_filter {
            let message =
                "nothing selects by it: expected l2pu.strategy = \"menu\" or pt.algorithm = \"menu\"".to_owned();
            self.problem(&["menu", "l2pu.strategy", "pt.algorithm"], message);
        }
        for (index, chain) in menu.chain.iter().enumerate() {
            if menu.chain[..index].iter().any(|earlier| earlier.name == chain.name) {
                let message = format!("expected a name of its own, found {:?} a second time", chain.name);
                self.problem(&[&format!("menu.chain.{index}.name"), "menu.chain"], message);
            }
            if !is_word(&chain.name) {
                let message = format!(
                    "expected a name of letters, digits, `_` and `-`, such as \"e25i\", found {:?}",
                    chain.name
                );
                self.problem(&[&format!("menu.chain.{index}.name"), "menu.chain"], message);
            }
            if chain.item.is_empty() {
                let message = "missing; expected a level-1 item such as \"L1_EM20I\"".to_owned();
                self.problem(&[&format!("menu.chain.{index}.item"), "menu.chain"], message);
            }
        }
    }

    fn processing(&mut self) {
        let p = self.partition;
        let Some(pt) = &p.pt else { return };
        let ef = p.event_filter();
        if ef.is_none() && p.builds() {
            let message = "[pt] needs the table [ef], which is absent".to_owned();
            self.problem(&["pt", "ef"], message);
        }
        if ef.is_some_and(|ef| ef.policy != FilterPolicy::Accept) {
            let message = "not with [pt]: its processing tasks decide".to_owned();
            self.problem(&["ef.policy", "pt"], message);
        }
        if pt.timeout == Interval::default() {
            self.problem(&["pt.timeout"], "expected a time above 0, found \"0 s\"".to_owned());
        }
        match pt.python_class() {
            None if pt.is_menu() && p.menu.is_none() => {
                let message = "\"menu\" needs the table [menu], which is absent".to_owned();
                self.problem(&["pt.algorithm", "pt", "menu"], message);
            }
            Some(class) if !names_a_class(class) => {
                let message =
                    format!("expected \"menu\", \"path/to/file.py:Class\" or \"module:Class\", found {class:?}");
                self.problem(&["pt.algorithm"], message);
            }
            _ => {}
        }
        if pt.is_menu() && !pt.parameters.is_empty() {
            let message = "only for an algorithm of your own; the parameters of a menu are in [menu]".to_owned();
            self.problem(&["pt.parameters", "pt.algorithm"], message);
        }
        if p.sfo.as_ref().is_some_and(|sfo| sfo.order == EventOrder::Event) {
            let message = "\"event\" cannot go with [pt]: its tasks decide in any order, and which events is not known";
            self.problem(&["sfo.order", "pt"], message.to_owned());
        }
    }

    /// The names of `[menu]` against the detector description, if nothing was wrong so far.
    pub(super) fn names_of_menu(&mut self) {
        let menu = self.partition.resolve_menu().map(drop);
        let bad = menu.and_then(|()| self.partition.overridden_items().map(drop)).err();
        if let Some(bad) = bad {
            let table = bad.key.split('.').next().unwrap_or_default();
            self.problem(&[&bad.key, parent(&bad.key), table], bad.message);
        }
    }
}

/// The table that a key stands in.
fn parent(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(parent, _)| parent)
}

fn names_a_class(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(file, class)| {
        let first = class.chars().next();
        let starts = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        !file.is_empty() && starts && class.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
