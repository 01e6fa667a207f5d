//! A reader of tokens, for the statements parsed here.

use super::{Place, parse_expression};
use meridian_base::Result;
use sqlparser::ast::{Expr, Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::borrow::Cow;

/// Tokens of one statement, without white space.
pub(super) struct Cursor<'a> {
    tokens: &'a [TokenWithSpan],
    at: usize,
    place: &'a Place<'a>,
    /// What was read that means nothing here: messages.
    pub(super) ignored: Vec<Cow<'static, str>>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(tokens: &'a [TokenWithSpan], place: &'a Place<'a>) -> Cursor<'a> {
        Cursor { tokens, at: 0, place, ignored: Vec::new() }
    }
    pub(super) fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at).map(|t| &t.token)
    }
    /// What is left.
    pub(super) fn rest(&self) -> &'a [TokenWithSpan] {
        self.tokens.get(self.at..).unwrap_or_default()
    }
    pub(super) fn place(&self) -> &'a Place<'a> {
        self.place
    }
    /// Leaves tokens behind that were read otherwise.
    pub(super) fn skip(&mut self, tokens: usize) {
        self.at += tokens;
    }
    fn word_at(&self, at: usize) -> Option<&'a str> {
        match &self.tokens.get(at)?.token {
            Token::Word(w) if w.quote_style.is_none() => Some(&w.value),
            _ => None,
        }
    }
    /// Whether these words come next.
    pub(super) fn sees(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(i, w)| self.word_at(self.at + i).is_some_and(|t| t.eq_ignore_ascii_case(w)))
    }
    /// Takes these words if they come next.
    pub(super) fn take(&mut self, words: &[&str]) -> bool {
        let sees = self.sees(words);
        if sees {
            self.at += words.len();
        }
        sees
    }
    /// Takes these words and an opening parenthesis, if they come next.
    pub(super) fn opens(&mut self, words: &[&str]) -> bool {
        let follows = self.tokens.get(self.at + words.len()).is_some_and(|t| t.token == Token::LParen);
        let opens = follows && self.take(words);
        self.at += usize::from(opens);
        opens
    }
    /// Takes these words or fails.
    pub(super) fn expect(&mut self, words: &[&str]) -> Result<()> {
        if self.take(words) { Ok(()) } else { self.fail() }
    }
    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        let sees = self.peek() == Some(token);
        if sees {
            self.at += 1;
        }
        sees
    }
    /// Whether the rest has such a token.
    pub(super) fn has_token(&self, token: &Token) -> bool {
        self.tokens[self.at..].iter().any(|t| t.token == *token)
    }
    pub(super) fn is_done(&self) -> bool {
        self.at >= self.tokens.len()
    }
    /// Whether one token is left.
    pub(super) fn is_last(&self) -> bool {
        self.at + 1 == self.tokens.len()
    }
    /// Whether a number comes next, or its sign.
    pub(super) fn sees_number(&self) -> bool {
        matches!(self.peek(), Some(Token::Number(..) | Token::Minus | Token::Plus))
    }
    /// The statement must end here.
    pub(super) fn end(&self) -> Result<()> {
        if self.is_done() { Ok(()) } else { self.fail() }
    }
    /// «syntax error at or near» the next token.
    pub(super) fn fail<T>(&self) -> Result<T> {
        Err(match self.tokens.get(self.at) {
            Some(t) => self.place.near(t.span.start),
            None => self.place.end(),
        })
    }
    /// An identifier, folded.
    pub(super) fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Word(w)) => {
                self.at += 1;
                Ok(super::truncate(if w.quote_style.is_some() { w.value.clone() } else { w.value.to_lowercase() }))
            }
            _ => self.fail(),
        }
    }
    /// A region: an identifier or a string. Unquoted names may contain hyphens (`us-east1`), as
    /// they cannot mean a subtraction here.
    pub(super) fn region(&mut self) -> Result<String> {
        if let Some(Token::SingleQuotedString(s)) = self.peek() {
            self.at += 1;
            return Ok(s.clone());
        }
        let mut name = self.name()?;
        while self.peek() == Some(&Token::Minus) {
            self.at += 1;
            name.push('-');
            match self.peek() {
                Some(Token::Word(w)) => name.push_str(&w.value.to_lowercase()),
                Some(Token::Number(n, _)) => name.push_str(n),
                _ => return self.fail(),
            }
            self.at += 1;
            // `us-east-1a` is tokenized as a number and a word without a space between.
            if let (Some(a), Some(b)) = (self.tokens.get(self.at - 1), self.tokens.get(self.at))
                && a.span.end == b.span.start
                && let Token::Word(w) = &b.token
                && matches!(a.token, Token::Number(..))
            {
                name.push_str(&w.value.to_lowercase());
                self.at += 1;
            }
        }
        Ok(name)
    }
    /// A possibly qualified name.
    pub(super) fn object_name(&mut self) -> Result<ObjectName> {
        let mut parts = Vec::new();
        loop {
            match self.tokens.get(self.at) {
                Some(TokenWithSpan { token: Token::Word(w), span }) => parts.push(ObjectNamePart::Identifier(Ident {
                    value: w.value.clone(),
                    quote_style: w.quote_style,
                    span: *span,
                })),
                _ => return self.fail(),
            }
            self.at += 1;
            if !self.take_token(&Token::Period) {
                return Ok(ObjectName(parts));
            }
        }
    }
    /// A qualified name as folded strings.
    pub(super) fn path(&mut self) -> Result<Vec<String>> {
        let name = self.object_name()?;
        Ok(name.0.iter().filter_map(|p| p.as_ident()).map(super::fold).collect())
    }
    /// An integer, with sign.
    pub(super) fn integer(&mut self) -> Result<i64> {
        let negative = self.take_token(&Token::Minus);
        if !negative {
            self.take_token(&Token::Plus);
        }
        let Some(Token::Number(n, _)) = self.peek() else { return self.fail() };
        let Ok(value) = format!("{}{n}", if negative { "-" } else { "" }).parse() else { return self.fail() };
        self.at += 1;
        Ok(value)
    }
    /// The rest as an expression.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        let Some(first) = self.tokens.get(self.at) else { return self.fail() };
        let words: Vec<String> = self.tokens[self.at..].iter().map(|t| t.token.to_string()).collect();
        self.at = self.tokens.len();
        parse_expression(&words.join(" ")).map_err(|e| e.at(self.place.position(first.span.start)))
    }
    /// Any single token as a setting's value: a word, a string, a number.
    pub(super) fn value(&mut self) -> Result<String> {
        let value = match self.peek() {
            Some(Token::Word(w)) => w.value.clone(),
            Some(Token::SingleQuotedString(s)) => s.clone(),
            Some(Token::Number(n, _)) => n.clone(),
            _ => return self.fail(),
        };
        self.at += 1;
        Ok(value)
    }
}
