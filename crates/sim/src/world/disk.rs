//! Files that forget what was not synced.
//!
//! Content is kept in blocks of 4 KiB; a block of zeros is not kept, so preallocated log segments
//! cost nothing. The first write to a block after a sync puts the block's durable content aside; a
//! sync drops what was put aside before it began, after some simulated time. A loss of power puts
//! blocks back, all of them, or sector by sector as chance will have it (a disk writes sectors in
//! any order, so a write may be torn), or leaves garbage where a sector was being written. What was
//! synced is never touched. The death of a process alone loses nothing: the kernel still has it.
//!
//! Names are forgotten too: a file created, and not made durable by a sync of its folder or a
//! rename, is gone after a loss of power; one removed may be back.

use super::host::Host;
use meridian_base::runtime::{BoxFuture, Disk, DiskFile, Space};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

const BLOCK: usize = 4096;
const SECTOR: usize = 512;
/// See [`FileData::rot`]: more than what is written at once, as a rule.
const ROTS_NOT_IN_LAST: usize = 3;

/// The size of a disk.
const ROOMY: u64 = 1 << 40;

type Block = Box<[u8; BLOCK]>;

/// What became of writes that were not synced when the power went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerLoss {
    /// None of them reached the disk.
    LoseAll,
    /// All of them did.
    KeepAll,
    /// Some sectors did.
    Tear,
    /// Some sectors did, and some were caught in the middle and hold garbage.
    Corrupt,
}

/// The files of a machine.
#[derive(Default)]
pub(super) struct Platter {
    files: BTreeMap<u64, FileData>,
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    next_file: u64,
    next_sync: u64,
    /// The disk's size; `None`: as large as one likes.
    capacity: Option<u64>,
}

#[derive(Default)]
struct FileData {
    blocks: BTreeMap<u64, Block>,
    len: u64,
    /// Durable content of blocks written since the last sync began; `None`: zeros.
    aside: BTreeMap<u64, Option<Block>>,
    durable_len: u64,
    /// Syncs under way: what was put aside before each began, and the length to be made durable.
    syncing: BTreeMap<u64, (BTreeMap<u64, Option<Block>>, u64)>,
}

impl FileData {
    fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let available = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut done = 0;
        while done < available {
            let (block, start) = split(offset + done as u64);
            let count = (BLOCK - start).min(available - done);
            match self.blocks.get(&block) {
                Some(data) => buf[done..done + count].copy_from_slice(&data[start..start + count]),
                None => buf[done..done + count].fill(0),
            }
            done += count;
        }
        available
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let (block, start) = split(offset + done as u64);
            let count = (BLOCK - start).min(data.len() - done);
            let piece = &data[done..done + count];
            self.put_aside(block);
            let all_zero = piece.iter().all(|b| *b == 0);
            if !all_zero || self.blocks.contains_key(&block) {
                self.blocks.entry(block).or_insert_with(zeros)[start..start + count].copy_from_slice(piece);
            }
            done += count;
        }
        self.len = self.len.max(offset + data.len() as u64);
    }

    fn set_len(&mut self, len: u64) {
        if len < self.len {
            let (last, start) = split(len);
            for block in self.blocks.range(last..).map(|(b, _)| *b).collect::<Vec<_>>() {
                self.put_aside(block);
                if block == last && start > 0 {
                    self.blocks.get_mut(&block).expect("just listed")[start..].fill(0);
                } else {
                    self.blocks.remove(&block);
                }
            }
        }
        self.len = len;
    }

    fn put_aside(&mut self, block: u64) {
        let content = self.blocks.get(&block);
        self.aside.entry(block).or_insert_with(|| content.cloned());
    }

    fn begin_sync(&mut self, id: u64) {
        self.syncing.insert(id, (std::mem::take(&mut self.aside), self.len));
    }

    /// Everything written before this sync began is durable, and so is what earlier syncs were
    /// about.
    fn end_sync(&mut self, id: u64) {
        let later = self.syncing.split_off(&(id + 1));
        if let Some((_, (_, len))) = std::mem::replace(&mut self.syncing, later).pop_last() {
            self.durable_len = len;
        }
    }

    /// A sync ends and has made nothing durable: what was put aside for it still is what is
    /// durable.
    fn forget_sync(&mut self, id: u64) {
        if let Some((aside, _)) = self.syncing.remove(&id) {
            let later = std::mem::replace(&mut self.aside, aside);
            for (block, before) in later {
                self.aside.entry(block).or_insert(before);
            }
        }
    }

    fn lose_power(&mut self, loss: PowerLoss, rng: &mut SmallRng) {
        // The oldest content put aside is the durable one.
        let mut durable = std::mem::take(&mut self.aside);
        for (_, (aside, _)) in std::mem::take(&mut self.syncing).into_iter().rev() {
            durable.extend(aside);
        }
        for (block, before) in durable {
            let after = self.blocks.get(&block).cloned().unwrap_or_else(zeros);
            let before = before.unwrap_or_else(zeros);
            self.blocks.insert(block, blend(&before, &after, loss, rng));
        }
        let grew = self.len > self.durable_len;
        match loss {
            PowerLoss::KeepAll => {}
            PowerLoss::LoseAll => self.cut_or_extend(self.durable_len),
            // The length is metadata of its own and may or may not have made it.
            PowerLoss::Tear | PowerLoss::Corrupt if grew && rng.random_bool(0.5) => self.cut_or_extend(self.durable_len),
            PowerLoss::Tear | PowerLoss::Corrupt => {}
        }
        self.blocks.retain(|_, data| data.iter().any(|b| *b != 0));
        self.durable_len = self.len;
    }

    fn cut_or_extend(&mut self, len: u64) {
        self.set_len(len);
        self.aside.clear();
    }
}

