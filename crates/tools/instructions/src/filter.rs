//! What happens to events once they are built: an SFI serves them to a filter daemon, which accepts all, and a recorder writes
//! them.

use base::ids::Role;
use configuration::{Ef, Partition as Configuration, Run, Sfo};

use crate::building;
use crate::files::Files;
use crate::partition::Partition;

/// Events of four fragments of 1 kB, each written once it is built and accepted.
pub(crate) fn recorded(events: u64) {
    let built = building::configuration(4, DATA_BYTES);
    let configuration = Configuration {
        run: Run { events: Some(events), ..Run::default() },
        ef: Some(Ef { slots: 32, ..Ef::default() }),
        sfo: Some(Sfo::default()),
        ..built
    };
    let mut partition = Partition::new(configuration, 0, DATA_BYTES).with_files(Files::new());
    partition.start();
    partition.run_until(Role::Dfm, |report| building::finished(report) >= events);
}

const DATA_BYTES: usize = 1000;
