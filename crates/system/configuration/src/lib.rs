//! The one typed TOML file that describes a partition (DESIGN §2.7): its tables and keys, its checks, its JSON schema.
//!
//! [`Partition::load`] reads a file, applies overrides and checks everything; a [`Partition`] that it returns describes
//! a system that can exist. All that is wrong is reported together in a [`ConfigurationError`].
#![forbid(unsafe_code)]

mod check;
mod decimal;
mod host_ranges;
mod load;
mod menu;
mod partition;
mod placement;
mod places;
mod problem;
mod ranges;
mod schema;
mod shift;
mod source;
mod tables;
mod template;
mod text;
mod typing;
mod units;

pub use decimal::Decimal;
pub use menu::BadMenu;
pub use partition::{Application, Partition};
pub use placement::Misplaced;
pub use places::Places;
pub use problem::{ConfigurationError, Place, Problem};
pub use schema::schema;
pub use shift::Shift;
pub use tables::{
    Algorithm, Authenticate, BuildingMode, ByteOrder, Carrier, Carrying, Chain, Checksum, ClearAfter, Compression,
    Connections, Control, Cores, Counts, Cuts, DeadTime, Decisions, Dfm, DfmInput, Dialect, Driver, Durability, Ef,
    EmulatedSource, EventOrder, FRAGMENT_OVERHEAD_BYTES, FaultKind, FilterPolicy, Fragment, FragmentCheck,
    FragmentKind, FrameCounter, FrameDescription, FrameField, FrameLength, FrameTicks, Generator, GroupCarrier,
    Handshake, Host, Identity, Idle, Input, InputCost, Kinds, L2pu, L2sv, L2svAssignment, Launcher, Layout,
    LeakyBucket, Level1, Level1Source, LinkSource, LossAction, Matching, Menu, MessageType, Mix, Multiplicity, OnLoss,
    OnMissing, OrderedCarrier, OtlpCompression, Output, Payload, Play, Position, Preprocessing, Processes, Processor,
    ProcessorLoss, ProfileStep, Pt, Push, RequestCredits, RequestOrder, RobSelection, Roc, Ros, RosInput, Run, RunType,
    Sampling, SamplingStage, Scheduling, Secret, Sfi, SfiAssignment, Sfo, SimulatedFault, Simulation, SizeDistribution,
    SizeSpread, SourceClock, Spacing, Spectrum, Stamps, Strategy, Stream, StreamType, Tolerance, Tolerate, Topology,
    Transport, Udp, Way,
};
pub use template::{TEMPLATES, Template, template};
pub use units::{Energy, Fraction, Interval, Rate, Size};