fn zeros() -> Block {
    Box::new([0; BLOCK])
}

fn split(offset: u64) -> (u64, usize) {
    (offset / BLOCK as u64, (offset % BLOCK as u64) as usize)
}

/// A block after the power went: each sector is the old one, the new one, or (where they differ)
/// garbage.
fn blend(before: &Block, after: &Block, loss: PowerLoss, rng: &mut SmallRng) -> Block {
    match loss {
        PowerLoss::LoseAll => return before.clone(),
        PowerLoss::KeepAll => return after.clone(),
        PowerLoss::Tear | PowerLoss::Corrupt => {}
    }
    let mut block = before.clone();
    for start in (0..BLOCK).step_by(SECTOR) {
        let sector = start..start + SECTOR;
        if before[sector.clone()] == after[sector.clone()] {
            continue;
        }
        if loss == PowerLoss::Corrupt && rng.random_bool(0.2) {
            // Only the bytes that were being changed: drives keep a sector's other bytes through a
            // loss of power, and databases that append to a sector rely on it.
            for at in sector.filter(|at| before[*at] != after[*at]) {
                block[at] = rng.random();
            }
        } else if rng.random_bool(0.5) {
            block[sector.clone()].copy_from_slice(&after[sector]);
        }
    }
    block
}

impl Platter {
    fn used(&self) -> u64 {
        self.names.values().filter_map(|id| self.files.get(id)).map(|f| f.len).sum()
    }
    fn space(&self) -> Space {
        // A disk that is full is so because of other files on it.
        let capacity = self.capacity.unwrap_or(ROOMY);
        Space { total: ROOMY, free: capacity.saturating_sub(self.used()) }
    }
    fn has_room(&self, more: u64) -> bool {
        more == 0 || self.capacity.is_none_or(|capacity| self.used() + more <= capacity)
    }
    fn lose_power(&mut self, loss: PowerLoss, rng: &mut SmallRng) {
        for file in self.files.values_mut() {
            file.lose_power(loss, rng);
        }
        if loss != PowerLoss::KeepAll {
            self.names = self.durable_names.clone();
        }
        self.durable_names = self.names.clone();
        let named: Vec<u64> = self.names.values().copied().collect();
        self.files.retain(|id, _| named.contains(id));
    }
}

