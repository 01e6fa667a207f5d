//! The data of `COPY`: text, CSV and binary (PostgreSQL manual, reference page of `COPY`, «File
//! formats»).
//!
//! Decoders are fed pieces whose boundaries mean nothing and give whole rows. No input makes them
//! panic.

use bytes::{Buf, Bytes, BytesMut};
use meridian_base::{Error, Result};

/// How the data looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyFormat {
    pub kind: CopyKind,
    pub delimiter: u8,
    pub null: String,
    pub header: bool,
    pub quote: u8,
    pub escape: u8,
    /// Columns by name whose values are always quoted in CSV output; `*` is `["*"]`.
    pub force_quote: Vec<String>,
    pub force_not_null: Vec<String>,
    pub force_null: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyKind {
    Text,
    Csv,
    Binary,
}

/// One field of a row: `None` is NULL.
pub(super) type Field = Option<Bytes>;

/// The longest line, or binary field. PostgreSQL's limit is 1 GiB; a row must fit into a
/// transaction anyway.
const ROW_BYTES_MAX: usize = 64 << 20;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

fn malformed(message: impl Into<String>) -> Error {
    Error::sql("22P04", message)
}

/// Cuts what the client sends into rows.
pub(super) struct Decoder {
    format: CopyFormat,
    /// Per column of the row: never / always read an unquoted, or a quoted, null string as NULL
    /// (CSV).
    not_null: Vec<bool>,
    quoted_null: Vec<bool>,
    names: Vec<String>,
    columns: usize,
    buffer: BytesMut,
    /// How far the buffer was searched for the end of a line, and whether that place is inside
    /// quotes.
    searched: usize,
    in_quotes: bool,
    skip_header: bool,
    read_signature: bool,
    pub line: u64,
    is_over: bool,
}

impl Decoder {
    pub fn new(format: CopyFormat, columns: &[String]) -> Decoder {
        let named = |names: &[String]| columns.iter().map(|c| names.iter().any(|n| n == "*" || n == c)).collect();
        Decoder {
            not_null: named(&format.force_not_null),
            quoted_null: named(&format.force_null),
            names: columns.to_vec(),
            columns: columns.len(),
            buffer: BytesMut::new(),
            searched: 0,
            in_quotes: false,
            skip_header: format.header,
            read_signature: format.kind == CopyKind::Binary,
            line: 0,
            is_over: false,
            format,
        }
    }
    pub fn push(&mut self, data: &[u8]) {
        // Text after the end is ignored, binary data after it is refused.
        if !self.is_over || self.format.kind == CopyKind::Binary {
            self.buffer.extend_from_slice(data);
        }
    }
    /// The next whole row; `at_end` says that nothing follows what was pushed.
    pub fn row(&mut self, at_end: bool) -> Result<Option<Vec<Field>>> {
        loop {
            if self.is_over {
                return self.nothing_after_the_end();
            }
            let row = match self.format.kind {
                CopyKind::Binary => {
                    let row = self.binary_row(at_end);
                    // A row that cannot be read has a number too.
                    self.line += u64::from(row.is_err());
                    return row;
                }
                CopyKind::Text | CopyKind::Csv => self.line(at_end)?,
            };
            let Some(line) = row else { return Ok(None) };
            // A quoted value may go on in further lines.
            let inner = if self.format.kind == CopyKind::Csv { line.iter().filter(|b| **b == b'\n').count() } else { 0 };
            self.line += 1 + inner as u64;
            if std::mem::take(&mut self.skip_header) {
                continue;
            }
            if line[..] == *b"\\." {
                self.is_over = true;
                return Ok(None);
            }
            let fields = match self.format.kind {
                CopyKind::Csv => self.csv_fields(&line)?,
                _ => self.text_fields(&line)?,
            };
            match fields.len() {
                n if n > self.columns => return Err(malformed("extra data after last expected column")),
                n if n < self.columns => {
                    let column = self.names[n].clone();
                    return Err(malformed(format!("missing data for column \"{column}\"")).column(column));
                }
                _ => return Ok(Some(fields)),
            }
        }
    }

