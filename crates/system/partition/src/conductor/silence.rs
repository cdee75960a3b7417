//! Who lives and does not answer: an application that hangs.

use std::collections::BTreeMap;
use std::time::Duration;

use base::ids::NodeId;
use base::time::Time;

/// What applications are asked and have not answered yet.
pub(super) struct Silence {
    /// Who has not answered for so long is lost.
    lost_after: Duration,
    unanswered: BTreeMap<NodeId, Unanswered>,
}

/// Questions to one application.
struct Unanswered {
    since: Time,
    questions: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Asked,
    Silent,
    Lost,
}

impl Silence {
    /// Nobody was asked yet.
    pub(super) fn new(lost_after: Duration) -> Self {
        Self { lost_after, unanswered: BTreeMap::new() }
    }

    /// An application was asked something that each answers at once.
    pub(super) fn ask(&mut self, now: Time, node: NodeId) {
        let first = Unanswered { since: now, questions: 0, stage: Stage::Asked };
        self.unanswered.entry(node).or_insert(first).questions += 1;
    }

    /// It says something; for how long it was silent, if it was.
    pub(super) fn hear(&mut self, now: Time, node: NodeId) -> Option<Duration> {
        let unanswered = self.unanswered.remove(&node)?;
        (unanswered.stage > Stage::Asked).then(|| now.since(unanswered.since))
    }

    /// It has ended: whether because it was lost here.
    pub(super) fn end(&mut self, node: NodeId) -> bool {
        self.unanswered.remove(&node).is_some_and(|unanswered| unanswered.stage == Stage::Lost)
    }

    /// Nobody is waited for any more.
    pub(super) fn forget(&mut self) {
        self.unanswered.clear();
    }

    /// Those that are silent from now on.
    pub(super) fn newly_silent(&mut self, now: Time) -> Vec<NodeId> {
        self.reach(now, SILENT_AFTER, Stage::Silent)
    }

    /// Those that are lost from now on.
    pub(super) fn newly_lost(&mut self, now: Time) -> Vec<NodeId> {
        let after = self.lost_after.max(SILENT_AFTER);
        self.reach(now, after, Stage::Lost)
    }

    /// All that are silent, and for how long.
    pub(super) fn silent(&self, now: Time) -> impl Iterator<Item = (NodeId, Duration)> {
        let silent = self.unanswered.iter().filter(|(_, unanswered)| unanswered.stage > Stage::Asked);
        silent.map(move |(node, unanswered)| (*node, now.since(unanswered.since)))
    }

    /// Time alone proves nothing: run control may have slept itself.
    fn reach(&mut self, now: Time, after: Duration, stage: Stage) -> Vec<NodeId> {
        let is_due = |unanswered: &Unanswered| {
            unanswered.stage < stage && unanswered.questions > QUESTIONS && unanswered.since + after <= now
        };
        let due = self.unanswered.iter_mut().filter(|(_, unanswered)| is_due(unanswered));
        due.map(|(node, unanswered)| {
            unanswered.stage = stage;
            *node
        })
        .collect()
    }
}

/// So many questions in a row may go unanswered.
const QUESTIONS: u32 = 3;
/// Longer than the lease by which a whole host is lost, unless somebody has set that.
const SILENT_AFTER: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;

    const SFI: NodeId = NodeId(7);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn silence() -> Silence {
        Silence::new(Duration::from_secs(10))
    }

    #[test]
    fn who_does_not_answer_is_silent_once_and_until_it_answers() {
        let mut silence = silence();
        for ms in (0..1500).step_by(250) {
            assert_eq!((silence.newly_silent(at(ms)), silence.silent(at(ms)).count()), (Vec::new(), 0), "{ms}");
            silence.ask(at(ms), SFI);
        }
        assert_eq!(silence.newly_silent(at(1500)), [SFI]);
        assert!(silence.newly_silent(at(1750)).is_empty(), "it is said once");
        assert_eq!(silence.silent(at(2000)).collect::<Vec<_>>(), [(SFI, Duration::from_secs(2))]);
        assert_eq!(silence.hear(at(4000), SFI), Some(Duration::from_secs(4)));
        assert_eq!((silence.hear(at(4000), SFI), silence.silent(at(4000)).count()), (None, 0));
    }

    #[test]
    fn who_answers_each_time_is_never_silent() {
        let mut silence = silence();
        for ms in (0..20_000).step_by(250) {
            silence.ask(at(ms), SFI);
            assert_eq!((silence.hear(at(ms + 200), SFI), silence.newly_silent(at(ms + 240))), (None, Vec::new()));
        }
    }

    #[test]
    fn run_control_that_has_slept_blames_nobody() {
        let mut silence = silence();
        silence.ask(at(0), SFI);
        silence.ask(at(60_000), SFI);
        assert!(silence.newly_silent(at(60_000)).is_empty() && silence.newly_lost(at(60_000)).is_empty());
    }

    #[test]
    fn who_is_silent_for_too_long_is_lost_and_its_end_is_explained() {
        let mut silence = silence();
        (0..=40).for_each(|quarter| silence.ask(at(quarter * 250), SFI));
        assert!(silence.newly_lost(at(9_999)).is_empty());
        assert_eq!((silence.newly_silent(at(10_000)), silence.newly_lost(at(10_000))), (vec![SFI], vec![SFI]));
        assert!(silence.newly_lost(at(11_000)).is_empty());
        assert!(silence.end(SFI) && !silence.end(SFI));
        silence.ask(at(12_000), SFI);
        assert!(!silence.end(SFI), "its next life died otherwise");
    }
}