impl FileData {
    /// Flips a bit of what is durable, not in the last blocks: what stands there nothing stands
    /// behind that would tell a damaged write from a torn one. Whether there was anything.
    fn rot(&mut self, rng: &mut SmallRng) -> bool {
        let blocks: Vec<u64> = self.blocks.keys().copied().collect();
        let Some(count) = blocks.len().checked_sub(ROTS_NOT_IN_LAST).filter(|count| *count > 0) else { return false };
        let block = self.blocks.get_mut(&blocks[rng.random_range(0..count)]).expect("just listed");
        let written: Vec<usize> = (0..BLOCK).filter(|at| block[*at] != 0).collect();
        let Some(at) = (!written.is_empty()).then(|| written[rng.random_range(0..written.len())]) else { return false };
        block[at] ^= 1 << rng.random_range(0..8);
        true
    }
}

impl Host {
    /// A bit of a file is another one now. Which file; `None` if there is too little on the disk.
    /// For a machine that is down.
    pub fn rot(&self) -> Option<String> {
        self.with_rng(|rng| {
            let mut platter = self.platter.lock();
            let mut names: Vec<(String, u64)> = platter.names.iter().map(|(name, id)| (name.clone(), *id)).collect();
            names.shuffle(rng);
            names.into_iter().find(|(_, id)| platter.files.get_mut(id).is_some_and(|file| file.rot(rng))).map(|(name, _)| name)
        })
    }
    /// The machine has a new disk, with nothing on it.
    pub fn replace_disk(&self) {
        let mut platter = self.platter.lock();
        *platter = Platter { next_file: platter.next_file, next_sync: platter.next_sync, ..Platter::default() };
    }
    /// The power goes: what was not synced is lost, or torn.
    pub fn lose_power(&self, loss: PowerLoss) {
        self.with_rng(|rng| self.platter.lock().lose_power(loss, rng));
    }
    /// The disk has no room for more than it holds now.
    pub fn fill_disk(&self) {
        let mut platter = self.platter.lock();
        platter.capacity = Some(platter.used());
    }
    /// The disk has room again.
    pub fn make_room(&self) {
        self.platter.lock().capacity = None;
    }
}

/// A machine's disk, as its process sees it.
#[derive(Clone)]
pub struct SimDisk(pub(super) Arc<Host>);

/// An open file.
pub struct SimFile {
    host: Arc<Host>,
    id: u64,
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file"))
}

impl Disk for SimDisk {
    fn open(&self, path: &str, create: bool) -> io::Result<Box<dyn DiskFile>> {
        let mut platter = self.0.platter.lock();
        let id = match platter.names.get(path) {
            Some(id) => *id,
            None if create => {
                platter.next_file += 1;
                let id = platter.next_file;
                platter.files.insert(id, FileData::default());
                platter.names.insert(path.to_string(), id);
                id
            }
            None => return Err(not_found(path)),
        };
        Ok(Box::new(SimFile { host: self.0.clone(), id }))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let platter = self.0.platter.lock();
        let within = platter.names.keys().filter(|path| folder_of(path) == folder);
        Ok(within.map(|path| path.rsplit('/').next().unwrap_or(path).to_string()).collect())
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        if self.0.operate() {
            return Ok(());
        }
        self.0.platter.lock().names.remove(path).map(|_| ()).ok_or_else(|| not_found(path))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        if self.0.operate() {
            return Ok(());
        }
        let mut platter = self.0.platter.lock();
        let id = platter.names.remove(from).ok_or_else(|| not_found(from))?;
        platter.names.insert(to.to_string(), id);
        platter.durable_names.remove(from);
        platter.durable_names.insert(to.to_string(), id);
        Ok(())
    }

    fn sync_folder(&self, folder: &str) -> io::Result<()> {
        if self.0.operate() {
            return Ok(());
        }
        let mut platter = self.0.platter.lock();
        let Platter { names, durable_names, .. } = &mut *platter;
        durable_names.retain(|path, _| folder_of(path) != folder);
        let within = names.iter().filter(|(path, _)| folder_of(path) == folder);
        durable_names.extend(within.map(|(path, id)| (path.clone(), *id)));
        Ok(())
    }

