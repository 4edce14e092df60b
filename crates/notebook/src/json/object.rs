//! The members of an object and the elements of an array that is known to be well formed.

use crate::span::Span;

use super::input::Input;
use super::lexer::{Lexed, Lexer};
use super::text;

/// One `"name": value` of an object; spans are offsets into the file.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) key: Span,
    pub(crate) value: Span,
}

/// The members of the object at `span`. Empty if it is no object.
pub(crate) fn members(bytes: &[u8], span: Span) -> Vec<Member> {
    let mut found = Vec::new();
    // The document was scanned before, so an error here means "not an object" at worst.
    walk(bytes, span, |lexer, at| {
        lexer.expect(b'{', "expected `{`")?;
        if lexer.take(b'}')? {
            return Ok(());
        }
        loop {
            lexer.need_token()?;
            let start = lexer.offset();
            lexer.skip_string()?;
            let key = at(start, lexer.offset());
            lexer.expect(b':', "expected `:`")?;
            lexer.need_token()?;
            let start = lexer.offset();
            lexer.skip_value()?;
            found.push(Member {
                name: text::decode(&bytes[key.range()]).into_owned(),
                key,
                value: at(start, lexer.offset()),
            });
            if !lexer.another(b'}')? {
                return Ok(());
            }
        }
    })
    .ok();
    found
}

/// The elements of the array at `span`. Empty if it is no array.
pub(crate) fn elements(bytes: &[u8], span: Span) -> Vec<Span> {
    let mut found = Vec::new();
    walk(bytes, span, |lexer, at| {
        lexer.expect(b'[', "expected `[`")?;
        if lexer.take(b']')? {
            return Ok(());
        }
        loop {
            lexer.need_token()?;
            let start = lexer.offset();
            lexer.skip_value()?;
            found.push(at(start, lexer.offset()));
            if !lexer.another(b']')? {
                return Ok(());
            }
        }
    })
    .ok();
    found
}

/// The member named `name`; of several the last, as in every JSON reader.
pub(crate) fn member<'m>(members: &'m [Member], name: &str) -> Option<&'m Member> {
    members.iter().rev().find(|member| member.name == name)
}

fn walk(
    bytes: &[u8],
    span: Span,
    visit: impl FnOnce(&mut Lexer<'_>, &dyn Fn(usize, usize) -> Span) -> Lexed<()>,
) -> Lexed<()> {
    let slice = &bytes[span.range()];
    let base = span.start();
    visit(&mut Lexer::new(Input::slice(slice)), &|start, end| {
        Span::new(base + start, base + end)
    })
}
