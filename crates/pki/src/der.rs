//! Reading DER (X.690, §8 and §10): tag, length, contents. Total: foreign bytes are `None`, never a
//! panic.

/// Tags that certificates use.
pub(crate) mod tag {
    pub const BOOLEAN: u8 = 0x01;
    pub const INTEGER: u8 = 0x02;
    pub const BIT_STRING: u8 = 0x03;
    pub const OCTET_STRING: u8 = 0x04;
    pub const OID: u8 = 0x06;
    pub const UTF8: u8 = 0x0c;
    pub const PRINTABLE: u8 = 0x13;
    pub const IA5: u8 = 0x16;
    pub const UTC_TIME: u8 = 0x17;
    pub const GENERALIZED_TIME: u8 = 0x18;
    pub const SEQUENCE: u8 = 0x30;
    pub const SET: u8 = 0x31;
    /// `[n]` around another element.
    pub const fn explicit(n: u8) -> u8 {
        0xa0 | n
    }
    /// `[n]` instead of another element's tag.
    pub const fn implicit(n: u8) -> u8 {
        0x80 | n
    }
}

/// An element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub tag: u8,
    pub contents: &'a [u8],
    /// With tag and length.
    pub whole: &'a [u8],
}

/// Elements one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
    /// The next element. Lengths are definite, in their shortest form, and of at most four bytes;
    /// tags have one byte.
    pub fn next(&mut self) -> Option<Element<'a>> {
        let (&tag, rest) = self.rest.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        if tag & 0x1f == 0x1f {
            return None;
        }
        let mut len = first as usize;
        if first >= 0x80 {
            let bytes = (first & 0x7f) as usize;
            if !(1..=4).contains(&bytes) || rest.len() < bytes || rest[0] == 0 {
                return None;
            }
            len = rest[..bytes].iter().fold(0, |len, b| len << 8 | *b as usize);
            rest = &rest[bytes..];
            if len < 0x80 {
                return None;
            }
        }
        let contents = rest.get(..len)?;
        let head = self.rest.len() - rest.len();
        let whole = &self.rest[..head + len];
        self.rest = &self.rest[head + len..];
        Some(Element { tag, contents, whole })
    }
    /// The contents of the next element, which has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|e| e.tag == tag).map(|e| e.contents)
    }
    /// The next element if it has this tag.
    pub fn optional(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.next().filter(|e| e.tag == tag)?;
        *self = ahead;
        Some(element)
    }
}

/// The contents of the only element in these bytes.
pub(crate) fn only(bytes: &[u8], tag: u8) -> Option<&[u8]> {
    let mut reader = Reader::new(bytes);
    let contents = reader.expect(tag)?;
    reader.is_at_end().then_some(contents)
}

/// All elements in these bytes.
pub(crate) fn each(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let (mut reader, mut elements) = (Reader::new(bytes), Vec::new());
    while !reader.is_at_end() {
        elements.push(reader.next()?);
    }
    Some(elements)
}

/// The numbers of an object identifier (X.690, §8.19).
pub(crate) fn oid_arcs(contents: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut number = 0u64;
    let mut is_open = false;
    for byte in contents {
        number = number.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        is_open = byte & 0x80 != 0;
        if !is_open {
            numbers.push(std::mem::take(&mut number));
        }
    }
    let first = *numbers.first().filter(|_| !is_open)?;
    let root = (first / 40).min(2);
    let mut arcs = vec![root, first - root * 40];
    arcs.extend(&numbers[1..]);
    Some(arcs)
}