    fn describe(&self, path: &str) -> String {
        format!("{}:/{path}", self.0.name)
    }

    fn space(&self) -> io::Result<Space> {
        Ok(self.0.platter.lock().space())
    }
}

impl SimFile {
    fn with<T>(&self, run: impl FnOnce(&mut FileData) -> T) -> T {
        let mut platter = self.host.platter.lock();
        // An open file that was removed, and lost with the power, reads as empty for the process
        // that is about to die.
        run(platter.files.entry(self.id).or_default())
    }

    async fn make_durable(&self) -> io::Result<()> {
        if self.host.operate() {
            std::future::pending::<()>().await;
        }
        let id = {
            let mut platter = self.host.platter.lock();
            platter.next_sync += 1;
            platter.next_sync
        };
        self.with(|file| file.begin_sync(id));
        tokio::time::sleep(self.host.draw_sync_time()).await;
        self.host.awake().await;
        if self.host.operate() {
            std::future::pending::<()>().await;
        }
        if self.host.sync_fails_now() {
            self.host.world.coverage.hit("sync failed");
            return Err(io::Error::other("input/output error"));
        }
        if self.host.lies_about_syncs() {
            self.host.world.coverage.hit("sync that lied");
            self.with(|file| file.forget_sync(id));
        } else {
            self.with(|file| file.end_sync(id));
        }
        self.host.event("sync", id);
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.with(|file| file.read(offset, buf)))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if self.host.operate() {
            return Ok(());
        }
        let growth = (offset + data.len() as u64).saturating_sub(self.len()?);
        if !self.host.platter.lock().has_room(growth) {
            self.host.world.coverage.hit("write refused by a full disk");
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        self.with(|file| file.write(offset, data));
        self.host.event("write", super::trace::hash_of(data) ^ offset);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.with(|file| file.len))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if self.host.operate() {
            return Ok(());
        }
        let growth = len.saturating_sub(self.len()?);
        if !self.host.platter.lock().has_room(growth) {
            self.host.world.coverage.hit("write refused by a full disk");
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        self.with(|file| file.set_len(len));
        Ok(())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len > self.len()? { self.set_len(len) } else { Ok(()) }
    }

