//! `to_number`: the digits of a text, read by a template (PostgreSQL manual, 9.8).
//!
//! A template is read from left to right beside the text. A place of a digit takes one character,
//! whatever it is: a digit counts, and so does the first decimal point if the template has one; any
//! other character is passed over. Text in the template passes over as many characters of the
//! input, whatever they are; `L` and `TH` pass over those that are no *data*: digits, signs, points
//! or commas. The template need not use up the input.

use crate::types::numeric::Numeric;
use meridian_base::{Error, Result};

/// An element of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// `9` or `0`.
    Digit,
    /// `.` or `D`.
    Point,
    /// `,` or `G`.
    Comma,
    /// `S`.
    Sign,
    /// `MI`, `PL` or `SG`, with the signs that it takes.
    SignOf(&'static str),
    /// A character of text.
    Text,
    /// `L` or `TH`: this many characters that are no data.
    Other(usize),
    /// `FM`, `B`, `PR` and `V`: they say something of the whole.
    Mark(Mark),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Fill,
    Blank,
    Brackets,
    Shift,
}

const WORDS: &[(&str, Element)] = &[
    ("FM", Element::Mark(Mark::Fill)),
    ("MI", Element::SignOf("-")),
    ("PL", Element::SignOf("+")),
    ("SG", Element::SignOf("+-")),
    ("PR", Element::Mark(Mark::Brackets)),
    ("TH", Element::Other(2)),
    ("9", Element::Digit),
    ("0", Element::Digit),
    (".", Element::Point),
    ("D", Element::Point),
    (",", Element::Comma),
    ("G", Element::Comma),
    ("S", Element::Sign),
    ("L", Element::Other(1)),
    ("B", Element::Mark(Mark::Blank)),
    ("V", Element::Mark(Mark::Shift)),
];

/// Cuts a template into its elements.
fn elements(template: &str) -> Result<Vec<Element>> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some(c) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            out.extend(quoted[..end].chars().map(|_| Element::Text));
            rest = quoted.get(end + 1..).unwrap_or("");
            continue;
        }
        let starts_with = |word: &str| rest.get(..word.len()).is_some_and(|r| r.eq_ignore_ascii_case(word));
        for word in ["EEEE", "RN"] {
            if starts_with(word) {
                return Err(Error::unsupported(format!("\"{word}\" not supported for input")));
            }
        }
        match WORDS.iter().find(|(word, _)| starts_with(word)) {
            Some((word, element)) => {
                out.push(*element);
                rest = &rest[word.len()..];
            }
            None => {
                out.push(Element::Text);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Ok(out)
}

/// What a template says of the number as a whole.
#[derive(Default)]
struct Shape {
    /// Places of digits after the point.
    decimals: usize,
    has_point: bool,
    /// `S`.
    has_sign: bool,
    /// `MI`, `PL` or `SG`.
    has_placed_sign: bool,
    brackets: bool,
    fill: bool,
    has_shift: bool,
    /// Places after `V`: the number is divided by that power of ten.
    shift: usize,
}

impl Shape {
    fn of(elements: &[Element]) -> Result<Shape> {
        let mut shape = Shape::default();
        for e in elements {
            shape.add(*e)?;
        }
        Ok(shape)
    }

    fn add(&mut self, e: Element) -> Result<()> {
        let refuse = |message: &str| Err(Error::sql("42601", message));
        match e {
            Element::Digit if self.brackets => return refuse("\"9\" must be ahead of \"PR\""),
            Element::Digit => {
                self.decimals += usize::from(self.has_point);
                self.shift += usize::from(self.has_shift);
            }
            Element::Point if self.has_point => return refuse("multiple decimal points"),
            Element::Point if self.has_shift => return refuse("cannot use \"V\" and decimal point together"),
            Element::Point => self.has_point = true,
            Element::Sign if self.has_sign => return refuse("cannot use \"S\" twice"),
            Element::Sign if self.has_placed_sign || self.brackets => {
                return refuse("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together");
            }
            Element::Sign => self.has_sign = true,
            Element::SignOf(signs) if self.has_sign => {
                let word = WORDS.iter().find(|(_, e)| *e == Element::SignOf(signs)).map_or("", |(word, _)| word);
                return refuse(&format!("cannot use \"S\" and \"{word}\" together"));
            }
            Element::SignOf(_) => self.has_placed_sign = true,
            Element::Mark(Mark::Brackets) if self.has_sign || self.has_placed_sign => {
                return refuse("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together");
            }
            Element::Mark(Mark::Brackets) => self.brackets = true,
            Element::Mark(Mark::Fill) => self.fill = true,
            Element::Mark(Mark::Shift) if self.has_point => {
                return refuse("cannot use \"V\" and decimal point together");
            }
            Element::Mark(Mark::Shift) => self.has_shift = true,
            Element::Comma | Element::Text | Element::Other(_) | Element::Mark(Mark::Blank) => {}
        }
        Ok(())
    }
}

/// Reads a text beside a template.
struct Reader<'a> {
    text: std::iter::Peekable<std::str::Chars<'a>>,
    shape: Shape,
    sign: Option<char>,
    digits: String,
    has_point: bool,
    /// Digits after the point.
    decimals: usize,
}

