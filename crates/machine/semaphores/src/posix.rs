//! Semaphores of the C library, in shared memory. They hold nothing but that memory, and so need no end.

use rustix::io::Errno;
use transport::error::OsError;
use transport::shared_memory::Region;

use crate::{LINE_BYTES, called};

const _: () = assert!(size_of::<libc::sem_t>() <= LINE_BYTES && align_of::<libc::sem_t>() <= LINE_BYTES);

/// Makes one, at 0.
pub(crate) fn begin(memory: &Region, place: usize) -> Result<(), OsError> {
    // SAFETY: aligned, inside the mapping, with room for one, and nobody else has the memory yet.
    called(unsafe { libc::sem_init(at(memory, place), 1, 0) })
        .map(drop)
        .map_err(|errno| OsError::new("sem_init", errno))
}

pub(crate) fn wait(memory: &Region, place: usize) -> Result<(), Errno> {
    // SAFETY: the one who made the memory has made a semaphore there, which lives as long as the mapping.
    called(unsafe { libc::sem_wait(at(memory, place)) }).map(drop)
}

pub(crate) fn post(memory: &Region, place: usize) -> Result<(), Errno> {
    // SAFETY: as above.
    called(unsafe { libc::sem_post(at(memory, place)) }).map(drop)
}

fn at(memory: &Region, place: usize) -> *mut libc::sem_t {
    memory.at(place).cast()
}