    fn sync(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(self.make_durable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetLen(u64),
        Sync,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u64..20_000, proptest::collection::vec(any::<u8>(), 1..6_000)).prop_map(|(o, d)| Step::Write(o, d)),
            1 => (0u64..20_000).prop_map(Step::SetLen),
            2 => Just(Step::Sync),
        ]
    }

    fn content(file: &FileData) -> Vec<u8> {
        let mut bytes = vec![0; file.len as usize];
        file.read(0, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn a_file_is_a_vector_of_bytes_and_losing_power_gives_back_the_synced_one(
            steps in proptest::collection::vec(step(), 1..20), seed in any::<u64>()
        ) {
            let mut file = FileData::default();
            let (mut model, mut durable) = (Vec::new(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Write(offset, data) => {
                        let end = offset as usize + data.len();
                        if model.len() < end {
                            model.resize(end, 0);
                        }
                        model[offset as usize..end].copy_from_slice(&data);
                        file.write(offset, &data);
                    }
                    Step::SetLen(len) => {
                        model.resize(len as usize, 0);
                        file.set_len(len);
                    }
                    Step::Sync => {
                        file.begin_sync(number as u64);
                        file.end_sync(number as u64);
                        durable = model.clone();
                    }
                }
                prop_assert_eq!(&content(&file), &model);
            }
            file.lose_power(PowerLoss::LoseAll, &mut SmallRng::seed_from_u64(seed));
            prop_assert_eq!(content(&file), durable);
        }

        #[test]
        fn a_torn_write_leaves_synced_bytes_alone(seed in any::<u64>(), offset in 0u64..10_000, loss in 0..2) {
            let mut file = FileData::default();
            file.write(0, &[7; 16_384]);
            file.begin_sync(1);
            file.end_sync(1);
            file.write(offset, &[9; 3_000]);
            let loss = if loss == 0 { PowerLoss::Tear } else { PowerLoss::Corrupt };
            file.lose_power(loss, &mut SmallRng::seed_from_u64(seed));
            let bytes = content(&file);
            prop_assert_eq!(bytes.len(), 16_384);
            // Outside what was written, nothing changed.
            let (first, last) = (offset as usize, offset as usize + 3_000);
            prop_assert!(bytes[..first].iter().chain(&bytes[last..]).all(|b| *b == 7));
            if loss == PowerLoss::Tear {
                prop_assert!(bytes.iter().all(|b| *b == 7 || *b == 9));
            }
        }
    }

    #[test]
    fn a_write_during_a_sync_is_not_made_durable_by_it() {
        let mut file = FileData::default();
        file.write(0, &[1; 100]);
        file.begin_sync(1);
        file.write(0, &[2; 100]);
        file.end_sync(1);
        file.lose_power(PowerLoss::LoseAll, &mut SmallRng::seed_from_u64(0));
        assert_eq!(content(&file), vec![1; 100]);
    }

    #[test]
    fn a_sync_that_did_not_end_promises_nothing() {
        let mut file = FileData::default();
        file.write(0, &[1; 100]);
        file.begin_sync(1);
        file.end_sync(1);
        file.write(0, &[2; 200]);
        file.begin_sync(2);
        file.write(50, &[3; 200]);
        file.lose_power(PowerLoss::LoseAll, &mut SmallRng::seed_from_u64(0));
        assert_eq!(content(&file), vec![1; 100]);
    }

    #[test]
    fn a_sync_that_lies_makes_nothing_durable_and_one_that_does_not_makes_all_of_it() {
        let mut file = FileData::default();
        file.write(0, &[1; 100]);
        file.begin_sync(1);
        file.end_sync(1);
        file.write(0, &[2; 100]);
        file.begin_sync(2);
        file.write(0, &[3; 100]);
        file.forget_sync(2);
        file.write(0, &[4; 50]);
        let mut honest = FileData { blocks: file.blocks.clone(), aside: file.aside.clone(), len: 100, ..FileData::default() };
        file.lose_power(PowerLoss::LoseAll, &mut SmallRng::seed_from_u64(0));
        assert_eq!(content(&file), vec![1; 100]);
        honest.begin_sync(3);
        honest.end_sync(3);
        honest.lose_power(PowerLoss::LoseAll, &mut SmallRng::seed_from_u64(0));
        assert_eq!(content(&honest), [[4; 50], [3; 50]].concat());
    }

    #[test]
    fn rot_changes_one_bit_that_was_durable() {
        let world = super::super::World::new(false);
        let host = world.add_host("h", 1);
        host.mark_up();
        let file = SimDisk(host.clone()).open("log/a", true).expect("created");
        file.write_at(0, &[7; 8 * BLOCK]).expect("written");
        assert_eq!(host.rot().as_deref(), Some("log/a"));
        let mut bytes = vec![0; 8 * BLOCK];
        file.read_at(0, &mut bytes).expect("read");
        let wrong: u32 = bytes.iter().map(|b| (b ^ 7).count_ones()).sum();
        assert_eq!(wrong, 1);
        assert!(bytes[5 * BLOCK..].iter().all(|b| *b == 7), "not in the last blocks");
        host.replace_disk();
        assert_eq!(host.rot(), None);
    }

    #[test]
    fn names_are_durable_after_a_folder_sync_or_a_rename() {
        let world = super::super::World::new(false);
        let host = world.add_host("h", 1);
        host.mark_up();
        let disk = SimDisk(host.clone());
        for name in ["log/a", "log/b", "other"] {
            disk.open(name, true).expect("created");
        }
        disk.sync_folder("log").expect("synced");
        disk.rename("log/b", "log/c").expect("renamed");
        disk.remove("log/a").expect("removed");
        disk.open("log/d", true).expect("created");
        host.lose_power(PowerLoss::LoseAll);
        assert_eq!(disk.list("log").expect("listed"), ["a", "c"]);
        assert_eq!(disk.list("").expect("listed"), Vec::<String>::new());
    }
}
