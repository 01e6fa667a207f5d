//! A simulated device whose blocks hardware does not keep coherent (PASHA, §3.2, challenge 1).
//!
//! Words are coherent. Blocks go through a cache per host. A cache may fetch any line at any time
//! (a prefetch) and drop any line at any time; a line that its host has written is written back
//! then, over whatever the memory holds. The simulation decides when: [`Incoherent::fetch`] and
//! [`Incoherent::evict`] are that, and [`Incoherent::lines`] tells what may be chosen. A cache
//! outlives the process of its host, as that of a machine does.

use super::{LINE, Memory};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A line in the cache of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cached {
    /// What the host sees.
    pub bytes: [u8; LINE as usize],
    /// The host wrote to it, and the memory has not got it yet.
    pub is_dirty: bool,
}

/// The device and the caches of its hosts. See the module's essay.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Incoherent {
    /// Below this offset everything is coherent.
    bulk: u64,
    len: u64,
    /// Lines that are not all zero, or were not once.
    memory: BTreeMap<u64, [u8; LINE as usize]>,
    caches: Vec<BTreeMap<u64, Cached>>,
}

impl Incoherent {
    /// Zeros, for this many hosts. What lies at `bulk` and above is cached.
    ///
    /// # Panics
    ///
    /// If `len` or `bulk` is no multiple of a line.
    pub fn new(len: u64, bulk: u64, hosts: usize) -> Incoherent {
        assert!(len.is_multiple_of(LINE) && bulk.is_multiple_of(LINE), "the device consists of lines");
        Incoherent { bulk, len, memory: BTreeMap::new(), caches: vec![BTreeMap::new(); hosts] }
    }

    /// The lines of a host's cache, by their offsets.
    pub fn lines(&self, host: usize) -> &BTreeMap<u64, Cached> {
        &self.caches[host]
    }

    /// The line at this offset comes into a host's cache, unless it is there. Coherent lines are
    /// not cached.
    pub fn fetch(&mut self, host: usize, line: u64) {
        if line >= self.bulk && !self.caches[host].contains_key(&line) {
            let bytes = self.line(line);
            self.caches[host].insert(line, Cached { bytes, is_dirty: false });
        }
    }

    /// The line at this offset leaves a host's cache; a dirty one is written back.
    pub fn evict(&mut self, host: usize, line: u64) {
        if let Some(cached) = self.caches[host].remove(&line)
            && cached.is_dirty
        {
            self.line_mut(line).copy_from_slice(&cached.bytes);
        }
    }

    /// The machine of a host is replaced by another one, whose cache may hold anything: here what
    /// was in these lines before all that was ever written.
    pub fn replace_machine(&mut self, host: usize, stale: &[u64]) {
        let zeros = Cached { bytes: [0; LINE as usize], is_dirty: false };
        self.caches[host] = stale.iter().map(|line| (*line, zeros)).collect();
    }

