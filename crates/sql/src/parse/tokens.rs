//! Words among the tokens of a statement.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

pub(super) fn is(t: &TokenWithSpan, word: &str) -> bool {
    matches!(&t.token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

pub(super) fn sees(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    words.iter().enumerate().all(|(i, w)| tokens.get(at + i).is_some_and(|t| is(t, w)))
}

/// CockroachDB's words for `INCLUDE`.
pub(super) fn storing(tokens: &mut [TokenWithSpan]) {
    for t in tokens.iter_mut().filter(|t| is(t, "storing") || is(t, "covering")) {
        t.token = word("INCLUDE", Keyword::INCLUDE);
    }
}

pub(super) fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.to_string(), quote_style: None, keyword })
}
