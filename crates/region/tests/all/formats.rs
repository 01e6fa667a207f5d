//! A fixture of a group's state, as it is flushed and sent in snapshots.

use meridian_fixtures::{Fixtures, longest};
use meridian_region::{Granted, GroupState, Rules};

#[test]
fn what_was_written_is_read() {
    const FORMAT: u8 = 2;
    let read = |bytes: &[u8]| {
        let state = GroupState::decode(bytes, Rules::ALL).map_err(|e| e.to_string())?;
        Ok((format!("{state:?}"), state.encode()))
    };
    let drawn = longest(&[FORMAT], |bytes| read(bytes).ok().map(|(_, bytes)| bytes)).expect("some bytes are a state");
    let mut fixtures = Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/formats.txt"));
    fixtures.bytes("group state", &drawn, read);
    fixtures.value::<Granted>("schema lease");
    fixtures.finish();
}
