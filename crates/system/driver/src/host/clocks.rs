//! What has been found out about the clock of a source, or about its numbers, in words.

use dataflow::readout::watch::Finding;
use timing::coincidence::Jump;
use timing::slip::Slip;

pub(super) fn in_words(name: &str, finding: Finding) -> String {
    match finding {
        Finding::Slip(Slip { since, by, shift }) => {
            let what = if by > 0 { "lost" } else { "counted too many" };
            let triggers = by.unsigned_abs();
            format!(
                "source {name} slips: from its event {since} on its times are those of event number {shift:+}; triggers {what}: {triggers}"
            )
        }
        Finding::Jump(Jump { since, by }) => {
            format!(
                "source {name}: its clock has stepped by {by:+} ns, by triggers from {since} ns on: some of them are without its data, or have those of another"
            )
        }
    }
}
