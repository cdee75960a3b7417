//! Semaphores that processes share, of each kind that Linux has: what `weir study os1998` compares \[OS1998 §2\].
//!
//! The data path has none of them. It sends, polls, and sleeps until the kernel has news.
//!
//! # Unsafe code
//! System calls and functions of the C library that no library of Rust has, and the words of futexes in shared memory.

mod futex;
mod posix;
mod system_v;

use core::fmt;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use transport::error::OsError;
use transport::shared_memory::{Region, SharedMemoryError, check_foreign, make};

use rustix::fs::SealFlags;
use rustix::mm::ProtFlags;

/// The kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `semop`: each operation is a system call.
    SystemV,
    /// `sem_wait` and `sem_post` of the C library.
    Posix,
    /// A count in shared memory; the kernel is called only to sleep and to wake.
    Futex,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::SystemV, Self::Posix, Self::Futex];
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SystemV => "System V",
            Self::Posix => "POSIX",
            Self::Futex => "futex",
        })
    }
}

/// Two semaphores, both 0 at first. Another process [joins](Semaphores::join) by their descriptor.
#[derive(Debug)]
pub struct Semaphores {
    kind: Family,
    memory: Region,
    fd: OwnedFd,
    /// Removed from the kernel by the one who made them.
    system_v: system_v::Set,
}

impl Semaphores {
    /// Makes them.
    ///
    /// # Errors
    /// What the kernel says against it.
    pub fn new(kind: Family) -> Result<Self, OsError> {
        let (memory, fd) = make("weir-semaphores", MEMORY_BYTES, SealFlags::empty())?;
        let system_v = match kind {
            Family::SystemV => system_v::Set::new(COUNT)?,
            Family::Posix | Family::Futex => system_v::Set::none(),
        };
        system_v.tell(&memory);
        let made = Self { kind, memory, fd, system_v };
        if kind == Family::Posix {
            (0..COUNT).try_for_each(|which| posix::begin(&made.memory, place(which)))?;
        }
        Ok(made)
    }

    /// Takes part in those of another process, of the kind that it says.
    ///
    /// # Errors
    /// Memory that holds no semaphores; what the kernel says against it.
    pub fn join(kind: Family, fd: OwnedFd) -> Result<Self, SharedMemoryError> {
        check_foreign(fd.as_fd(), MEMORY_BYTES, SealFlags::SHRINK)?;
        let memory = Region::map(fd.as_fd(), MEMORY_BYTES, ProtFlags::READ | ProtFlags::WRITE)?;
        let system_v = system_v::Set::told(&memory);
        Ok(Self { kind, memory, fd, system_v })
    }

    /// Waits until a semaphore is above 0, and takes 1 away.
    ///
    /// # Errors
    /// The kernel has removed it.
    ///
    /// # Panics
    /// There are two of them, 0 and 1.
    pub fn lock(&self, which: usize) -> Result<(), OsError> {
        let place = place(which);
        again("semaphore, lock", || match self.kind {
            Family::SystemV => self.system_v.change(which, -1),
            Family::Posix => posix::wait(&self.memory, place),
            Family::Futex => futex::wait(&self.memory, place),
        })
    }

    /// Adds 1 to a semaphore.
    ///
    /// # Errors
    /// The kernel has removed it; it is at its largest number.
    ///
    /// # Panics
    /// There are two of them, 0 and 1.
    pub fn unlock(&self, which: usize) -> Result<(), OsError> {
        let place = place(which);
        again("semaphore, unlock", || match self.kind {
            Family::SystemV => self.system_v.change(which, 1),
            Family::Posix => posix::post(&self.memory, place),
            Family::Futex => futex::post(&self.memory, place),
        })
    }
}

impl AsFd for Semaphores {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// As often as a signal interrupts it.
fn again(call: &'static str, mut operation: impl FnMut() -> Result<(), Errno>) -> Result<(), OsError> {
    loop {
        match operation() {
            Err(Errno::INTR) => {}
            done => return done.map_err(|errno| OsError::new(call, errno)),
        }
    }
}

/// What a call of the C library came to.
fn called(result: i32) -> Result<i32, Errno> {
    match result {
        -1 => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)),
        done => Ok(done),
    }
}

/// Where a semaphore lies in the memory: each has a cache line, and the first one is that of the System V id.
fn place(which: usize) -> usize {
    assert!(which < COUNT, "semaphore {which} of {COUNT}");
    (1 + which) * LINE_BYTES
}

const COUNT: usize = 2;
const LINE_BYTES: usize = 64;
const MEMORY_BYTES: usize = (1 + COUNT) * LINE_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_take_turns() {
        const TURNS: u32 = 1000;
        for kind in Family::ALL {
            let here = Semaphores::new(kind).unwrap();
            let fd = here.as_fd().try_clone_to_owned().unwrap();
            let answers = std::thread::spawn(move || {
                let there = Semaphores::join(kind, fd).unwrap();
                for _ in 0..TURNS {
                    there.lock(0).unwrap();
                    there.unlock(1).unwrap();
                }
            });
            for _ in 0..TURNS {
                here.unlock(0).unwrap();
                here.lock(1).unwrap();
            }
            answers.join().unwrap();
        }
    }

    #[test]
    fn a_semaphore_counts() {
        for kind in Family::ALL {
            let semaphores = Semaphores::new(kind).unwrap();
            (0..3).for_each(|_| semaphores.unlock(1).unwrap());
            (0..3).for_each(|_| semaphores.lock(1).unwrap());
        }
    }

    #[test]
    fn those_of_system_v_go_with_their_maker() {
        let here = Semaphores::new(Family::SystemV).unwrap();
        let there = Semaphores::join(Family::SystemV, here.as_fd().try_clone_to_owned().unwrap()).unwrap();
        drop(here);
        assert_eq!(there.unlock(0).unwrap_err(), OsError::new("semaphore, unlock", Errno::INVAL));
    }

    #[test]
    fn what_holds_no_semaphores_is_refused() {
        let (_, short) = make("test", 8, SealFlags::empty()).unwrap();
        let refused = Semaphores::join(Family::Futex, short).unwrap_err();
        assert!(matches!(refused, SharedMemoryError::Foreign { found_bytes: 8, .. }), "{refused}");
    }
}