impl Reader<'_> {
    fn has_digits(&self) -> bool {
        self.digits.bytes().any(|b| b.is_ascii_digit())
    }

    /// Passes over so many characters that are no data.
    fn pass_over(&mut self, count: usize) {
        for _ in 0..count {
            if self.text.next_if(|c| !matches!(c, '0'..='9' | '.' | ',' | '+' | '-')).is_none() {
                return;
            }
        }
    }

    /// A place of a digit or of the point. The character there is used up.
    fn place(&mut self, is_digit_place: bool) {
        self.text.next_if_eq(&' ');
        if self.sign.is_none() && is_digit_place && !self.has_digits() {
            let takes_bracket = self.shape.brackets;
            if let Some(c) = self.text.next_if(|c| matches!(c, '-' | '+') || takes_bracket && *c == '<') {
                self.sign = Some(if c == '+' { '+' } else { '-' });
            }
        }
        let Some(c) = self.text.peek().copied() else { return };
        let mut is_read = false;
        if c.is_ascii_digit() {
            if self.has_point && self.decimals == self.shape.decimals {
                self.text.next();
                return;
            }
            self.digits.push(c);
            self.decimals += usize::from(self.has_point);
            is_read = true;
        } else if self.shape.has_point && !self.has_point && c == '.' {
            self.digits.push('.');
            self.has_point = true;
            is_read = true;
        }
        self.text.next();
        if self.sign.is_some() || !self.has_digits() {
            return;
        }
        // A sign behind the last digit.
        if is_read && self.shape.has_sign {
            self.sign = self.text.next_if(|c| matches!(c, '-' | '+'));
        } else if !is_read && self.shape.has_placed_sign && matches!(c, '-' | '+') {
            self.sign = Some(c);
        }
    }

    fn read(&mut self, e: Element) {
        match e {
            Element::Digit => self.place(true),
            Element::Point => self.place(false),
            Element::Comma if self.shape.fill && !self.has_digits() => {}
            Element::Comma => {
                self.text.next_if_eq(&',');
            }
            Element::SignOf(signs) => match self.text.next_if(|c| signs.contains(*c)) {
                Some(c) => self.sign = Some(c),
                None => self.pass_over(1),
            },
            Element::Text => {
                self.text.next();
            }
            Element::Other(count) => self.pass_over(count),
            Element::Sign | Element::Mark(_) => {}
        }
    }
}

/// `to_number(text, template)`.
pub fn parse(text: &str, template: &str) -> Result<Option<Numeric>> {
    if template.is_empty() {
        return Ok(None);
    }
    let elements = elements(template)?;
    let mut reader = Reader {
        text: text.chars().peekable(),
        shape: Shape::of(&elements)?,
        sign: None,
        digits: String::new(),
        has_point: false,
        decimals: 0,
    };
    for e in elements {
        if reader.text.peek().is_none() {
            break;
        }
        reader.read(e);
    }
    let written = format!("{}{}", reader.sign.unwrap_or(' '), reader.digits);
    let invalid = || Error::sql("22P02", format!("invalid input syntax for type numeric: \"{written}\""));
    let number = Numeric::parse(written.trim()).ok_or_else(invalid)??;
    if reader.shape.shift == 0 {
        return Ok(Some(number));
    }
    let unit = Numeric::parse(&format!("1e{}", reader.shape.shift)).ok_or_else(invalid)??;
    number.div(&unit).map(Some)
}
