//! Lists the members of an object and the elements of an array in well-formed JSON.

use crate::span::Span;

use super::input::Input;
use super::lexer::{LexResult, Lexer};
use super::text;

/// One `"name": value` of an object. Spans are file offsets.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) key: Span,
    pub(crate) value: Span,
}

/// The members of the object at `span`; empty if it is not an object.
pub(crate) fn members(bytes: &[u8], span: Span) -> Vec<Member> {
    let mut found = Vec::new();
    // The document was scanned before, so an error only means "not an object".
    with_lexer(bytes, span, |lexer, at| {
        lexer.expect(b'{', "expected `{`")?;
        if lexer.consume_if(b'}')? {
            return Ok(());
        }
        loop {
            lexer.require_token()?;
            let start = lexer.offset();
            lexer.skip_string()?;
            let key = at(start, lexer.offset());
            lexer.expect(b':', "expected `:`")?;
            lexer.require_token()?;
            let start = lexer.offset();
            lexer.skip_value()?;
            found.push(Member {
                name: text::decode(&bytes[key.range()]).into_owned(),
                key,
                value: at(start, lexer.offset()),
            });
            if !lexer.next_item(b'}')? {
                return Ok(());
            }
        }
    })
    .ok();
    found
}

/// The elements of the array at `span`; empty if it is not an array.
pub(crate) fn elements(bytes: &[u8], span: Span) -> Vec<Span> {
    let mut found = Vec::new();
    with_lexer(bytes, span, |lexer, at| {
        lexer.expect(b'[', "expected `[`")?;
        if lexer.consume_if(b']')? {
            return Ok(());
        }
        loop {
            lexer.require_token()?;
            let start = lexer.offset();
            lexer.skip_value()?;
            found.push(at(start, lexer.offset()));
            if !lexer.next_item(b']')? {
                return Ok(());
            }
        }
    })
    .ok();
    found
}

/// The member named `name`; of several the last, as in every JSON parser.
pub(crate) fn find_member<'m>(members: &'m [Member], name: &str) -> Option<&'m Member> {
    members.iter().rev().find(|member| member.name == name)
}

fn with_lexer(
    bytes: &[u8],
    span: Span,
    visit: impl FnOnce(&mut Lexer<'_>, &dyn Fn(usize, usize) -> Span) -> LexResult<()>,
) -> LexResult<()> {
    let slice = &bytes[span.range()];
    let base = span.start();
    visit(&mut Lexer::new(Input::from_slice(slice)), &|start, end| {
        Span::new(base + start, base + end)
    })
}
