//! Languages that parameters can be written in.

mod bash;
mod javascript;
mod julia;
mod python;
mod r;

use unicode_ident::{is_xid_continue, is_xid_start};

use super::Value;
use super::text::is_troublesome;

/// What a language has no words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unsayable(pub(super) &'static str);

/// How a language names things and writes them.
pub(super) trait Language: Sync {
    /// What people call it.
    fn title(&self) -> &'static str;

    /// What kernels call it, in small letters.
    fn names(&self) -> &'static [&'static str];

    /// A line that does nothing.
    fn comment(&self, text: &str) -> String {
        format!("# {text}")
    }

    /// Whether it can be assigned to.
    fn is_name(&self, name: &str) -> bool;

    /// Writes an assignment, in one line.
    fn assign(&self, out: &mut String, name: &str, value: &Value) -> Result<(), Unsayable>;
}

pub(super) const ALL: [&dyn Language; 6] = [
    &python::Python,
    &r::R,
    &julia::Julia,
    &bash::Bash,
    &javascript::JavaScript,
    &javascript::TypeScript,
];

pub(super) fn find(name: &str) -> Option<&'static dyn Language> {
    let name = name.to_ascii_lowercase();
    ALL.into_iter()
        .find(|language| language.names().contains(&name.as_str()))
}

/// Whether a name consists of letters, digits and what else is allowed, does not begin with a digit,
/// and is no word of the language.
fn is_word(name: &str, others: &[char], reserved: &[&str]) -> bool {
    let mut characters = name.chars();
    characters
        .next()
        .is_some_and(|first| is_xid_start(first) || others.contains(&first))
        && characters.all(|character| is_xid_continue(character) || others.contains(&character))
        && !reserved.contains(&name)
        // Some may join letters, but nobody would see that they are there.
        && !name.contains(is_troublesome)
}
