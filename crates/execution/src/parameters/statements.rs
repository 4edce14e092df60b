//! Splits a source into lines and statements, in any language of parameters. Nothing is parsed further.

use super::language::Syntax;

/// Lines that belong together: a line, and the lines that continue its brackets or strings.
pub(super) struct LogicalLine<'a> {
    pub(super) statements: Vec<Statement<'a>>,
    /// The comment at its end, without its sign.
    pub(super) comment: Option<&'a str>,
}

/// A statement that begins in the first column, or follows another on its line.
pub(super) struct Statement<'a> {
    pub(super) text: &'a str,
    /// Assignment operators outside of strings and brackets, as ranges of bytes of the text.
    pub(super) operators: Vec<Operator>,
    /// Whether the variable is after the operator, as in `1 -> x`.
    pub(super) is_rightward: bool,
}

#[derive(Clone, Copy)]
pub(super) struct Operator {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Splits a source into its lines. Lines that begin with a blank are in a block and are left out.
pub(super) fn logical_lines<'a>(source: &'a str, syntax: &Syntax) -> Vec<LogicalLine<'a>> {
    let mut splitter = Splitter::new(source, syntax);
    let mut lines = Vec::new();
    while let Some(line) = splitter.next_line() {
        lines.push(line);
    }
    lines
}

/// The parts of a list that commas separate, without blanks. A comma at the end is ignored.
pub(super) fn split_list<'a>(text: &'a str, syntax: &Syntax) -> Vec<&'a str> {
    let mut splitter = Splitter::new(text, syntax);
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(token) = splitter.next_token() {
        if token == Token::Comma && splitter.depth == 0 {
            parts.push(text[start..splitter.at - 1].trim());
            start = splitter.at;
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}

/// Whether a text has a blank outside of strings and brackets.
pub(super) fn has_blank(text: &str, syntax: &Syntax) -> bool {
    let mut splitter = Splitter::new(text, syntax);
    while let Some(token) = splitter.next_token() {
        if token == Token::Blank && splitter.depth == 0 {
            return true;
        }
    }
    false
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// A comment up to the end of its line; the number is the length of its sign.
    Comment(usize),
    /// A comment with an end sign.
    BlockComment,
    LineEnd,
    Semicolon,
    Comma,
    Blank,
    Assignment,
    RightwardAssignment,
    /// Anything else: strings, brackets, names.
    Other,
}

struct Splitter<'a, 's> {
    source: &'a str,
    syntax: &'s Syntax,
    /// Offset of the next token.
    at: usize,
    /// Number of open brackets.
    depth: usize,
}

impl<'a, 's> Splitter<'a, 's> {
    fn new(source: &'a str, syntax: &'s Syntax) -> Self {
        Self {
            source,
            syntax,
            at: 0,
            depth: 0,
        }
    }

    fn next_line(&mut self) -> Option<LogicalLine<'a>> {
        let begin = self.at;
        if begin >= self.source.len() {
            return None;
        }
        let is_indented = self.source[begin..].starts_with([' ', '\t']);
        let mut line = LogicalLine {
            statements: Vec::new(),
            comment: None,
        };
        let mut pending = PendingStatement::new(begin);
        loop {
            let start = self.at;
            let token = self.next_token();
            if self.depth > 0 && token.is_some() {
                continue;
            }
            match token {
                Some(Token::Assignment) => pending.operators.push((start, self.at, false)),
                Some(Token::RightwardAssignment) => {
                    pending.operators.push((start, self.at, true));
                }
                Some(Token::Comment(sign)) => {
                    pending.end = Some(start);
                    line.comment = Some(&self.source[start + sign..self.at]);
                }
                Some(Token::BlockComment)
                    if self.source[pending.start..start].trim().is_empty() =>
                {
                    pending.start = self.at;
                }
                Some(Token::Semicolon) => {
                    line.statements.extend(pending.finish(self.source, start));
                    pending = PendingStatement::new(self.at);
                }
                Some(Token::LineEnd)
                    if pending.waits_for_value(self.source, start, self.syntax) => {}
                None | Some(Token::LineEnd) => {
                    line.statements.extend(pending.finish(self.source, start));
                    break;
                }
                Some(Token::BlockComment | Token::Comma | Token::Blank | Token::Other) => {}
            }
        }
        if is_indented {
            line.statements.clear();
        }
        Some(line)
    }

    /// The next token, which then ends at `self.at`.
    fn next_token(&mut self) -> Option<Token> {
        let syntax = self.syntax;
        let rest = &self.source[self.at..];
        let first = rest.chars().next()?;
        if let Some((open, close)) = syntax.block_comment
            && rest.starts_with(open)
        {
            let inner = &rest[open.len()..];
            let length = inner
                .find(close)
                .map_or(inner.len(), |end| end + close.len());
            self.at += open.len() + length;
            return Some(Token::BlockComment);
        }
        if rest.starts_with(syntax.line_comment) && self.can_start_comment() {
            self.at += rest.find('\n').unwrap_or(rest.len());
            return Some(Token::Comment(syntax.line_comment.len()));
        }
        if let Some(quote) = syntax
            .quotes
            .iter()
            .find(|quote| rest.starts_with(quote.sign))
            && !(quote.can_follow_operand && self.follows_operand())
        {
            self.at += quote.sign.len();
            self.skip_string(quote);
            return Some(Token::Other);
        }
        let two = rest.as_bytes().get(..2);
        let (token, length) = match (first, two) {
            ('\\', Some(b"\\\n")) => (Token::Blank, 2),
            ('\\', Some(_)) => {
                let escaped = rest.chars().nth(1).map_or(0, char::len_utf8);
                (Token::Other, 1 + escaped)
            }
            ('\n', _) => (Token::LineEnd, 1),
            (';', _) => (Token::Semicolon, 1),
            (',', _) => (Token::Comma, 1),
            ('<', Some(b"<-")) if syntax.has_arrows => (Token::Assignment, 2),
            ('<', Some(b"<<")) if syntax.has_arrows && rest.starts_with("<<-") => {
                (Token::Assignment, 3)
            }
            ('-', Some(b"->")) if syntax.has_arrows => (Token::RightwardAssignment, 2),
            (_, Some(b"==" | b"=>" | b"=~" | b"!=" | b"<=" | b">=" | b":=" | b"~=" | b"->")) => {
                (Token::Other, 2)
            }
            ('=', _) => (Token::Assignment, 1),
            ('(' | '[' | '{', _) => {
                self.depth += 1;
                (Token::Other, 1)
            }
            (')' | ']' | '}', _) => {
                self.depth = self.depth.saturating_sub(1);
                (Token::Other, 1)
            }
            (blank, _) if blank.is_whitespace() => (Token::Blank, blank.len_utf8()),
            (other, _) => (Token::Other, other.len_utf8()),
        };
        self.at += length;
        Some(token)
    }

    /// Moves to the end of a string. A string that has no end reaches to the end of its line, or of the source.
    fn skip_string(&mut self, quote: &super::language::Quote) {
        let mut escaped = false;
        let rest = &self.source[self.at..];
        for (offset, character) in rest.char_indices() {
            if escaped {
                escaped = false;
            } else if character == '\\' && quote.has_escapes {
                escaped = true;
            } else if rest[offset..].starts_with(quote.sign) {
                self.at += offset + quote.sign.len();
                return;
            } else if character == '\n' && !quote.is_multiline {
                self.at += offset;
                return;
            }
        }
        self.at = self.source.len();
    }

    fn previous(&self) -> Option<char> {
        self.source[..self.at].chars().next_back()
    }

    /// In a shell, `a#b` is a word.
    fn can_start_comment(&self) -> bool {
        !self.syntax.blanks_end_value
            || self
                .previous()
                .is_none_or(|previous| previous.is_whitespace() || previous == ';')
    }

    /// Whether the previous character ends an operand: then a quote is an operator.
    fn follows_operand(&self) -> bool {
        self.previous().is_some_and(|previous| {
            previous.is_alphanumeric() || matches!(previous, '_' | ')' | ']' | '}' | '\'' | '.')
        })
    }
}

