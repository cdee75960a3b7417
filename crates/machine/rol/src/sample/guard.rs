//! Damaged files must not stop us, even where the library that reads them panics.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Runs `work`; `None` if it panics, of which nothing is printed.
///
/// The Parquet library asserts some of what it reads instead of returning an error: lengths in a page that is too
/// short, negative offsets. What `work` leaves behind after a panic must not be used.
pub(super) fn without_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                before(info);
            }
        }));
    });
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    result.ok()
}

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

#[cfg(test)]
mod tests {
    use super::without_panic;

    #[test]
    fn a_panic_is_nothing() {
        assert_eq!(without_panic(|| 7), Some(7));
        assert_eq!(without_panic(|| assert!(std::hint::black_box(false))), None);
    }
}
