//! The spaces of a group, with an alarm: the first read that fails, because the disk is damaged or
//! gives an error, is reported to the node. The node must not go on serving while intact replicas
//! follow it.

use crate::backend::{RawRange, Sink, Space, Spaces, View, Visit};
use bytes::Bytes;
use meridian_base::error::{Error, ErrorKind, Result};
use std::sync::{Arc, OnceLock};

/// The first failure of a read, and the function that it is reported to.
#[derive(Default)]
pub(crate) struct Alarm {
    found: OnceLock<Error>,
    hears: OnceLock<Box<dyn Fn(Error) + Send + Sync>>,
}

impl Alarm {
    /// From now on this is told: once, of the first damage, even if that was found before.
    pub fn tell(&self, hears: impl Fn(Error) + Send + Sync + 'static) {
        if self.hears.set(Box::new(hears)).is_ok()
            && let Some(found) = self.found.get()
        {
            self.pass_on(found);
        }
    }
    fn pass_on(&self, found: &Error) {
        if let Some(hears) = self.hears.get() {
            hears(found.clone());
        }
    }
    fn watch<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(e) = &result
            && e.kind() == ErrorKind::Fatal
            && self.found.set(e.clone()).is_ok()
        {
            tracing::error!("{e}");
            self.pass_on(e);
        }
        result
    }
}

struct Watched {
    spaces: Arc<dyn Spaces>,
    alarm: Arc<Alarm>,
}

/// The same spaces, watched.
pub(crate) fn watched(spaces: Arc<dyn Spaces>, alarm: &Arc<Alarm>) -> Arc<dyn Spaces> {
    Arc::new(Watched { spaces, alarm: alarm.clone() })
}

impl Spaces for Watched {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        self.alarm.watch(self.spaces.get(space, key))
    }
    fn view(&self) -> Box<dyn View> {
        Box::new(WatchedView { view: self.spaces.view(), alarm: self.alarm.clone() })
    }
    fn write(&self, rows: usize, fill: &mut dyn FnMut(&mut dyn Sink) -> Result<()>) -> Result<()> {
        self.spaces.write(rows, fill)
    }
    fn erase(&self, space: Space, ranges: &[(Vec<u8>, Vec<u8>)], has_room: bool) -> Result<bool> {
        self.spaces.erase(space, ranges, has_room)
    }
    fn describe(&self) -> String {
        self.spaces.describe()
    }
    fn malformed(&self) -> Error {
        self.alarm.watch(Err::<(), _>(self.spaces.malformed())).expect_err("it is damaged")
    }
}

struct WatchedView {
    view: Box<dyn View>,
    alarm: Arc<Alarm>,
}

impl View for WatchedView {
    fn scan(&self, space: Space, range: RawRange<'_>, reverse: bool, visit: Visit<'_>) -> Result<()> {
        self.alarm.watch(self.view.scan(space, range, reverse, visit))
    }
}
