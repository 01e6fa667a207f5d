//! How much stack a recursion has used, as PostgreSQL's `check_stack_depth` does it: by the
//! distance of two addresses.
//!
//! The parser bounds the depth of what it accepts; what a level costs afterwards differs between
//! builds and kinds of statements, so the recursions of binding and planning measure it. (Execution
//! cannot: it may continue on another thread. It takes several times as much, so the threads of
//! sessions have a larger stack: `server::threads`.)

use meridian_base::Result;

/// What one recursion may use of a worker's stack (2 MiB), leaving room for what calls it and for
/// what it calls.
const STACK_BYTES_MAX: usize = 640 << 10;

/// Where the stack is now.
#[inline(never)]
pub(crate) fn mark() -> usize {
    let here = 0u8;
    std::ptr::addr_of!(here) as usize
}

/// 54001 if too much of the stack was used since the mark.
pub(crate) fn check(base: usize) -> Result<()> {
    if mark().abs_diff(base) > STACK_BYTES_MAX { Err(crate::parse::too_deep()) } else { Ok(()) }
}
