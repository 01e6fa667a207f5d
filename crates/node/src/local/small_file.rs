//! Files of a few lines that a node keeps beside its log and store: read whole, and replaced whole,
//! so that a crash leaves the old one or the new one.

use meridian_base::Error;
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

/// The error for a file that this program cannot read: of a newer format than that of `header`, or
/// damaged. `lost`: what an operator may do about a damaged one.
pub(crate) fn unreadable(place: &str, text: &str, header: &str, lost: &str) -> Error {
    let split = |line: &str| {
        let (what, format) = line.rsplit_once(' ')?;
        Some((what.to_string(), format.parse::<u64>().ok()?))
    };
    match (text.lines().next().and_then(split), split(header)) {
        (Some((what, format)), Some((of_own, own))) if what == of_own && format > own => {
            Error::fatal(format!("{place} has format {format}, which is newer than this program's ({own})"))
                .hint("Start the version of meridian that wrote it, or a newer one.")
        }
        _ => Error::fatal(format!("{place} is damaged")).hint(lost),
    }
}

#[cfg(test)]
mod tests {
    use super::unreadable;

    #[test]
    fn a_newer_format_is_no_damage() {
        let header = "meridian groups, format 1";
        let said = |text: &str| unreadable("groups", text, header, "x").message().to_string();
        assert_eq!(said("meridian groups, format 2\ng1\n"), "groups has format 2, which is newer than this program's (1)");
        for text in ["", "meridian groups, format 1\ng", "meridian nodes, format 2\n", "meridian groups, format x\n", "\0"] {
            assert_eq!(said(text), "groups is damaged", "{text:?}");
        }
    }
}
