//! A count and the number of those who wait for it, in shared memory.

use core::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use transport::shared_memory::Region;

pub(crate) fn wait(memory: &Region, place: usize) -> Result<(), Errno> {
    let (count, waiting) = words(memory, place);
    loop {
        let seen = count.load(Ordering::Relaxed);
        if seen > 0 {
            let taken = count.compare_exchange_weak(seen, seen - 1, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return Ok(());
            }
            continue;
        }
        waiting.fetch_add(1, Ordering::SeqCst);
        let slept = futex::wait(count, Flags::empty(), 0, None);
        waiting.fetch_sub(1, Ordering::SeqCst);
        match slept {
            // Somebody was faster than our sleep.
            Ok(()) | Err(Errno::AGAIN) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// A waiter has said so before the kernel looks at the count, and we look for waiters after we have changed it. So one sees the other.
pub(crate) fn post(memory: &Region, place: usize) -> Result<(), Errno> {
    let (count, waiting) = words(memory, place);
    count.fetch_add(1, Ordering::SeqCst);
    if waiting.load(Ordering::SeqCst) > 0 {
        futex::wake(count, Flags::empty(), 1)?;
    }
    Ok(())
}

fn words(memory: &Region, place: usize) -> (&AtomicU32, &AtomicU32) {
    let word = |offset: usize| {
        // SAFETY: aligned (a line of the mapping, and 4 bytes behind it), initialised, and as long as the region; all access is
        // atomic.
        unsafe { AtomicU32::from_ptr(memory.at(place + offset).cast()) }
    };
    (word(0), word(size_of::<u32>()))
}
