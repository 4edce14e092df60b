//! [`OutputExcerpt`]: the output of a cell within a limit, with the positions of its images.
//!
//! The capture has already bounded the text of the cell and marked the gap with one line. A text that must become
//! shorter gets one new gap that counts everything that is missing, so that a reply never has two marks for one gap.

use std::ops::Range;

use cellwright_execution::CellReport;
use cellwright_output::{ElisionLine, TextSize};

/// The output of a cell within a limit.
#[derive(Debug, Default)]
pub(super) struct OutputExcerpt {
    /// Text and images in their order.
    pub(super) parts: Vec<ExcerptPart>,
    /// What is missing.
    pub(super) missing: TextSize,
    /// Whether text was removed that the captured text has.
    pub(super) is_shortened: bool,
}

/// A part of the output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExcerptPart {
    Text(String),
    /// The index of an image of the cell.
    Image(usize),
}

impl OutputExcerpt {
    /// The output of a cell in at most about `limit` characters.
    pub(super) fn new(cell: &CellReport, limit: usize) -> Self {
        let details = cell.details();
        let captured = details.truncated.as_ref().map(|truncated| TextSize {
            bytes: truncated.elided_bytes,
            lines: truncated.elided_lines,
        });
        let captured = captured.unwrap_or_default();
        let text = cell.text();
        // Positions of the lines that name the images, and the ends of these lines.
        let mut images: Vec<(usize, usize, usize)> = Vec::new();
        for (number, image) in details.images.iter().enumerate() {
            let range = image.text_range.clone().unwrap_or(text.len()..text.len());
            let (start, end) = (range.start.min(text.len()), range.end.min(text.len()));
            images.push((start, end, number));
        }
        let mut excerpt = Self {
            missing: captured,
            ..Self::default()
        };
        let length: usize = text.chars().count();
        if length <= limit {
            excerpt.push_range(text, 0..text.len(), &images);
            return excerpt;
        }
        // Shorten: keep the beginning and the end, and count the captured gap as part of the new one.
        let gap = find_gap(text, captured);
        let head_limit = limit * 2 / 5;
        let head_end = line_end(text, byte_index(text, head_limit));
        let tail_start = line_start(text, byte_index(text, length - (limit - head_limit)));
        let head_end = gap.as_ref().map_or(head_end, |gap| head_end.min(gap.start));
        let tail_start = gap
            .as_ref()
            .map_or(tail_start, |gap| tail_start.max(gap.end));
        let mut removed = TextSize::from_chunk(&text[head_end..tail_start]);
        if let Some(gap) = gap {
            removed -= TextSize::from_chunk(&text[gap]);
        }
        excerpt.missing += removed;
        excerpt.is_shortened = removed.bytes > 0;
        excerpt.push_range(text, 0..head_end, &images);
        excerpt.push_text(&ElisionLine(excerpt.missing).to_string());
        for (_, _, number) in images
            .iter()
            .filter(|(start, _, _)| (head_end + 1..=tail_start).contains(start))
        {
            excerpt.parts.push(ExcerptPart::Image(*number));
        }
        excerpt.push_range(text, tail_start..text.len(), &images);
        excerpt
    }

    /// Adds a range of the text with the images in it.
    fn push_range(&mut self, text: &str, range: Range<usize>, images: &[(usize, usize, usize)]) {
        let mut from = range.start;
        for &(start, end, number) in images {
            let is_first = range.start == 0 && start == 0;
            if !is_first && !(range.start + 1..=range.end).contains(&start) {
                continue;
            }
            if start > from {
                self.push_text(&text[from..start]);
            }
            self.parts.push(ExcerptPart::Image(number));
            from = from.max(end.min(range.end));
        }
        self.push_text(&text[from..range.end]);
    }

    fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(ExcerptPart::Text(last)) => {
                if !last.ends_with('\n') {
                    last.push('\n');
                }
                last.push_str(text);
            }
            _ => self.parts.push(ExcerptPart::Text(text.to_owned())),
        }
    }

    /// The text without the images.
    pub(super) fn text(&self) -> String {
        let texts = self.parts.iter().map(|part| match part {
            ExcerptPart::Text(text) => text.as_str(),
            ExcerptPart::Image(_) => "",
        });
        texts.collect()
    }
}

/// The line that the capture put into its gap.
fn find_gap(text: &str, elided: TextSize) -> Option<Range<usize>> {
    if elided.bytes == 0 {
        return None;
    }
    let line = ElisionLine(elided).to_string();
    let start = text.find(&line)?;
    Some(start..start + line.len())
}

