//! Clients of a node that cannot come up for a reason that only an operator can change: told so, instead of left waiting.

use super::frontend::{self, First};
use super::wire::Wire;
use crate::machine::MachineListener;
use meridian_base::Error;
use meridian_base::runtime::Listener;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// How long a client may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

/// Refuses clients with the hindrance for as long as there is one. Clients that come before stay in the listener's queue. Never ends.
pub async fn refuse(listener: &mut MachineListener, mut hindrance: watch::Receiver<Option<Error>>) {
    loop {
        let waited = hindrance.wait_for(Option::is_some).await.map(|why| why.clone());
        let Ok(Some(why)) = waited else { return std::future::pending().await };
        match listener.accept().await {
            // One after the other: a bound on what strangers may cost, and answered at once by those who speak at once.
            Ok((stream, _)) => _ = tokio::time::timeout(PATIENCE, refuse_one(stream, why)).await,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn refuse_one(stream: TcpStream, why: Error) {
    let mut wire = Wire::new(stream);
    loop {
        match frontend::first(&mut wire.input) {
            Ok(Some(First::Ssl | First::GssEncryption)) => {
                wire.put_byte(b'N');
                if wire.send().await.is_err() {
                    return;
                }
            }
            Ok(Some(First::Startup { .. })) => {
                wire.fatal(&why);
                let _ = wire.send().await;
                return wire.close().await;
            }
            Ok(Some(First::Cancel { .. })) | Err(_) => return,
            Ok(None) => match wire.fill().await {
                Ok(true) => {}
                _ => return,
            },
        }
    }
}