    fn nothing_after_the_end(&self) -> Result<Option<Vec<Field>>> {
        match self.format.kind {
            CopyKind::Binary if !self.buffer.is_empty() => Err(malformed("received copy data after EOF marker")),
            _ => Ok(None),
        }
    }

    /// The next line without its end.
    fn line(&mut self, at_end: bool) -> Result<Option<Bytes>> {
        let is_csv = self.format.kind == CopyKind::Csv;
        let (quote, escape) = (self.format.quote, self.format.escape);
        let mut i = self.searched;
        while i < self.buffer.len() {
            let byte = self.buffer[i];
            if is_csv && self.in_quotes && byte == escape && escape != quote {
                // What follows an escape inside quotes is never their end.
                if i + 1 >= self.buffer.len() && !at_end {
                    break;
                }
                i += 2;
                continue;
            }
            if is_csv && byte == quote {
                self.in_quotes = !self.in_quotes;
            } else if !is_csv && byte == b'\\' {
                // An escaped newline is data.
                if i + 1 >= self.buffer.len() && !at_end {
                    break;
                }
                i += 2;
                continue;
            } else if byte == b'\n' && !self.in_quotes {
                let mut line = self.buffer.split_to(i + 1).freeze();
                line.truncate(i);
                if line.last() == Some(&b'\r') {
                    line.truncate(i - 1);
                }
                self.searched = 0;
                return Ok(Some(line));
            }
            i += 1;
        }
        self.searched = i.min(self.buffer.len());
        if self.buffer.len() > ROW_BYTES_MAX {
            return Err(Error::sql("54000", format!("a line of COPY data is longer than {} MiB", ROW_BYTES_MAX >> 20)));
        }
        if !at_end || self.buffer.is_empty() {
            return Ok(None);
        }
        if self.in_quotes {
            self.line += 1;
            return Err(malformed("unterminated CSV quoted field"));
        }
        self.searched = 0;
        let mut line = self.buffer.split().freeze();
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Ok(Some(line))
    }
    fn text_fields(&self, line: &Bytes) -> Result<Vec<Field>> {
        let mut fields = Vec::with_capacity(self.columns);
        if self.columns == 0 && line.is_empty() {
            return Ok(fields);
        }
        let (mut start, mut i) = (0, 0);
        loop {
            if i < line.len() && line[i] == b'\\' {
                i += 2;
                continue;
            }
            if i >= line.len() || line[i] == self.format.delimiter {
                let end = i.min(line.len());
                let raw = line.slice(start..end);
                fields.push(match raw[..] == *self.format.null.as_bytes() {
                    true => None,
                    false => Some(unescape(raw)),
                });
                if i >= line.len() {
                    return Ok(fields);
                }
                start = i + 1;
            }
            i += 1;
        }
    }
    fn csv_fields(&self, line: &Bytes) -> Result<Vec<Field>> {
        let (quote, escape, delimiter) = (self.format.quote, self.format.escape, self.format.delimiter);
        let mut fields: Vec<Field> = Vec::with_capacity(self.columns);
        let mut value = Vec::new();
        let mut was_quoted = false;
        let mut i = 0;
        loop {
            if i >= line.len() || line[i] == delimiter {
                let column = fields.len();
                let is_null_text = value == self.format.null.as_bytes();
                let never = self.not_null.get(column) == Some(&true);
                let even_quoted = self.quoted_null.get(column) == Some(&true);
                let is_null = is_null_text && if was_quoted { even_quoted } else { !never };
                fields.push((!is_null).then(|| Bytes::from(std::mem::take(&mut value))));
                value.clear();
                was_quoted = false;
                if i >= line.len() {
                    return Ok(fields);
                }
                i += 1;
                continue;
            }
            if line[i] != quote {
                value.push(line[i]);
                i += 1;
                continue;
            }
            was_quoted = true;
            i += 1;
            loop {
                match line.get(i) {
                    None => return Err(malformed("unterminated CSV quoted field")),
                    Some(b) if *b == escape && line.get(i + 1).is_some_and(|n| *n == quote || *n == escape) => {
                        value.push(line[i + 1]);
                        i += 2;
                    }
                    Some(b) if *b == quote => {
                        i += 1;
                        break;
                    }
                    Some(b) => {
                        value.push(*b);
                        i += 1;
                    }
                }
            }
        }
    }
    fn binary_row(&mut self, at_end: bool) -> Result<Option<Vec<Field>>> {
        let incomplete = || match at_end {
            true => Err(malformed("unexpected EOF in COPY data")),
            false => Ok(None),
        };
        if self.read_signature {
            let Some(header) = self.buffer.get(..19) else { return incomplete() };
            if header[..11] != SIGNATURE[..] {
                return Err(malformed("COPY file signature not recognized"));
            }
            let flags = i32::from_be_bytes(header[11..15].try_into().expect("four bytes"));
            if flags & 0xFFFF_0000_u32 as i32 != 0 {
                return Err(malformed("unrecognized critical flags in COPY file header"));
            }
            let extension = i32::from_be_bytes(header[15..19].try_into().expect("four bytes"));
            let extension = usize::try_from(extension).ok().filter(|n| *n <= ROW_BYTES_MAX);
            let Some(extension) = extension else { return Err(malformed("invalid COPY file header (wrong length)")) };
            if self.buffer.len() < 19 + extension {
                return incomplete();
            }
            self.buffer.advance(19 + extension);
            self.read_signature = false;
        }
        let Some(count) = self.buffer.get(..2) else {
            // The trailer may be missing at the end of a stream of messages.
            return if at_end && self.buffer.is_empty() { Ok(None) } else { incomplete() };
        };
        let count = i16::from_be_bytes([count[0], count[1]]);
        if count == -1 {
            self.buffer.advance(2);
            self.is_over = true;
            return self.nothing_after_the_end();
        }
        if count as usize != self.columns || count < 0 {
            return Err(malformed(format!("row field count is {count}, expected {}", self.columns)));
        }
        // First see whether all of it is there.
        let mut at = 2;
        for _ in 0..count {
            let Some(length) = self.buffer.get(at..at + 4) else { return incomplete() };
            let length = i32::from_be_bytes(length.try_into().expect("four bytes"));
            at += 4;
            if length < -1 || length as i64 > ROW_BYTES_MAX as i64 {
                return Err(malformed("invalid field size"));
            }
            at += length.max(0) as usize;
            if at > self.buffer.len() {
                return incomplete();
            }
        }
        self.line += 1;
        let mut row = self.buffer.split_to(at).freeze();
        row.advance(2);
        let mut fields = Vec::with_capacity(self.columns);
        for _ in 0..count {
            let length = row.get_i32();
            fields.push((length >= 0).then(|| row.split_to(length as usize)));
        }
        Ok(Some(fields))
    }
}

