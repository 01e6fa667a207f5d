//! What can be wrong with a pattern, in PostgreSQL's words, and what can end a search.

use std::fmt;

/// Why a pattern is refused. A client sees `invalid regular expression: ` and this, with SQLSTATE
/// 2201B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `***?…`.
    Version,
    CollatingElement,
    CharacterClass,
    Escape,
    BackReference,
    Brackets,
    Parentheses,
    Braces,
    RepetitionCount,
    CharacterRange,
    QuantifierOperand,
    EmbeddedOption,
    /// Flags that contradict each other: a literal string in the expanded syntax.
    Flags,
    /// Larger than the limits of this crate (`limits`).
    TooComplex,
}

impl Error {
    /// The text that follows `invalid regular expression: `.
    pub fn reason(self) -> &'static str {
        match self {
            Error::Version => "invalid regexp (reg version 0.8)",
            Error::CollatingElement => "invalid collating element",
            Error::CharacterClass => "invalid character class",
            Error::Escape => "invalid escape \\ sequence",
            Error::BackReference => "invalid backreference number",
            Error::Brackets => "brackets [] not balanced",
            Error::Parentheses => "parentheses () not balanced",
            Error::Braces => "braces {} not balanced",
            Error::RepetitionCount => "invalid repetition count(s)",
            Error::CharacterRange => "invalid character range",
            Error::QuantifierOperand => "quantifier operand invalid",
            Error::EmbeddedOption => "invalid embedded option",
            Error::Flags => "invalid argument to regex function",
            Error::TooComplex => "regular expression is too complex",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid regular expression: {}", self.reason())
    }
}

impl std::error::Error for Error {}

/// A search's check said that it shall end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the search was interrupted")
    }
}

impl std::error::Error for Interrupted {}
