//! PEM (RFC 7468): base64 between lines that say what it is.

use crate::error::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Characters of a line.
const WIDTH: usize = 64;

/// A block: what it is, and its bytes.
pub(crate) struct Block {
    pub label: String,
    pub der: Zeroizing<Vec<u8>>,
}

/// All blocks of a text; what is around them is left alone. A block that is begun and not ended, or
/// whose contents are no base64, is an error.
pub(crate) fn read(text: &[u8]) -> Result<Vec<Block>> {
    let text = std::str::from_utf8(text).map_err(|_| Error::malformed("it is no text, so it is not in the format PEM"))?;
    let mut blocks = Vec::new();
    let mut open: Option<(String, Zeroizing<String>)> = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let mark = |word: &str| line.strip_prefix("-----").and_then(|l| l.strip_suffix("-----")?.strip_prefix(word));
        match (&mut open, mark("BEGIN "), mark("END ")) {
            (None, Some(label), _) => open = Some((label.to_string(), Zeroizing::default())),
            (None, None, Some(label)) => {
                return Err(Error::malformed(format!("line {}: the end of «{label}» without its beginning", number + 1)));
            }
            (None, None, None) => {}
            (Some((begun, body)), None, Some(label)) if begun == label => {
                let der = STANDARD.decode(body.as_bytes()).map(Zeroizing::new);
                let der = der.map_err(|_| Error::malformed(format!("line {}: «{label}» is damaged (no base64)", number + 1)))?;
                blocks.push(Block { label: label.to_string(), der });
                open = None;
            }
            (Some((begun, body)), None, None) if !line.contains(':') => {
                // A string that grows leaves copies behind, which are not overwritten.
                if body.capacity() == 0 {
                    body.reserve(text.len());
                }
                if !line.is_ascii() {
                    return Err(Error::malformed(format!("line {}: «{begun}» is damaged", number + 1)));
                }
                body.push_str(line);
            }
            (Some((begun, _)), _, _) => {
                return Err(Error::malformed(format!("line {}: «{begun}» is cut, encrypted or damaged", number + 1)));
            }
        }
    }
    match open {
        Some((label, _)) => Err(Error::malformed(format!("«{label}» is cut: its last line is missing"))),
        None => Ok(blocks),
    }
}

/// A block as text.
pub(crate) fn write(label: &str, der: &[u8]) -> Zeroizing<String> {
    let body = Zeroizing::new(STANDARD.encode(der));
    let mut text = Zeroizing::new(String::with_capacity(body.len() + body.len() / WIDTH + 2 * label.len() + 40));
    text.push_str("-----BEGIN ");
    text.push_str(label);
    text.push_str("-----\n");
    for start in (0..body.len()).step_by(WIDTH) {
        text.push_str(&body[start..body.len().min(start + WIDTH)]);
        text.push('\n');
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}
