//! The allocator of the process: mimalloc.
//!
//! A row on its way is a dozen small allocations, and another thread frees some of them: glibc's
//! allocator took a third of the session's time in a `COPY` (docs/dependencies.md).
//!
//! The crate's own `MiMalloc` asks for every block by `mi_malloc_aligned`, which takes three times
//! as long as `mi_malloc` where no block of the size is at hand, and asks for more bytes than are
//! needed where it cannot tell that a block is aligned. `mi_malloc` aligns every block to 8 bytes,
//! and those of 16 bytes and more to 16 (`MI_MAX_ALIGN_SIZE` in mimalloc's `types.h`): hardly any
//! type needs more.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Freed memory stays with the process for this long (the allocator's own default is 1 s). A load
/// frees and asks again for the same hundreds of megabytes every few seconds, and the system
/// clears what it gives back: that was a fifth of the CPU time of `pgbench -i`.
const PURGE_DELAY_MS: libc::c_long = 10_000;

/// `mi_option_purge_delay` of `mimalloc.h`, version 3.
const PURGE_DELAY: libc::c_int = 15;

// The crate `mimalloc` brings them.
unsafe extern "C" {
    fn mi_malloc(size: libc::size_t) -> *mut libc::c_void;
    fn mi_zalloc(size: libc::size_t) -> *mut libc::c_void;
    fn mi_realloc(block: *mut libc::c_void, size: libc::size_t) -> *mut libc::c_void;
    fn mi_option_set(option: libc::c_int, value: libc::c_long);
}

/// See the module.
struct Allocator;

/// Whether every block of the size is aligned as the type needs it.
fn is_always_aligned(size: usize, align: usize) -> bool {
    align <= 8 || (align == 16 && size >= 16)
}

// SAFETY: blocks come from mimalloc, aligned as asked for, whichever of its functions gives them;
// `mi_free` and the functions for another size take blocks of all of them.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match is_always_aligned(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            true => unsafe { mi_malloc(layout.size()).cast() },
            // SAFETY: the caller's promise.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match is_always_aligned(layout.size(), layout.align()) {
            // SAFETY: any size may be asked for.
            true => unsafe { mi_zalloc(layout.size()).cast() },
            // SAFETY: the caller's promise.
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        }
    }
    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(block, layout) }
    }
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match is_always_aligned(size, layout.align()) {
            // SAFETY: the caller's promise: the block is one of this allocator.
            true => unsafe { mi_realloc(block.cast(), size).cast() },
            // SAFETY: the caller's promise.
            false => unsafe { MiMalloc.realloc(block, layout, size) },
        }
    }
}

/// Sets [`PURGE_DELAY_MS`]. Called before another thread runs.
pub fn keep_freed_memory() {
    // SAFETY: mimalloc has this option, and no other thread runs yet that could use it.
    unsafe { mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_keep_their_bytes() {
        let mut held = Vec::new();
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in (1..200).chain([255, 256, 1000, 1024, 1025, 4095, 4096, 10_000, 100_001, 3 << 20]) {
                let layout = Layout::from_size_align(size, align).expect("a layout");
                // SAFETY: the size is not 0; each block is used within its size, and freed once, by
                // the layout that it has then.
                unsafe {
                    let block = if size % 2 == 0 { ALLOCATOR.alloc_zeroed(layout) } else { ALLOCATOR.alloc(layout) };
                    assert_eq!(block as usize % align, 0, "{layout:?}");
                    assert!(size % 2 != 0 || (0..size).all(|at| *block.add(at) == 0), "{layout:?}");
                    block.write_bytes(size as u8, size);
                    let grown = ALLOCATOR.realloc(block, layout, size * 2 + 1);
                    assert_eq!(grown as usize % align, 0, "{layout:?}, grown");
                    assert!((0..size).all(|at| *grown.add(at) == size as u8), "{layout:?}");
                    held.push((grown, Layout::from_size_align(size * 2 + 1, align).expect("a layout")));
                }
            }
        }
        for (block, layout) in held {
            // SAFETY: see above.
            unsafe { ALLOCATOR.dealloc(block, layout) };
        }
    }
}
