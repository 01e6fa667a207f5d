//! Every byte that comes before somebody has proved who it is, on both ports: messages of real
//! clients, kept in `tests/corpus`, and what becomes of them when they are cut, changed and mixed.
//! What is drawn is the same in every run.

mod clients;
mod nodes;

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Messages by name, from a file of the corpus. `made` are those of this program: `UPDATE_GOLDEN=1`
/// adds the ones that the file does not have. A message that is there is never changed.
fn corpus(file: &str, made: &[(&str, Vec<u8>)]) -> BTreeMap<String, Vec<u8>> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus")).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut kept: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines() {
        match line.strip_prefix("  ") {
            Some(digits) => kept.entry(last.clone()).or_default().extend(bytes(digits)),
            None => last = line.to_string(),
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        for (name, bytes) in made {
            kept.entry(name.to_string()).or_insert_with(|| bytes.clone());
        }
        let entry = |(name, bytes): (&String, &Vec<u8>)| {
            let digits: Vec<String> = bytes.chunks(46).map(|line| format!("  {}\n", hex(line))).collect();
            format!("{name}\n{}", digits.concat())
        };
        std::fs::write(&path, kept.iter().map(entry).collect::<String>()).expect("the corpus can be written");
    }
    for (name, _) in made {
        assert!(kept.contains_key(*name), "{}: UPDATE_GOLDEN=1 adds {name:?}", path.display());
    }
    kept
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Changes messages.
struct Mutator(u64);

impl Mutator {
    fn draw(&mut self, below: usize) -> usize {
        // Marsaglia: Xorshift RNGs (2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }

    /// One of the messages, changed in one to three ways.
    fn changed(&mut self, corpus: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
        let all: Vec<&Vec<u8>> = corpus.values().collect();
        let mut message = all[self.draw(all.len())].clone();
        for _ in 0..=self.draw(3) {
            let at = self.draw(message.len());
            match self.draw(8) {
                0 if !message.is_empty() => message[at] ^= 1 << self.draw(8),
                1 if !message.is_empty() => message[at] = [0, 1, 0x7f, 0x80, 0xff][self.draw(5)],
                2 => message.truncate(at),
                3 => {
                    let end = (at + self.draw(40)).min(message.len());
                    message.drain(at..end);
                }
                4 => {
                    let part = message[at..(at + self.draw(40)).min(message.len())].to_vec();
                    message.splice(at..at, part);
                }
                // A number of four bytes, or of two, such as a length.
                5 => {
                    self.put(&mut message, at, &[0, 3, 4, 7, 8, 0x7fff_ffff, 0x8000_0000, u32::MAX, 10_001].map(u32::to_be_bytes))
                }
                6 => self.put(&mut message, at, &[0, 1, 0x3fff, 0x7fff, u16::MAX].map(u16::to_be_bytes)),
                // The rest of another message.
                _ => {
                    let other = all[self.draw(all.len())];
                    message.truncate(at);
                    message.extend_from_slice(&other[self.draw(other.len())..]);
                }
            }
        }
        message
    }

    fn put<const N: usize>(&mut self, message: &mut Vec<u8>, at: usize, numbers: &[[u8; N]]) {
        let number = numbers[self.draw(numbers.len())];
        let end = (at + N).min(message.len());
        message.splice(at..end, number);
    }
}