/// The byte index of a character.
fn byte_index(text: &str, characters: usize) -> usize {
    let found = text.char_indices().nth(characters);
    found.map_or(text.len(), |(at, _)| at)
}

/// The end of the last whole line before an index, unless that removes more than half.
fn line_end(text: &str, at: usize) -> usize {
    match text[..at].rfind('\n') {
        Some(line) if line + 1 >= at / 2 => line + 1,
        _ => at,
    }
}

/// The start of the first whole line after an index, unless that removes more than half.
fn line_start(text: &str, at: usize) -> usize {
    match text[at..].find('\n') {
        Some(line) if line <= (text.len() - at) / 2 => at + line + 1,
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use cellwright_execution::{CellDetails, ImageReport, OnError, TruncationReport};
    use proptest::prelude::*;

    use super::*;

    fn report(text: &str) -> CellReport {
        let mut cell = CellReport::new(0, None, OnError::Stop);
        cell.set_text(text.to_owned());
        cell
    }

    fn with_image(mut cell: CellReport, image: ImageReport) -> CellReport {
        cell.set_details(CellDetails {
            images: vec![image],
            ..CellDetails::default()
        });
        cell
    }

    fn image(range: Range<usize>) -> ImageReport {
        ImageReport {
            mime: "image/png".to_owned(),
            bytes: 1,
            width: None,
            height: None,
            artifact: None,
            text_range: Some(range),
        }
    }

    #[test]
    fn images_stand_where_they_were_displayed() {
        let line = "[figure 640×480, artifact://1]\n";
        let cell = report(&format!("before\n{line}after\n"));
        let cell = with_image(cell, image(7..7 + line.len()));
        let excerpt = OutputExcerpt::new(&cell, 1000);
        assert_eq!(
            excerpt.parts,
            [
                ExcerptPart::Text("before\n".to_owned()),
                ExcerptPart::Image(0),
                ExcerptPart::Text("after\n".to_owned()),
            ]
        );
        let cell = report(&format!("a table\n{line}"));
        let cell = with_image(cell, image(8..8 + line.len()));
        let excerpt = OutputExcerpt::new(&cell, 1000);
        let table = ExcerptPart::Text("a table\n".to_owned());
        assert_eq!(excerpt.parts, [table, ExcerptPart::Image(0)]);
    }

    #[test]
    fn a_gap_within_a_gap_is_counted_once() {
        let lines = |range: Range<u32>| {
            let lines: Vec<String> = range.map(|line| format!("line {line}\n")).collect();
            lines.concat()
        };
        let elided = TextSize {
            bytes: lines(50..1000).len() as u64,
            lines: 950,
        };
        let text = format!(
            "{}{}{}",
            lines(0..50),
            ElisionLine(elided),
            lines(1000..1050)
        );
        let mut cell = report(&text);
        let truncated = TruncationReport {
            total_bytes: 0,
            total_lines: 1050,
            shown_bytes: 0,
            shown_lines: 100,
            elided_bytes: elided.bytes,
            elided_lines: elided.lines,
            artifact: None,
        };
        cell.set_details(CellDetails {
            truncated: Some(truncated),
            ..CellDetails::default()
        });
        let excerpt = OutputExcerpt::new(&cell, 300);
        let shown = excerpt.text();
        assert_eq!(shown.matches("elided").count(), 1, "{shown}");
        let kept = shown.lines().count() as u64 - 1;
        assert_eq!(kept + excerpt.missing.lines, 1050, "{shown}");
        assert!(shown.starts_with("line 0\n") && shown.ends_with("line 1049\n"));
        assert!(excerpt.is_shortened);
    }

    proptest! {
        #[test]
        fn every_byte_and_every_image_is_shown_or_counted(
            text in "([a-zä]|\n){0,400}", limit in 0_usize..300, at in 0_usize..400
        ) {
            let at = text.floor_char_boundary(at.min(text.len()));
            let cell = with_image(report(&text), image(at..at));
            let excerpt = OutputExcerpt::new(&cell, limit);
            let images = excerpt.parts.iter().filter(|part| **part == ExcerptPart::Image(0));
            prop_assert_eq!(images.count(), 1);
            let shown = excerpt.text();
            if excerpt.missing.bytes == 0 {
                prop_assert_eq!(shown.replace('\n', ""), text.replace('\n', ""));
            } else {
                let mark = ElisionLine(excerpt.missing).to_string();
                let kept = shown.replace(&mark, "");
                let letters = |text: &str| text.chars().filter(|c| *c != '\n').count();
                prop_assert!(letters(&kept) <= limit);
                prop_assert!(letters(&kept) < letters(&text) || text.contains('\n'));
            }
        }
    }
}
