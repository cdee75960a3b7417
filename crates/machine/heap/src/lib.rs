//! The allocator of the programs: mimalloc, asked for an alignment only where it does not have it anyway.
//!
//! The crate `mimalloc` always asks for one. The slow path then lengthens and searches for blocks whose size is no power of two. That is
//! one to two per cent of the instructions of building and filtering.
//!
//! # Unsafe code
//! An allocator is unsafe by its trait, and the library is in C.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc, mi_zalloc_aligned,
};

/// mimalloc, for `#[global_allocator]`.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

/// Whether each block of that size has the alignment. Blocks are whole words, and those of 16 bytes or more begin at a multiple of 16.
const fn is_aligned_anyway(size: usize, align: usize) -> bool {
    align <= WORD || align == 2 * WORD && size.is_multiple_of(align)
}

const WORD: usize = size_of::<usize>();

// SAFETY: blocks come from mimalloc, have at least the size and alignment of the layout, stay until they are freed, and go back to mimalloc.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size may be asked for, and a layout's alignment is a power of two.
        let block =
            unsafe { if is_aligned_anyway(size, align) { mi_malloc(size) } else { mi_malloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: as for `alloc`.
        let block =
            unsafe { if is_aligned_anyway(size, align) { mi_zalloc(size) } else { mi_zalloc_aligned(size, align) } };
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the caller gives back what it had from here.
        unsafe { mi_free(block.cast::<c_void>()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (block, align) = (block.cast::<c_void>(), layout.align());
        // SAFETY: the block is from here and not used again; it may move to one of either kind.
        let block = unsafe {
            if is_aligned_anyway(size, align) {
                mi_realloc(block, size)
            } else {
                mi_realloc_aligned(block, size, align)
            }
        };
        block.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_size_and_alignment_and_keep_their_bytes() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in
                (1..300).chain([1024, 1280, 5000, 70_000, 9_000_001]).map(|size: usize| size.next_multiple_of(align))
            {
                let layout = Layout::from_size_align(size, align).unwrap();
                let longer = Layout::from_size_align(2 * size, align).unwrap();
                // SAFETY: the block is used within its size, and freed once with the layout that it has then.
                unsafe {
                    let block = Heap.alloc(layout);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align), "{layout:?}");
                    block.write_bytes(7, size);
                    let block = Heap.realloc(block, layout, 2 * size);
                    assert!(block.addr().is_multiple_of(align), "{longer:?}");
                    assert!((0..size).all(|at| *block.add(at) == 7), "{layout:?}");
                    Heap.dealloc(block, longer);
                    let block = Heap.alloc_zeroed(layout);
                    assert!(
                        block.addr().is_multiple_of(align) && (0..size).all(|at| *block.add(at) == 0),
                        "{layout:?}"
                    );
                    Heap.dealloc(block, layout);
                }
            }
        }
    }
}
