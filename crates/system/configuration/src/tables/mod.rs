//! The tables of the file, one type each; a field is a key, and its documentation is the schema's description.

mod building;
mod carriers;
mod control;
mod cores;
mod datagrams;
mod dead_time;
mod emulated_source;
mod frame;
mod generator;
mod host;
mod input;
mod link_source;
mod menu;
mod processing;
mod readout;
mod recording;
mod sampling;
mod simulation;
mod stream;
mod system;
mod tolerate;
mod transport;
mod trigger;

pub use building::{
    BuildingMode, ClearAfter, Dfm, DfmInput, Ef, FilterPolicy, FragmentCheck, RequestCredits, RequestOrder, Sfi,
    SfiAssignment,
};
pub use carriers::{Carrier, GroupCarrier, MessageType, OrderedCarrier, Way};
pub use control::{Control, OtlpCompression};
pub(crate) use cores::CORES_MAX;
pub use cores::Cores;
pub use datagrams::{Authenticate, Udp};
pub(crate) use datagrams::{DATAGRAM_LOOPBACK_MAX, DATAGRAM_MIN};
pub use dead_time::{DeadTime, LeakyBucket, ProfileStep};
pub use emulated_source::{EmulatedSource, SizeSpread};
pub use frame::{ByteOrder, FrameCounter, FrameDescription, FrameField, FrameLength, FrameTicks};
pub use generator::{Generator, Kinds, Multiplicity, Position, Spectrum};
pub use host::{Counts, Host, Launcher};
pub use input::{Input, Mix};
pub use link_source::{Handshake, LinkSource, Matching, OnMissing, Play, SourceClock};
pub use menu::{Algorithm, Chain, Cuts, Menu};
pub use processing::Pt;
pub use readout::{
    FRAGMENT_OVERHEAD_BYTES, Fragment, FragmentKind, Payload, Preprocessing, Push, Roc, Ros, RosInput, SizeDistribution,
};
pub use recording::{Checksum, Compression, Dialect, Durability, EventOrder, Output, Sfo};
pub use sampling::{Sampling, SamplingStage};
pub use simulation::{Carrying, Driver, FaultKind, InputCost, Layout, SimulatedFault, Simulation, Topology};
pub use stream::{RobSelection, Stream, StreamType};
pub use system::{Identity, LossAction, OnLoss, Processes, Run, RunType, Scheduling, Secret, Stamps};
pub use tolerate::{Tolerance, Tolerate};
pub use transport::{Connections, Idle, Transport};
pub use trigger::{
    Decisions, L2pu, L2sv, L2svAssignment, Level1, Level1Source, Processor, ProcessorLoss, Spacing, Strategy,
};
