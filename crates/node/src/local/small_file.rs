//! Files of a few lines that a node keeps beside its log and store: read whole, and replaced whole,
//! so that a crash leaves the old one or the new one.

use meridian_base::runtime::Runtime;
use std::io;
use std::sync::Arc;

/// The text of a file, or as much as `bytes_max` of one that is longer than it can be.
pub(crate) fn read(runtime: &Arc<dyn Runtime>, name: &str, bytes_max: u64) -> io::Result<String> {
    let file = runtime.disk().open(name, false)?;
    let mut bytes = vec![0; file.len()?.min(bytes_max) as usize];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Replaces the file; durable when it returns.
pub(crate) async fn write(runtime: &Arc<dyn Runtime>, name: &'static str, text: String) -> io::Result<()> {
    let of_node = runtime.clone();
    let replacing = async move {
        let disk = of_node.disk();
        let new = format!("{name}.new");
        let file = disk.open(&new, true)?;
        file.set_len(0)?;
        file.write_at(0, text.as_bytes())?;
        file.sync().await?;
        disk.rename(&new, name)
    };
    runtime.run_io_steps("small-file", replacing).await
}
