//! Selectors: the part of a notebook to read, appended to its path.
//!
//! `:10-20` and similar select lines of the text view, `:cells=3-5` and `:id=ab12` select cells,
//! `:raw` is the JSON, `:ids` and `:outputs` show more, `:outline` shows less, `:images` shows only images.

use crate::document::Cells;
use crate::edit::Address;
use crate::error::{EditError, Notice};

/// A parsed selector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The form of the output.
    pub view: View,
    /// Whether markers carry ids.
    pub ids: bool,
    /// Whether outputs are shown.
    pub outputs: bool,
    /// The selected part.
    pub part: Part,
}

/// The form in which a notebook is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Text with cell markers.
    #[default]
    Text,
    /// The file's JSON.
    Raw,
    /// One line per cell.
    Outline,
    /// The images.
    Images,
}

/// The selected part of a notebook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Everything.
    #[default]
    All,
    /// Lines of the view.
    Lines(Vec<IndexRange>),
    /// Cells by index.
    Cells(Vec<IndexRange>),
    /// Cells by id.
    Ids(Vec<String>),
}

/// A range that includes both ends; open if `end` is `None`. Lines count from 1, cells from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRange {
    /// The first index.
    pub start: usize,
    /// The last index.
    pub end: Option<usize>,
}

/// Why a selector is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectError {
    /// Line 0.
    #[error("Line selector 0 is invalid; lines are 1-indexed. Use :1.")]
    LineZero,
    /// The end is before the start.
    #[error("Invalid range {start}-{end}: end must be >= start.")]
    Backwards {
        /// First line.
        start: usize,
        /// Last line.
        end: usize,
    },
    /// A count of zero.
    #[error("Invalid range {start}+0: count must be >= 1.")]
    NoCount {
        /// First line.
        start: usize,
    },
    /// Not a selector.
    #[error(
        "Invalid selector ':{text}'. Use :N, :N-M, :N+K, :N- (open-ended), a comma-separated list \
         of ranges, :raw, or a range combined with raw (e.g. :raw:50-100); for cells :cells=3-5, \
         :id=ab12, :outline, :outputs, :ids."
    )]
    Unknown {
        /// The text after the colon.
        text: String,
    },
    /// Two selectors that cannot be combined.
    #[error("Selectors ':{first}' and ':{second}' cannot be combined.")]
    Conflict {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// A line after the last one.
    #[error(
        "Line {line} is beyond end of notebook ({total} lines total). Use :1 to read from the \
         start, or :{total} to read the last line."
    )]
    BeyondEnd {
        /// The requested line.
        line: usize,
        /// The number of lines.
        total: usize,
    },
    /// Lines of a notebook without cells.
    #[error("The notebook is empty.")]
    EmptyNotebook,
}

/// Splits `argument` into a path and a selector. `exists` returns whether a path names a file. If
/// the whole argument names a file, there is no selector.
pub fn split<'a>(
    argument: &'a str,
    exists: &dyn Fn(&str) -> bool,
) -> Result<(&'a str, Selector), SelectError> {
    if exists(argument) {
        return Ok((argument, Selector::default()));
    }
    let mut path = argument;
    let mut tokens: Vec<&str> = Vec::new();
    while let Some((mut before, mut token)) = path.rsplit_once(':') {
        // `:id:ab12`, as cells are named elsewhere.
        if let Some((outer, "id" | "cell" | "cells")) = before.rsplit_once(':')
            && !exists(before)
        {
            before = outer;
            token = &path[outer.len() + 1..];
        }
        let is_selector = match Token::parse(token) {
            Ok(_) => true,
            // Invalid, but meant as a selector: report it instead of a missing file.
            Err(error) if exists(before) || !matches!(error, SelectError::Unknown { .. }) => {
                return Err(error);
            }
            Err(_) => false,
        };
        if !is_selector || before.is_empty() {
            break;
        }
        tokens.push(token);
        path = before;
        if exists(path) {
            break;
        }
    }
    tokens.reverse();
    Ok((path, Selector::from_tokens(&tokens)?))
}

