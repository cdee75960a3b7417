//! Whole partitions in situations made for them.

mod overload;
mod phased;
mod slow_stop;
