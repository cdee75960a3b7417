//! A partition of Weir: an independent slice of the system with its own dataflow manager and its run.
//!
//! A [configuration](configuration::Partition) says what there is. An [`Assembly`] numbers the applications and makes their
//! components. A [`Run`] starts them here or in child processes, conducts them and takes the account; a [`Node`] is such a child.
//! [`summary`] and [`table`] tell programs and people how the run went.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use configuration::Partition;
//! use partition::{Placement, Run};
//!
//! let configuration = Partition::load(Path::new("quickstart.toml"), &[])?;
//! let run = Run::new(configuration).place(Placement::local()).start()?;
//! run.pause()?;
//! run.resume()?;
//! run.stop();
//! println!("{}", run.wait()?.to_text());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One run may follow the other in the same processes: [`Run::boot`] makes a [`Session`], which starts runs with settings of their own.
//! `examples/embed.rs` has two runs, and watches the first.
//!
//! Nothing here parses command lines, draws progress bars, catches signals or chooses an allocator: a program does.
#![forbid(unsafe_code)]

mod conductor;
mod control;
mod differences;
mod facts;
mod hands;
pub mod human;
mod keeping;
mod killing;
mod lone;
pub mod machine;
pub mod menu_task;
mod news;
mod node;
mod probe;
mod run;
mod run_number;
mod running;
mod said;
mod samples;
mod session;
mod sources;
pub mod summary;
pub mod table;
mod waiting;

pub use self::control::{Control, StampFile, Stamping};
pub use conductor::{Metered, Outcome, Restart, StartError, conduct, idle};
pub use configuration::Run as RunSettings;
pub use driver::{Assembly, LinksError, WorkshopError, observer};
pub use facts::{facts_of, fragment_overhead_bytes};
pub use keeping::{Away, Keeping, Left, NotKept};
pub use killing::NotKilled;
pub use lone::{LoneReadOut, Seen};
pub use membership::severity::Severity;
pub use metering::cpu;
pub use news::News;
pub use node::{Node, NodeError};
pub use probe::{Counted, Figures, Probe, Wait};
pub use run::{Placement, Run};
pub use run_number::{RunNumberError, next_run_number};
pub use running::Running;
pub use said::Said;
pub use samples::Sampled;
pub use session::{FixedKey, Session};
pub use sources::{STATES as SOURCE_STATES, Source};
pub use waiting::Waiting;
