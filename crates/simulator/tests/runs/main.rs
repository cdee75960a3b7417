//! Whole partitions in situations made for them.

mod overload;
mod phased;
mod push;
mod shaping;
mod slow_stop;