enum Token {
    Raw,
    Outline,
    Images,
    Ids,
    Outputs,
    Part(Part),
}

impl Token {
    fn parse(text: &str) -> Result<Self, SelectError> {
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "raw" => return Ok(Self::Raw),
            "outline" => return Ok(Self::Outline),
            "images" | "figures" => return Ok(Self::Images),
            "ids" => return Ok(Self::Ids),
            "outputs" => return Ok(Self::Outputs),
            _ => {}
        }
        let unknown = || SelectError::Unknown {
            text: text.to_owned(),
        };
        for name in ["cells=", "cell=", "cells:", "cell:"] {
            if let Some(list) = lower.strip_prefix(name) {
                return match parse_ranges(list, 0) {
                    Ok(ranges) => Ok(Self::Part(Part::Cells(ranges))),
                    Err(SelectError::Unknown { .. }) => {
                        let ids = parse_ids(&text[name.len()..]).ok_or_else(unknown)?;
                        Ok(Self::Part(Part::Ids(ids)))
                    }
                    Err(other) => Err(other),
                };
            }
        }
        if lower.starts_with("id=") || lower.starts_with("id:") {
            let ids: Vec<String> = text[3..].split(',').map(str::to_owned).collect();
            if ids.iter().any(String::is_empty) {
                return Err(unknown());
            }
            return Ok(Self::Part(Part::Ids(ids)));
        }
        Ok(Self::Part(Part::Lines(parse_ranges(&lower, 1)?)))
    }
}

/// A list of whole ids, as after `:cells=`.
fn parse_ids(list: &str) -> Option<Vec<String>> {
    let id = |item: &str| match Address::parse(item)? {
        Address::ExactId(id) | Address::Id(id) => Some(id),
        Address::Index(_) => None,
    };
    list.split(',').map(id).collect()
}

impl Selector {
    fn from_tokens(tokens: &[&str]) -> Result<Self, SelectError> {
        let mut selector = Self::default();
        let mut part_from: Option<&str> = None;
        let mut view_from: Option<&str> = None;
        for &text in tokens {
            let conflict = |other: &str| SelectError::Conflict {
                first: other.to_owned(),
                second: text.to_owned(),
            };
            match Token::parse(text)? {
                Token::Part(part) => {
                    if let Some(other) = part_from.replace(text) {
                        return Err(conflict(other));
                    }
                    selector.part = part;
                }
                view @ (Token::Raw | Token::Outline | Token::Images) => {
                    if let Some(other) = view_from.replace(text) {
                        return Err(conflict(other));
                    }
                    selector.view = match view {
                        Token::Raw => View::Raw,
                        Token::Outline => View::Outline,
                        _ => View::Images,
                    };
                }
                Token::Ids => selector.ids = true,
                Token::Outputs => selector.outputs = true,
            }
        }
        selector.check_combination(view_from, part_from)?;
        Ok(selector)
    }

    fn check_combination(&self, view: Option<&str>, part: Option<&str>) -> Result<(), SelectError> {
        let conflict = |first: &str, second: &str| {
            Err(SelectError::Conflict {
                first: first.to_owned(),
                second: second.to_owned(),
            })
        };
        let Some(view) = view else { return Ok(()) };
        if self.ids {
            return conflict(view, "ids");
        }
        if self.outputs {
            return conflict(view, "outputs");
        }
        let fits = match (&self.view, &self.part) {
            (_, Part::All) | (View::Text, _) | (View::Raw, Part::Lines(_)) => true,
            (View::Raw, _) => false,
            (View::Outline | View::Images, part) => !matches!(part, Part::Lines(_)),
        };
        match (fits, part) {
            (false, Some(part)) => conflict(view, part),
            _ => Ok(()),
        }
    }
}

