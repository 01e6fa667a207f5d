//! Files that are cut while they are mapped.
//!
//! An access to a page that the file does not have any more raises SIGBUS, which would end the
//! process. For pages of mappings that are registered here, the handler sets the mapping's flag
//! *first*, and then puts an empty page there. So whoever has read what the handler made up finds
//! the flag set. Every other SIGBUS goes to the handler that was there before.
#![allow(unsafe_code)]

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// Mappings of a process at a time: a segment or two, many in tests.
const REGIONS: usize = 64;

/// A mapping; free if `begin` is 0. `len` is stored before `begin`.
struct Region {
    is_taken: AtomicBool,
    begin: AtomicUsize,
    len: AtomicUsize,
    is_lost: AtomicBool,
}

static REGION: [Region; REGIONS] = [const {
    Region {
        is_taken: AtomicBool::new(false),
        begin: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        is_lost: AtomicBool::new(false),
    }
}; REGIONS];

/// What handled SIGBUS before, or why nothing can.
static BEFORE: OnceLock<Result<libc::sigaction, i32>> = OnceLock::new();

/// A registered mapping.
#[derive(Debug)]
pub(super) struct Guard(usize);

impl Guard {
    /// Registers the mapping that begins at this address. It must outlive the guard.
    pub fn new(begin: usize, len: usize) -> io::Result<Guard> {
        if let Err(error) = BEFORE.get_or_init(install) {
            return Err(io::Error::from_raw_os_error(*error));
        }
        let free = REGION.iter().position(|region| region.is_taken.compare_exchange(false, true, SeqCst, SeqCst).is_ok());
        let number = free.ok_or_else(|| io::Error::other(format!("more than {REGIONS} mappings")))?;
        REGION[number].is_lost.store(false, SeqCst);
        REGION[number].len.store(len, SeqCst);
        REGION[number].begin.store(begin, SeqCst);
        Ok(Guard(number))
    }

    /// Whether a page of it was missing.
    pub fn is_lost(&self) -> bool {
        REGION[self.0].is_lost.load(SeqCst)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        REGION[self.0].begin.store(0, SeqCst);
        REGION[self.0].is_taken.store(false, SeqCst);
    }
}

fn install() -> Result<libc::sigaction, i32> {
    // SAFETY: both structures are plain data for which zeros are valid, and live during the calls.
    // The handler does what a signal handler may: atomic operations and system calls.
    unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        new.sa_sigaction = handler as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut new.sa_mask);
        match libc::sigaction(libc::SIGBUS, &new, &mut before) {
            0 => Ok(before),
            _ => Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)),
        }
    }
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid `info` to a handler with SA_SIGINFO. The new page replaces
    // one of a registered mapping, which is memory that is read and written by atomic words only:
    // they may change at any time. `errno` is restored for the interrupted code.
    unsafe {
        let address = (*info).si_addr() as usize;
        let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let of = REGION.iter().find(|region| {
            let (begin, len) = (region.begin.load(SeqCst), region.len.load(SeqCst));
            begin != 0 && (begin..begin + len).contains(&address)
        });
        if let Some(region) = of {
            region.is_lost.store(true, SeqCst);
            let errno = *libc::__errno_location();
            let at = (address & !(page - 1)) as *mut libc::c_void;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let made = libc::mmap(at, page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            *libc::__errno_location() = errno;
            if made != libc::MAP_FAILED {
                return;
            }
        }
        before(signal, info, context);
    }
}

/// Not a page of ours: what would have happened without this module.
fn before(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get().and_then(|before| before.as_ref().ok());
    // SAFETY: the address is what another part of the process has given as its handler, of the type
    // that its flags say. Without one, the default is restored; the access happens again and ends
    // the process.
    unsafe {
        match before {
            Some(old) if old.sa_sigaction != libc::SIG_DFL && old.sa_sigaction != libc::SIG_IGN => {
                if old.sa_flags & libc::SA_SIGINFO != 0 {
                    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                        std::mem::transmute(old.sa_sigaction);
                    handler(signal, info, context);
                } else {
                    let handler: extern "C" fn(libc::c_int) = std::mem::transmute(old.sa_sigaction);
                    handler(signal);
                }
            }
            _ => {
                libc::signal(libc::SIGBUS, libc::SIG_DFL);
            }
        }
    }
}
