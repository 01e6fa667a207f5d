//! What is stored and sent, byte by byte.

use meridian_fixtures::Fixtures;
use meridian_pki::join::{Answer, Ask, StoredToken};
use meridian_pki::rotation::{Phase, Report, StoredRotation};

#[test]
fn what_was_written_is_read() {
    let mut fixtures = Fixtures::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/formats.txt"));
    fixtures.value::<Ask>("ask");
    fixtures.kinds::<Answer>("answer");
    fixtures.value::<StoredToken>("stored token");
    fixtures.kinds::<Phase>("phase");
    fixtures.value::<Report>("report");
    fixtures.value::<StoredRotation>("stored rotation");
    fixtures.finish();
}
