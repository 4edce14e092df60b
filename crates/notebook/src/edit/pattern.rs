//! Replaces words, regular expressions, or text in cells of one kind. Works on the sources of cells,
//! so that it never touches markers.

use std::ops::Range;

use regex_lite::{Captures, Regex, RegexBuilder};

use super::replace::{ReplaceScope, Replacement};
use super::{Draft, matches};
use crate::cell::CellKind;
use crate::document::Cells;
use crate::error::EditError;
use crate::plan::Plan;

/// How the text to replace is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// As it is.
    #[default]
    Text,
    /// As it is, but not as a part of a longer word.
    Word,
    /// As a regular expression; `^` and `$` match at lines.
    Regex,
}

/// A match in a source and its replacement.
struct Match {
    range: Range<usize>,
    new: String,
}

/// Replaces matches in the sources of cells.
pub(super) fn replace_in_sources(
    cells: &dyn Cells,
    replacement: &Replacement<'_>,
) -> Result<Draft, EditError> {
    let regex = match replacement.mode {
        MatchMode::Regex => {
            let regex = compile(replacement.old)?;
            check_references(&regex, replacement.new)?;
            Some(regex)
        }
        _ => None,
    };
    let is_selected = |index: &usize| selects(replacement.kinds, cells.kind(*index));
    let mut slots = Plan::keep_all(cells).slots;
    let mut found = Vec::new();
    let mut count = 0;
    let mut focus = None;
    for index in (0..cells.count()).filter(is_selected) {
        let source = cells.source(index);
        let matched = match &regex {
            Some(regex) => find_regex(&source, regex, replacement.new),
            None => find_text(&source, replacement),
        };
        count += matched.len();
        found.extend(matches::locate_in_cell(
            cells,
            index,
            matched.iter().map(|matched| matched.range.start),
        ));
        let edited = apply(&source, &matched);
        if edited != source {
            focus.get_or_insert(index);
            slots[index].source = Some(edited);
        }
    }
    if count == 0 {
        return Err(EditError::NoMatch {
            similar: match replacement.mode {
                MatchMode::Regex => Vec::new(),
                _ => matches::find_similar(cells, replacement.old),
            },
            has_diff_columns: false,
        });
    }
    if count > 1 && replacement.scope == ReplaceScope::One {
        found.truncate(matches::MATCH_LIMIT);
        return Err(EditError::Matches {
            count,
            matches: found,
        });
    }
    if focus.is_none() {
        return Err(EditError::NothingToReplace);
    }
    Ok(Draft {
        plan: Plan {
            slots,
            metadata: Vec::new(),
        },
        focus,
        removed: None,
        anchor: None,
        notices: Vec::new(),
    })
}

/// Whether a list of kinds selects a kind; an empty one selects all.
pub(super) fn selects(kinds: &[CellKind], kind: CellKind) -> bool {
    kinds.is_empty() || kinds.contains(&kind)
}

fn compile(pattern: &str) -> Result<Regex, EditError> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .build()
        .map_err(|error| EditError::InvalidPattern {
            reason: error.to_string(),
        })
}

fn find_text(source: &str, replacement: &Replacement<'_>) -> Vec<Match> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (old, new) = (replacement.old, replacement.new);
    // A side counts only if the text itself begins or ends with a part of a word.
    let is_whole = |at: usize| {
        let before = source[..at].chars().next_back().is_some_and(is_word);
        let after = source[at + old.len()..].chars().next().is_some_and(is_word);
        let splits_word = before && old.starts_with(is_word) || after && old.ends_with(is_word);
        !splits_word
    };
    source
        .match_indices(old)
        .filter(|(at, _)| replacement.mode == MatchMode::Text || is_whole(*at))
        .map(|(at, _)| Match {
            range: at..at + old.len(),
            new: new.to_owned(),
        })
        .collect()
}

fn find_regex(source: &str, regex: &Regex, template: &str) -> Vec<Match> {
    let matched = |captures: Captures<'_>| {
        let range = captures.get(0)?.range();
        let mut new = String::new();
        for part in parse_template(template) {
            match part {
                Part::Text(text) => new.push_str(text),
                Part::Group(name) => {
                    let group = match name.parse() {
                        Ok(number) => captures.get(number),
                        Err(_) => captures.name(name),
                    };
                    new.push_str(group.map_or("", |group| group.as_str()));
                }
            }
        }
        Some(Match { range, new })
    };
    regex.captures_iter(source).filter_map(matched).collect()
}

fn apply(source: &str, matches: &[Match]) -> String {
    let mut edited = String::with_capacity(source.len());
    let mut done = 0;
    for Match { range, new } in matches {
        edited.push_str(&source[done..range.start]);
        edited.push_str(new);
        done = range.end;
    }
    edited.push_str(&source[done..]);
    edited
}

/// A part of the replacement of a regular expression.
enum Part<'a> {
    Text(&'a str),
    /// Number or name of a group: `$1`, `\1`, `${name}`.
    Group(&'a str),
}

/// Splits a replacement. `$$` is a dollar sign; everything that names no group is text.
fn parse_template(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut text_start = 0;
    let mut at = 0;
    while let Some(found) = template[at..].find(['$', '\\']) {
        let sign = at + found;
        let rest = &template[sign + 1..];
        let is_dollar = template[sign..].starts_with('$');
        let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let (part, length) = if is_dollar && rest.starts_with('$') {
            (Part::Text("$"), 1)
        } else if digits > 0 {
            (Part::Group(&rest[..digits]), digits)
        } else if let Some(end) = rest.find('}')
            && is_dollar
            && rest.starts_with('{')
        {
            (Part::Group(&rest[1..end]), end + 1)
        } else {
            at = sign + 1;
            continue;
        };
        parts.push(Part::Text(&template[text_start..sign]));
        parts.push(part);
        at = sign + 1 + length;
        text_start = at;
    }
    parts.push(Part::Text(&template[text_start..]));
    parts
}

/// Every group of the replacement must exist: the text of a missing one would be dropped silently.
fn check_references(regex: &Regex, template: &str) -> Result<(), EditError> {
    for part in parse_template(template) {
        let Part::Group(name) = part else { continue };
        let exists = match name.parse::<usize>() {
            Ok(number) => number < regex.captures_len(),
            Err(_) => regex.capture_names().flatten().any(|other| other == name),
        };
        if !exists {
            return Err(EditError::NoSuchGroup {
                name: name.to_owned(),
                count: regex.captures_len() - 1,
            });
        }
    }
    Ok(())
}
