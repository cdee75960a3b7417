//! Frames of devices that know nothing of Weir: a description says where their counter, time and length are.

mod format;
mod numbering;
mod sorter;

pub use format::{BadFrame, ByteOrder, Counter, Extent, Field, FrameFormat, Ticks};
pub(crate) use numbering::{Marks, Numbering, Ready};
pub(crate) use sorter::Sorter;
