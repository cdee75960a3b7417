//! What will soon be read is fetched into the cache while something else is done.

/// Has the processor fetch all cache lines of a value, but for those of a long one beyond the first [`LEN_MAX`] bytes. What the
/// value points to stays where it is. A hint without any effect on what a program does.
#[inline]
pub(crate) fn prefetch<T: ?Sized>(value: &T) {
    lines(value).for_each(fetch);
}

/// The same for what will soon be written, and may be in the cache of another processor.
#[inline]
pub(crate) fn prefetch_to_write<T: ?Sized>(value: &mut T) {
    lines(value).for_each(fetch_to_write);
}

fn lines<T: ?Sized>(value: &T) -> impl Iterator<Item = *const u8> {
    let (start, len) = (core::ptr::from_ref(value).cast::<u8>(), size_of_val(value).min(LEN_MAX));
    (0..len).step_by(LINE).map(move |offset| start.wrapping_add(offset))
}

/// Most of one value that is fetched, in bytes.
const LEN_MAX: usize = 2048;

const LINE: usize = 64;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn fetch(place: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing that the program sees, and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn fetch_to_write(place: *const u8) {
    use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
    // SAFETY: as above; nothing is written.
    unsafe { _mm_prefetch::<_MM_HINT_ET0>(place.cast()) }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn fetch(_place: *const u8) {}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn fetch_to_write(_place: *const u8) {}