/// The statement that is being read, with offsets in the source.
struct PendingStatement {
    start: usize,
    /// Where a comment ends it.
    end: Option<usize>,
    operators: Vec<(usize, usize, bool)>,
}

impl PendingStatement {
    fn new(start: usize) -> Self {
        Self {
            start,
            end: None,
            operators: Vec::new(),
        }
    }

    /// Whether the line ends right after an operator, and the language continues it on the next line.
    fn waits_for_value(&self, source: &str, at: usize, syntax: &Syntax) -> bool {
        let has_value = |&(_, end, _): &(usize, usize, bool)| {
            let value = source.get(end..self.end.unwrap_or(at)).unwrap_or_default();
            !value.trim().is_empty()
        };
        syntax.continues_after_operator
            && self.end.is_none()
            && self.operators.last().is_some_and(|last| !has_value(last))
    }

    fn finish(self, source: &str, end: usize) -> Option<Statement<'_>> {
        let raw = source.get(self.start..self.end.unwrap_or(end))?;
        let text = raw.trim();
        let offset = self.start + (raw.len() - raw.trim_start().len());
        let operators = self.operators.iter();
        let operators: Vec<Operator> = operators
            .map(|&(start, end, _)| Operator {
                start: start.saturating_sub(offset),
                end: (end.saturating_sub(offset)).min(text.len()),
            })
            .collect();
        (!text.is_empty()).then_some(Statement {
            text,
            operators,
            is_rightward: self.operators.iter().any(|&(.., rightward)| rightward),
        })
    }
}
