//! Compares text line by line.

use std::borrow::Cow;

use cellwright_output::clean;

use super::difference::{Difference, Side, excerpt_pair};
use super::normalize;
use super::rules::{Rule, Rules};

/// The first line that differs, if there is one.
pub(super) fn first_difference(
    what: &str,
    stored: &str,
    fresh: &str,
    indexes: (usize, usize),
    rules: Rules,
) -> Option<Difference> {
    if stored == fresh {
        return None;
    }
    let (stored, fresh) = (render(stored, rules), render(fresh, rules));
    let (mut was, mut is) = (
        ComparedLines::new(&stored, rules),
        ComparedLines::new(&fresh, rules),
    );
    loop {
        let (one, other) = (was.next(), is.next());
        let (line, stored, fresh) = match (one, other) {
            (None, None) => return None,
            (Some((_, one)), Some((_, other))) if lines_equal(one, other, rules) => continue,
            (Some((_, one)), Some((line, other))) => {
                let (one, other) = excerpt_pair(one, other);
                (line, Some(one), Some(other))
            }
            (Some((line, one)), None) => (line, Some(excerpt_pair(one, "").0), None),
            (None, Some((line, other))) => (line, None, Some(excerpt_pair("", other).1)),
        };
        return Some(Difference {
            what: what.to_owned(),
            line: Some(line),
            stored: Some(Side {
                output: indexes.0,
                text: stored,
            }),
            fresh: Some(Side {
                output: indexes.1,
                text: fresh,
            }),
        });
    }
}

/// The text as a terminal would show it, if the rules ignore redraws and colours.
pub(super) fn render(text: &str, rules: Rules) -> Cow<'_, str> {
    let is_redrawn = rules.has(Rule::Redraws) && text.contains(['\r', '\u{8}']);
    let is_coloured = rules.has(Rule::Colours) && text.contains(['\u{1b}', '\u{9b}']);
    match (is_redrawn, is_coloured) {
        (false, false) => Cow::Borrowed(text),
        (true, _) if rules.has(Rule::Colours) => Cow::Owned(clean::plain(text)),
        (true, _) => Cow::Owned(clean::coloured(text)),
        (false, true) => Cow::Owned(normalize::strip_colours(text)),
    }
}

/// The lines that are compared, with their numbers.
struct ComparedLines<'a> {
    lines: Box<dyn Iterator<Item = (usize, &'a str)> + 'a>,
    rules: Rules,
}

impl<'a> ComparedLines<'a> {
    fn new(text: &'a str, rules: Rules) -> Self {
        let text = if rules.has(Rule::Whitespace) {
            text.trim_end()
        } else {
            text
        };
        // Without that rule a newline at the end is an empty last line, and so a difference.
        let lines = text
            .split('\n')
            .enumerate()
            .map(|(number, line)| (number + 1, line));
        Self {
            lines: Box::new(lines),
            rules,
        }
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        self.lines
            .by_ref()
            .find(|(_, line)| !normalize::is_ignored_line(line, self.rules))
    }
}

fn lines_equal(stored: &str, fresh: &str, rules: Rules) -> bool {
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
    if stored == fresh {
        return true;
    }
    let stored = normalize::normalize_line(stored, rules);
    let fresh = normalize::normalize_line(fresh, rules);
    stored == fresh || rules.tolerance().accepts_lines(&stored, &fresh)
}