    fn line(&self, line: u64) -> [u8; LINE as usize] {
        assert!(line < self.len, "the line at {line} of {} bytes", self.len);
        self.memory.get(&line).copied().unwrap_or([0; LINE as usize])
    }
    fn line_mut(&mut self, line: u64) -> &mut [u8; LINE as usize] {
        assert!(line < self.len, "the line at {line} of {} bytes", self.len);
        self.memory.entry(line).or_insert([0; LINE as usize])
    }
    fn word(&self, at: u64) -> u64 {
        assert!(at.is_multiple_of(8), "a word lies at a multiple of 8, not at {at}");
        assert!(at < self.bulk, "words lie in the coherent part, not at {at}");
        let within = (at % LINE) as usize;
        u64::from_le_bytes(self.line(at - at % LINE)[within..within + 8].try_into().expect("a word"))
    }
    fn set_word(&mut self, at: u64, value: u64) {
        let within = (at % LINE) as usize;
        self.line_mut(at - at % LINE)[within..within + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Runs `visit` with each line that these bytes touch: the line's offset, where in the line and
    /// where in the bytes.
    fn each_line(at: u64, len: usize, mut visit: impl FnMut(u64, std::ops::Range<usize>, std::ops::Range<usize>)) {
        let mut done = 0;
        while done < len {
            let here = at + done as u64;
            let within = (here % LINE) as usize;
            let part = (LINE as usize - within).min(len - done);
            visit(here - here % LINE, within..within + part, done..done + part);
            done += part;
        }
    }
}

/// The device as one host sees it.
#[derive(Clone, Debug)]
pub struct View {
    device: Rc<RefCell<Incoherent>>,
    host: usize,
}

impl View {
    /// What `host` sees of a device.
    pub fn new(device: Rc<RefCell<Incoherent>>, host: usize) -> View {
        View { device, host }
    }
}

impl Memory for View {
    fn len(&self) -> u64 {
        self.device.borrow().len
    }
    fn load(&self, at: u64) -> u64 {
        self.device.borrow().word(at)
    }
    fn store(&self, at: u64, value: u64) {
        self.swap(at, value);
    }
    fn compare_exchange(&self, at: u64, expected: u64, new: u64) -> Result<(), u64> {
        let held = self.load(at);
        if held != expected {
            return Err(held);
        }
        self.device.borrow_mut().set_word(at, new);
        Ok(())
    }
    fn fetch_max(&self, at: u64, value: u64) -> u64 {
        let held = self.load(at);
        self.device.borrow_mut().set_word(at, held.max(value));
        held
    }
    fn fetch_add(&self, at: u64, value: u64) -> u64 {
        let held = self.load(at);
        self.device.borrow_mut().set_word(at, held.wrapping_add(value));
        held
    }
    fn fetch_or(&self, at: u64, bits: u64) -> u64 {
        let held = self.load(at);
        self.device.borrow_mut().set_word(at, held | bits);
        held
    }
    fn swap(&self, at: u64, value: u64) -> u64 {
        let held = self.load(at);
        self.device.borrow_mut().set_word(at, value);
        held
    }
    fn read(&self, at: u64, into: &mut [u8]) {
        let mut device = self.device.borrow_mut();
        Incoherent::each_line(at, into.len(), |line, within, part| {
            device.fetch(self.host, line);
            let bytes = device.caches[self.host].get(&line).map_or_else(|| device.line(line), |cached| cached.bytes);
            into[part].copy_from_slice(&bytes[within]);
        });
    }
    fn write(&self, at: u64, from: &[u8]) {
        let mut padded = from.to_vec();
        padded.resize(from.len().next_multiple_of(8), 0);
        let mut device = self.device.borrow_mut();
        Incoherent::each_line(at, padded.len(), |line, within, part| {
            device.fetch(self.host, line);
            match device.caches[self.host].get_mut(&line) {
                Some(cached) => {
                    cached.bytes[within].copy_from_slice(&padded[part]);
                    cached.is_dirty = true;
                }
                None => device.line_mut(line)[within].copy_from_slice(&padded[part]),
            }
        });
    }
    fn flush(&self, at: u64, len: u64) {
        let mut device = self.device.borrow_mut();
        Incoherent::each_line(at, len as usize, |line, _, _| {
            let Some(cached) = device.caches[self.host].get_mut(&line) else { return };
            if std::mem::replace(&mut cached.is_dirty, false) {
                let bytes = cached.bytes;
                device.line_mut(line).copy_from_slice(&bytes);
            }
        });
    }
    fn invalidate(&self, at: u64, len: u64) {
        let mut device = self.device.borrow_mut();
        Incoherent::each_line(at, len as usize, |line, _, _| device.evict(self.host, line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> (Rc<RefCell<Incoherent>>, View, View) {
        let device = Rc::new(RefCell::new(Incoherent::new(256, 64, 2)));
        (device.clone(), View::new(device.clone(), 0), View::new(device, 1))
    }

    fn byte(view: &View, at: u64) -> u8 {
        let mut byte = [0];
        view.read(at, &mut byte);
        byte[0]
    }

    #[test]
    fn words_are_coherent_and_blocks_are_not() {
        let (_, a, b) = device();
        a.store(8, 3);
        assert_eq!(b.load(8), 3);
        assert_eq!(byte(&b, 64), 0);
        a.write(64, b"x");
        assert_eq!((byte(&a, 64), byte(&b, 64)), (b'x', 0));
        a.flush(64, 1);
        assert_eq!(byte(&b, 64), 0, "the line is in the other cache still");
        b.invalidate(64, 1);
        assert_eq!(byte(&b, 64), b'x');
    }

    #[test]
    fn a_dirty_line_is_written_back_at_any_later_time() {
        let (device, a, b) = device();
        a.write(64, b"old");
        b.write(64, b"new");
        b.flush(64, 3);
        device.borrow_mut().evict(0, 64);
        b.invalidate(64, 3);
        assert_eq!(byte(&b, 64), b'o');
    }
}
