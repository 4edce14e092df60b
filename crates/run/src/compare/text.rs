//! Text compared line by line.

use std::borrow::Cow;

use cellwright_output::clean;

use super::difference::{Difference, Side, excerpts};
use super::noise;
use super::rules::{Rule, Rules};

/// The first line that differs, if one does.
pub(super) fn difference(
    what: &str,
    stored: &str,
    fresh: &str,
    places: (usize, usize),
    rules: Rules,
) -> Option<Difference> {
    if stored == fresh {
        return None;
    }
    let (stored, fresh) = (seen(stored, rules), seen(fresh, rules));
    let (mut was, mut is) = (Lines::new(&stored, rules), Lines::new(&fresh, rules));
    loop {
        let (one, other) = (was.next(), is.next());
        let (line, stored, fresh) = match (one, other) {
            (None, None) => return None,
            (Some((_, one)), Some((_, other))) if same(one, other, rules) => continue,
            (Some((_, one)), Some((line, other))) => {
                let (one, other) = excerpts(one, other);
                (line, Some(one), Some(other))
            }
            (Some((line, one)), None) => (line, Some(excerpts(one, "").0), None),
            (None, Some((line, other))) => (line, None, Some(excerpts("", other).1)),
        };
        return Some(Difference {
            what: what.to_owned(),
            line: Some(line),
            stored: Some(Side {
                output: places.0,
                text: stored,
            }),
            fresh: Some(Side {
                output: places.1,
                text: fresh,
            }),
        });
    }
}

/// The text as it would stand on a terminal, as far as the rules say so.
pub(super) fn seen(text: &str, rules: Rules) -> Cow<'_, str> {
    let is_redrawn = rules.has(Rule::Redraws) && text.contains(['\r', '\u{8}']);
    let is_coloured = rules.has(Rule::Colours) && text.contains(['\u{1b}', '\u{9b}']);
    match (is_redrawn, is_coloured) {
        (false, false) => Cow::Borrowed(text),
        (true, _) if rules.has(Rule::Colours) => Cow::Owned(clean::plain(text)),
        (true, _) => Cow::Owned(clean::coloured(text)),
        (false, true) => Cow::Owned(noise::without_colours(text)),
    }
}

/// Lines that count, with their numbers.
struct Lines<'a> {
    left: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
    rules: Rules,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str, rules: Rules) -> Self {
        let text = if rules.has(Rule::Whitespace) {
            text.trim_end()
        } else {
            text
        };
        // Without that rule a newline at the end makes a difference: an empty line follows.
        let left = text
            .split('\n')
            .enumerate()
            .map(|(number, line)| (number + 1, line));
        Self {
            left: Box::new(left),
            rules,
        }
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        self.left
            .by_ref()
            .find(|(_, line)| !noise::is_dropped(line, self.rules))
    }
}

fn same(stored: &str, fresh: &str, rules: Rules) -> bool {
    if stored == fresh {
        return true;
    }
    let trim = |line: &'_ str| -> usize {
        if rules.has(Rule::Whitespace) {
            line.trim_end().len()
        } else {
            line.len()
        }
    };
    let (stored, fresh) = (&stored[..trim(stored)], &fresh[..trim(fresh)]);
    stored == fresh || noise::without(stored, rules) == noise::without(fresh, rules)
}
