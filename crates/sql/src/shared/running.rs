//! The jobs that run on this node.

use crate::catalog::job::{Job, JobRecord};
use meridian_base::DescriptorId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};

/// The jobs that run in this process.
#[derive(Default)]
pub struct Running {
    jobs: Mutex<BTreeSet<DescriptorId>>,
    /// Those that belong to open transaction blocks. Two blocks may try one id; one of them will
    /// not get it.
    holds: Mutex<BTreeMap<DescriptorId, usize>>,
}

impl Running {
    pub(crate) fn begin(&self, id: DescriptorId) -> bool {
        self.jobs.lock().insert(id)
    }
    pub(crate) fn end(&self, id: DescriptorId) {
        self.jobs.lock().remove(&id);
    }
    pub(crate) fn hold(&self, id: DescriptorId) {
        *self.holds.lock().entry(id).or_default() += 1;
    }
    pub(crate) fn release(&self, id: DescriptorId) {
        let mut holds = self.holds.lock();
        let held = holds.get_mut(&id).expect("what is released was held");
        *held -= 1;
        if *held == 0 {
            holds.remove(&id);
        }
    }
    pub(crate) fn has(&self, job: &JobRecord) -> bool {
        match job.present_task() {
            Some(Job::Hold { .. }) => self.holds.lock().contains_key(&job.id),
            _ => self.jobs.lock().contains(&job.id),
        }
    }
}
