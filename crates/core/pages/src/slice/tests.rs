extern crate std;

use super::{Box, NonNull, PageHeader, PageSlice, Vec};
use crate::header::{Left, PageOwner};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

const LEN: usize = 64;

/// A page whose owner counts what it is told.
#[repr(C)]
struct Page {
    header: PageHeader,
    bytes: UnsafeCell<[u8; LEN]>,
    told: Arc<Told>,
}

#[derive(Default)]
struct Told {
    nobody: AtomicUsize,
    writer: AtomicUsize,
    slices: AtomicUsize,
}

impl Told {
    fn count(&self, left: Left) {
        let counter = match left {
            Left::Nobody => &self.nobody,
            Left::Writer => &self.writer,
            Left::Slices => &self.slices,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> [usize; 3] {
        [&self.nobody, &self.writer, &self.slices].map(|counter| counter.load(Ordering::Relaxed))
    }
}

/// Writes a page from its beginning, and frees it when it is the last holder.
struct Writer {
    page: NonNull<Page>,
    written: usize,
}

// SAFETY: the page is written through this value alone and tied to no thread.
unsafe impl Send for Writer {}

impl Writer {
    fn new(told: &Arc<Told>) -> Self {
        let (header, bytes) = (PageHeader::new(0), UnsafeCell::new([0; LEN]));
        header.set_owner(&OWNER);
        let page = NonNull::from(Box::leak(Box::new(Page { header, bytes, told: Arc::clone(told) })));
        // SAFETY: just made.
        unsafe { page.as_ref().header.begin_writing() };
        Self { page, written: 0 }
    }

    fn write(&mut self, len: usize, value: u8) -> PageSlice {
        // SAFETY: it lives while this value counts.
        let start = unsafe { self.page.as_ref() }.bytes.get().cast::<u8>();
        assert!(self.written + len <= LEN);
        // SAFETY: within the page, and no slice is on these bytes yet.
        let start = unsafe {
            let start = NonNull::new(start.add(self.written)).unwrap();
            start.write_bytes(value, len);
            start
        };
        self.written += len;
        // SAFETY: only this value writes, and only behind what was written.
        unsafe { PageSlice::beside_writer(self.page.cast(), start, len) }
    }

    fn has_slices(&self) -> bool {
        // SAFETY: it lives while this value counts.
        unsafe { self.page.as_ref() }.header.has_slices()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // SAFETY: this is the page's writer.
        if unsafe { PageHeader::end_writing(self.page.cast()) } {
            // SAFETY: nobody holds it any more.
            drop(unsafe { Box::from_raw(self.page.as_ptr()) });
        }
    }
}

static OWNER: PageOwner = PageOwner::new(let_go);

unsafe fn let_go(header: NonNull<PageHeader>) {
    let page = header.cast::<Page>();
    // SAFETY: the last slice still counts.
    let told = Arc::clone(unsafe { &(*page.as_ptr()).told });
    // SAFETY: the only call.
    let left = unsafe { PageHeader::leave(header) };
    told.count(left);
    if left == Left::Nobody {
        // SAFETY: nobody holds it any more.
        drop(unsafe { Box::from_raw(page.as_ptr()) });
    }
}

#[test]
fn bytes_of_their_own_are_cut_and_shared() {
    let mut whole = PageSlice::from((0..10).collect::<Vec<u8>>());
    let first = whole.split_to(4);
    let inner = whole.slice(1..3);
    assert_eq!(
        (first.as_bytes(), whole.as_bytes(), inner.as_bytes()),
        (&[0, 1, 2, 3][..], &[4, 5, 6, 7, 8, 9][..], &[5, 6][..])
    );
    assert_eq!(whole.slice_of(&whole.as_bytes()[2..]).as_bytes(), [6, 7, 8, 9]);
    drop((first, whole.clone(), whole));
    assert_eq!(inner.as_bytes(), [5, 6]);
    assert_eq!(inner, PageSlice::copy_of(&[5, 6]));
}

#[test]
fn what_is_empty_holds_no_page() {
    let told = Arc::default();
    let mut writer = Writer::new(&told);
    let mut slice = writer.write(4, 1);
    let empties = [slice.slice(2..2), slice.split_to(0), slice.slice_of(&[]), PageSlice::default()];
    let all = slice.split_to(4);
    assert!(slice.is_empty() && empties.iter().all(PageSlice::is_empty));
    drop(all);
    assert!(!writer.has_slices());
}

#[test]
fn the_owner_is_told_once_per_last_slice() {
    let told = Arc::default();
    let mut writer = Writer::new(&told);
    let slice = writer.write(10, 1);
    let more = [slice.clone(), slice.slice(0..5), writer.write(20, 2)];
    assert!(writer.has_slices());
    drop((slice, more));
    assert_eq!((writer.has_slices(), told.counts()), (false, [0, 1, 0]));
    let last = writer.write(1, 3);
    drop(writer);
    assert_eq!((last.as_bytes(), told.counts()), (&[3][..], [0, 1, 0]));
    drop(last);
    assert_eq!(told.counts(), [1, 1, 0]);
}

#[test]
fn a_writer_without_slices_is_not_let_go_of() {
    let told: Arc<Told> = Arc::default();
    drop(Writer::new(&told));
    assert_eq!((told.counts(), Arc::strong_count(&told)), ([0; 3], 1));
}

#[test]
fn threads_drop_slices_while_the_page_is_written_and_share_one() {
    let rounds = if cfg!(miri) { 3 } else { 300 };
    for _ in 0..rounds {
        let told = Arc::default();
        let mut writer = Writer::new(&told);
        let shared = writer.write(8, 9);
        let (to_reader, slices) = mpsc::sync_channel::<PageSlice>(8);
        let readers = [shared.clone(), shared].map(|shared| {
            thread::spawn(move || (0..50).map(|_| shared.clone()).all(|slice| slice.as_bytes() == [9; 8]))
        });
        let reader = thread::spawn(move || {
            slices.iter().zip(0..).map(|(slice, value)| usize::from(slice.as_bytes() == [value; 8])).sum::<usize>()
        });
        for value in 0..7 {
            to_reader.send(writer.write(8, value)).unwrap();
        }
        drop(to_reader);
        assert_eq!(reader.join().unwrap(), 7);
        // The readers leave together.
        assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
        assert!(!writer.has_slices());
        drop(writer);
        assert_eq!((told.counts()[0], Arc::strong_count(&told)), (0, 1));
    }
}

#[test]
fn the_last_of_several_threads_frees() {
    let rounds = if cfg!(miri) { 5 } else { 500 };
    for _ in 0..rounds {
        let slice = PageSlice::from(Vec::from([5; 100]));
        let threads = [(); 3].map(|()| {
            let slice = slice.clone();
            thread::spawn(move || slice.as_bytes().iter().all(|byte| *byte == 5))
        });
        drop(slice);
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    }
}

#[test]
#[should_panic(expected = "bytes 3 to 5 of a slice of 4")]
fn what_is_not_in_a_slice_cannot_be_cut_out() {
    PageSlice::from_static(b"four").slice(3..5);
}

#[test]
#[should_panic(expected = "a slice of 4")]
fn more_than_a_slice_has_cannot_be_taken_off() {
    PageSlice::from_static(b"four").split_to(5);
}

#[test]
#[should_panic]
fn other_bytes_are_no_part_of_a_slice() {
    PageSlice::from_static(b"four").slice_of(&[0; 8]);
}