/// Undoes the backslash escapes of the text format.
fn unescape(raw: Bytes) -> Bytes {
    if !raw.contains(&b'\\') {
        return raw;
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut i = 0;
    while i < raw.len() {
        if raw[i] != b'\\' || i + 1 >= raw.len() {
            out.push(raw[i]);
            i += 1;
            continue;
        }
        i += 2;
        let digits = |from: usize, most: usize, base: u32| {
            raw[from..].iter().take(most).take_while(|b| (**b as char).is_digit(base)).count()
        };
        let number = |from: usize, count: usize, base: u32| {
            raw[from..from + count].iter().fold(0u32, |n, b| n * base + (*b as char).to_digit(base).unwrap_or(0)) as u8
        };
        out.push(match raw[i - 1] {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => {
                let count = digits(i - 1, 3, 8);
                i += count - 1;
                number(i - count, count, 8)
            }
            b'x' if digits(i, 2, 16) > 0 => {
                let count = digits(i, 2, 16);
                i += count;
                number(i - count, count, 16)
            }
            other => other,
        });
    }
    Bytes::from(out)
}

/// Writes rows as the client gets them.
pub(super) struct Encoder {
    format: CopyFormat,
    columns: Vec<String>,
    force_quote: Vec<bool>,
    pub out: Vec<u8>,
    field: usize,
}

impl Encoder {
    pub fn new(format: CopyFormat, columns: Vec<String>) -> Encoder {
        let force_quote = columns.iter().map(|c| format.force_quote.iter().any(|n| n == "*" || n == c)).collect();
        Encoder { force_quote, columns, format, out: Vec::new(), field: 0 }
    }
    /// What comes before the rows.
    pub fn start(&mut self) {
        match self.format.kind {
            CopyKind::Binary => {
                self.out.extend_from_slice(SIGNATURE);
                self.out.extend_from_slice(&[0; 8]);
            }
            _ if self.format.header => {
                self.begin_row(self.columns.len());
                for i in 0..self.columns.len() {
                    let name = self.columns[i].clone().into_bytes();
                    self.field(Some(&name));
                }
                self.end_row();
            }
            _ => {}
        }
    }
    pub fn begin_row(&mut self, fields: usize) {
        self.field = 0;
        if self.format.kind == CopyKind::Binary {
            self.out.extend_from_slice(&(fields as i16).to_be_bytes());
        }
    }
    pub fn end_row(&mut self) {
        if self.format.kind != CopyKind::Binary {
            self.out.push(b'\n');
        }
    }
    /// What comes after the rows.
    pub fn finish(&mut self) {
        if self.format.kind == CopyKind::Binary {
            self.out.extend_from_slice(&(-1i16).to_be_bytes());
        }
    }
    /// A field: its text or binary form, or NULL.
    pub fn field(&mut self, value: Option<&[u8]>) {
        let at = self.field;
        self.field += 1;
        if self.format.kind == CopyKind::Binary {
            let length = value.map_or(-1, |v| v.len() as i32);
            self.out.extend_from_slice(&length.to_be_bytes());
            self.out.extend_from_slice(value.unwrap_or_default());
            return;
        }
        if at > 0 {
            self.out.push(self.format.delimiter);
        }
        match (value, self.format.kind) {
            (None, _) => self.out.extend_from_slice(self.format.null.as_bytes()),
            (Some(value), CopyKind::Csv) => self.csv_field(value, self.force_quote.get(at) == Some(&true)),
            (Some(value), _) => self.text_field(value),
        }
    }
    fn text_field(&mut self, value: &[u8]) {
        for b in value {
            match b {
                8 => self.out.extend_from_slice(b"\\b"),
                12 => self.out.extend_from_slice(b"\\f"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                11 => self.out.extend_from_slice(b"\\v"),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b if *b == self.format.delimiter => self.out.extend_from_slice(&[b'\\', *b]),
                b => self.out.push(*b),
            }
        }
    }
    fn csv_field(&mut self, value: &[u8], force: bool) {
        let (quote, escape, delimiter) = (self.format.quote, self.format.escape, self.format.delimiter);
        let is_special = |b: &u8| *b == quote || *b == delimiter || *b == b'\n' || *b == b'\r';
        // A value that reads as NULL, or as the end of the data, needs quotes as well.
        let needs = force
            || value == self.format.null.as_bytes()
            || value.iter().any(is_special)
            || (self.columns.len() == 1 && value == b"\\.");
        if !needs {
            self.out.extend_from_slice(value);
            return;
        }
        self.out.push(quote);
        for b in value {
            if *b == quote || *b == escape {
                self.out.push(escape);
            }
            self.out.push(*b);
        }
        self.out.push(quote);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn format(kind: CopyKind) -> CopyFormat {
        let csv = kind == CopyKind::Csv;
        CopyFormat {
            kind,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".to_string() },
            header: false,
            quote: b'"',
            escape: b'"',
            force_quote: Vec::new(),
            force_not_null: Vec::new(),
            force_null: Vec::new(),
        }
    }
    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("c{i}")).collect()
    }
    fn decode(format: CopyFormat, columns: usize, pieces: &[&[u8]]) -> Result<Vec<Vec<Field>>> {
        let mut decoder = Decoder::new(format, &names(columns));
        let mut rows = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(row) = decoder.row(false)? {
                rows.push(row);
            }
        }
        while let Some(row) = decoder.row(true)? {
            rows.push(row);
        }
        Ok(rows)
    }
    fn field(s: &str) -> Field {
        Some(Bytes::copy_from_slice(s.as_bytes()))
    }

    #[test]
    fn text_with_escapes_nulls_and_the_end_marker() {
        let rows = decode(format(CopyKind::Text), 2, &[b"1\ta\\tb\\", b"n\n\\N\t\\x41\\101\n\\.\nignored\tx\n"]).unwrap();
        assert_eq!(rows, [vec![field("1"), field("a\tb\n")], vec![None, field("AA")]]);
    }

    #[test]
    fn csv_with_quotes_newlines_and_nulls() {
        let rows = decode(format(CopyKind::Csv), 2, &[b"1,\"a,\"\"b\nc\"", b"\r\n,\"\"\n"]).unwrap();
        assert_eq!(rows, [vec![field("1"), field("a,\"b\nc")], vec![None, field("")]]);
    }

    #[test]
    fn rows_of_the_wrong_length_are_refused() {
        for bad in [&b"1\t2\t3\n"[..], b"1\n"] {
            assert_eq!(decode(format(CopyKind::Text), 2, &[bad]).unwrap_err().sqlstate(), "22P04");
        }
        let missing = decode(format(CopyKind::Text), 2, &[b"1\n"]).unwrap_err();
        assert_eq!(missing.message(), "missing data for column \"c1\"");
        assert_eq!(decode(format(CopyKind::Csv), 1, &[b"\"open\n"]).unwrap_err().sqlstate(), "22P04");
        assert_eq!(decode(format(CopyKind::Binary), 1, &[b"not a signature at all"]).unwrap_err().sqlstate(), "22P04");
    }

    #[test]
    fn binary_data_ends_with_its_trailer() {
        let mut encoder = Encoder::new(format(CopyKind::Binary), names(1));
        encoder.start();
        encoder.begin_row(1);
        encoder.field(Some(b"x"));
        encoder.finish();
        let whole = encoder.out;
        assert_eq!(decode(format(CopyKind::Binary), 1, &[&whole]).unwrap().len(), 1);
        for after in [&[&whole[..], b"y"][..], &[&[&whole[..], b"y"].concat()]] {
            let refused = decode(format(CopyKind::Binary), 1, after).unwrap_err();
            assert_eq!((refused.sqlstate(), refused.message()), ("22P04", "received copy data after EOF marker"));
        }
    }

    #[test]
    fn lines_are_counted_as_they_are_in_the_data() {
        let mut decoder = Decoder::new(CopyFormat { header: true, ..format(CopyKind::Csv) }, &names(2));
        decoder.push(b"a,b\n1,\"x\ny\"\n2\n");
        assert!(decoder.row(false).unwrap().is_some());
        assert_eq!(decoder.line, 3);
        assert!(decoder.row(false).is_err());
        assert_eq!(decoder.line, 4);
    }

    fn kinds() -> impl Strategy<Value = CopyKind> {
        prop_oneof![Just(CopyKind::Text), Just(CopyKind::Csv), Just(CopyKind::Binary)]
    }
    fn values() -> impl Strategy<Value = Vec<Vec<Option<Vec<u8>>>>> {
        let text = "[a-z\\\\\",\t\n\r.N]{0,6}".prop_map(String::into_bytes);
        proptest::collection::vec(proptest::collection::vec(proptest::option::of(text), 3), 0..6)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(kind in kinds(), rows in values(), cut in 1usize..40) {
            let mut encoder = Encoder::new(format(kind), names(3));
            encoder.start();
            for row in &rows {
                encoder.begin_row(3);
                for f in row {
                    encoder.field(f.as_deref());
                }
                encoder.end_row();
            }
            encoder.finish();
            let pieces: Vec<&[u8]> = encoder.out.chunks(cut).collect();
            let back = decode(format(kind), 3, &pieces).unwrap();
            let expected: Vec<Vec<Field>> =
                rows.iter().map(|r| r.iter().map(|f| f.clone().map(Bytes::from)).collect()).collect();
            prop_assert_eq!(back, expected);
        }

        #[test]
        fn no_input_panics(kind in kinds(), columns in 0usize..4, data in proptest::collection::vec(any::<u8>(), 0..200), signed: bool, cut in 1usize..50) {
            let mut input = Vec::new();
            if signed {
                input.extend_from_slice(SIGNATURE);
                input.extend_from_slice(&[0; 8]);
            }
            input.extend_from_slice(&data);
            let pieces: Vec<&[u8]> = input.chunks(cut).collect();
            let _ = decode(format(kind), columns, &pieces);
        }
    }
}
