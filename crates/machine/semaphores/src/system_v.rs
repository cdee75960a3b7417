//! Sets of semaphores that the kernel keeps until somebody removes them.

use core::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;
use transport::error::OsError;
use transport::shared_memory::Region;

use crate::called;

/// A set, or none.
#[derive(Debug)]
pub(crate) struct Set {
    id: i32,
    is_ours: bool,
}

impl Set {
    pub(crate) fn new(count: usize) -> Result<Self, OsError> {
        let count = i32::try_from(count).expect("a few semaphores");
        // SAFETY: the call takes numbers alone.
        let id = called(unsafe { libc::semget(libc::IPC_PRIVATE, count, libc::IPC_CREAT | 0o600) });
        id.map(|id| Self { id, is_ours: true }).map_err(|errno| OsError::new("semget", errno))
    }

    pub(crate) fn none() -> Self {
        Self { id: NONE, is_ours: false }
    }

    /// That of another process, which has [told](Set::tell) it.
    pub(crate) fn told(memory: &Region) -> Self {
        Self { id: word(memory).load(Ordering::Relaxed), is_ours: false }
    }

    pub(crate) fn tell(&self, memory: &Region) {
        word(memory).store(self.id, Ordering::Relaxed);
    }

    /// Waits as long as the number would be below 0.
    pub(crate) fn change(&self, which: usize, by: i16) -> Result<(), Errno> {
        let mut operation = libc::sembuf { sem_num: which as u16, sem_op: by, sem_flg: 0 };
        // SAFETY: one operation, which the call reads, and which lives through it.
        called(unsafe { libc::semop(self.id, &raw mut operation, 1) }).map(drop)
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        if self.is_ours {
            // SAFETY: the set is ours, and this command takes no further argument. It fails only if somebody has removed the set.
            let _ = unsafe { libc::semctl(self.id, 0, libc::IPC_RMID) };
        }
    }
}

fn word(memory: &Region) -> &AtomicI32 {
    // SAFETY: aligned (the start of a mapping), initialised, and as long as the region; all access is atomic.
    unsafe { AtomicI32::from_ptr(memory.at(0).cast()) }
}

/// No set has this id.
const NONE: i32 = -1;
