//! Files for what has no room in memory.

use meridian_base::Result;

/// A file that a statement keeps rows in while it runs. Nobody else knows it, and it goes with its
/// handle. Every call blocks on the disk: it belongs into
/// [`Environment::compute`](crate::env::Environment::compute).
pub trait Temporary: Send + Sync + 'static {
    /// Writes all of `data`. 53100 if the disk has no room for it.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;
    /// Reads all of `buf`, which was written before.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
}

/// A file in memory, for tests.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct InMemory(parking_lot::Mutex<Vec<u8>>);

#[cfg(test)]
impl Temporary for InMemory {
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut file = self.0.lock();
        let (start, end) = (offset as usize, offset as usize + data.len());
        let len = file.len().max(end);
        file.resize(len, 0);
        file[start..end].copy_from_slice(data);
        Ok(())
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        buf.copy_from_slice(&self.0.lock()[offset as usize..][..buf.len()]);
        Ok(())
    }
}