/// Parses `5`, `5-`, `5-9`, `5..9`, `5+3`, `L5-L9` and comma-separated lists. Sorts the ranges
/// and joins overlapping ones.
fn parse_ranges(text: &str, first: usize) -> Result<Vec<IndexRange>, SelectError> {
    let mut ranges = text
        .split(',')
        .map(|item| parse_range(item, text, first))
        .collect::<Result<Vec<_>, _>>()?;
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<IndexRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last)
                if last
                    .end
                    .is_none_or(|end| range.start <= end.saturating_add(1)) =>
            {
                last.end = match (last.end, range.end) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    _ => None,
                };
            }
            _ => joined.push(range),
        }
    }
    Ok(joined)
}

fn parse_range(item: &str, whole: &str, first: usize) -> Result<IndexRange, SelectError> {
    let unknown = || SelectError::Unknown {
        text: whole.to_owned(),
    };
    let number = |text: &str| -> Result<usize, SelectError> {
        let digits = text
            .strip_prefix('l')
            .filter(|_| first == 1)
            .unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(unknown());
        }
        Ok(digits.parse().unwrap_or(usize::MAX))
    };
    let start_at = |text: &str| match number(text)? {
        0 if first == 1 => Err(SelectError::LineZero),
        start => Ok(start),
    };
    if let Some((start, count)) = item.split_once('+') {
        let start = start_at(start)?;
        return match number(count)? {
            0 => Err(SelectError::NoCount { start }),
            count => Ok(IndexRange {
                start,
                end: Some(start.saturating_add(count - 1)),
            }),
        };
    }
    let Some((start, end)) = item.split_once("..").or_else(|| item.split_once('-')) else {
        let start = start_at(item)?;
        return Ok(IndexRange {
            start,
            end: Some(start),
        });
    };
    let start = start_at(start)?;
    if end.is_empty() {
        return Ok(IndexRange { start, end: None });
    }
    let end = number(end)?;
    if end < start {
        return Err(SelectError::Backwards { start, end });
    }
    Ok(IndexRange {
        start,
        end: Some(end),
    })
}

/// The lines of `text` in `ranges`, each with its line feed. Ranges after the last line are
/// skipped with a notice; if all are, it is an error.
pub fn select_lines(
    text: &str,
    ranges: &[IndexRange],
) -> Result<(String, Vec<Notice>), SelectError> {
    if text.is_empty() {
        return Err(SelectError::EmptyNotebook);
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let total = lines.len();
    let mut out = String::new();
    let mut notices = Vec::new();
    let all_beyond = ranges.iter().all(|range| range.start > total);
    for range in ranges {
        if range.start > total {
            if all_beyond {
                return Err(SelectError::BeyondEnd {
                    line: range.start,
                    total,
                });
            }
            notices.push(Notice::RangeSkipped {
                start: range.start,
                end: range.end,
                total,
            });
            continue;
        }
        let end = range.end.unwrap_or(total).min(total);
        for line in &lines[range.start - 1..end] {
            out.push_str(line);
            out.push('\n');
        }
    }
    Ok((out, notices))
}

/// The indexes of the selected cells, in order.
pub fn select_cells(part: &Part, cells: &dyn Cells) -> Result<Vec<usize>, EditError> {
    match part {
        Part::All | Part::Lines(_) => Ok((0..cells.count()).collect()),
        Part::Cells(ranges) => {
            let mut selected = Vec::new();
            for range in ranges {
                // Both ends must exist, so that a wrong number is not silently truncated.
                let start = Address::Index(range.start).resolve(cells)?;
                let end = match range.end {
                    Some(end) => Address::Index(end).resolve(cells)?,
                    None => cells.count() - 1,
                };
                selected.extend(start..=end);
            }
            Ok(selected)
        }
        Part::Ids(ids) => {
            let mut selected = ids
                .iter()
                .map(|id| Address::Id(id.clone()).resolve(cells))
                .collect::<Result<Vec<_>, _>>()?;
            selected.sort_unstable();
            selected.dedup();
            Ok(selected)
        }
    }
}
