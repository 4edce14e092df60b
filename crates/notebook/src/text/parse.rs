//! Parses an edited text view.

use crate::cell::CellKind;
use crate::error::EditError;

use super::marker::{self, ViewLine};

/// One cell of an edited text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The kind in its marker.
    pub kind: CellKind,
    /// The cell it names with `cell:N`.
    pub cell: Option<usize>,
    /// The cell it names with `id:ID`.
    pub id: Option<String>,
    /// Its source, unescaped.
    pub source: String,
    /// Line of its marker, from 1.
    pub line: usize,
    /// Lines in it that are almost markers, with their numbers from 1.
    pub near_markers: Vec<(usize, String)>,
}

/// A parsed text view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedText {
    /// The cells.
    pub blocks: Vec<Block>,
    /// Whether the text had CRLF line endings, which were removed.
    pub crlf: bool,
}

/// Parses an edited text. `text` is the view itself, without the newline that printing adds.
pub fn parse(text: &str) -> Result<ParsedText, EditError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.is_empty() {
        return Ok(ParsedText::default());
    }
    let first = text.split('\n').next().unwrap_or_default();
    let crlf = first.ends_with('\r');
    let mut parsed = ParsedText {
        blocks: Vec::new(),
        crlf,
    };
    let mut fence: Option<usize> = None;
    let mut lines = text.split('\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        let found = marker::classify(line);
        if fence.is_some() {
            if found == ViewLine::FenceClose {
                fence = None;
            }
            continue;
        }
        match (found, parsed.blocks.last_mut()) {
            (ViewLine::Marker(marker), _) => parsed.blocks.push(Block {
                kind: marker.kind,
                cell: marker.cell,
                id: marker.id.map(str::to_owned),
                // A newline precedes each line; the first one is removed at the end.
                source: String::new(),
                line: number,
                near_markers: Vec::new(),
            }),
            (_, None) => {
                return Err(EditError::NoFirstMarker {
                    found: line.chars().take(60).collect(),
                });
            }
            (ViewLine::FenceOpen, _) => fence = Some(number),
            (found, Some(block)) => {
                // No line break follows the last line: a carriage return there belongs to the
                // source.
                let line = if crlf && lines.peek().is_some() {
                    line.strip_suffix('\r').unwrap_or(line)
                } else {
                    line
                };
                block.source.push('\n');
                if found == ViewLine::Escaped {
                    block.source.push_str("# ");
                    block.source.push_str(&line[3..]);
                } else {
                    block.source.push_str(line);
                }
                if found == ViewLine::NearMarker {
                    block.near_markers.push((number, line.to_owned()));
                }
            }
        }
    }
    if let Some(line) = fence {
        return Err(EditError::OpenFence { line });
    }
    for block in &mut parsed.blocks {
        if !block.source.is_empty() {
            block.source.remove(0);
        }
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> Vec<String> {
        parse(text)
            .map(|parsed| {
                parsed
                    .blocks
                    .into_iter()
                    .map(|block| block.source)
                    .collect()
            })
            .unwrap_or_default()
    }

    #[test]
    fn sources_end_where_the_next_marker_begins() {
        let m = "# %% [code]";
        assert_eq!(sources(m), [""]);
        assert_eq!(sources(&format!("{m}\n{m}")), ["", ""]);
        assert_eq!(sources(&format!("{m}\nx\n{m}\n")), ["x", ""]);
        assert_eq!(sources(&format!("{m}\n\n\n{m}\ny")), ["\n", "y"]);
        assert_eq!(sources(&format!("{m}\nx\n\n{m}")), ["x\n", ""]);
        assert_eq!(sources(&format!("\u{feff}{m}\r\nx\r\n{m}\r\n")), ["x", ""]);
        assert_eq!(sources(&format!("{m}\nx\r\n{m}")), ["x\r", ""]);
        assert_eq!(sources(""), [""; 0]);
    }

    #[test]
    fn text_before_the_first_marker_is_rejected() {
        for text in ["\n# %% [code]", "import os", " ", "# %% [sql]"] {
            assert!(
                matches!(parse(text), Err(EditError::NoFirstMarker { .. })),
                "{text:?}"
            );
        }
    }

    #[test]
    fn fenced_outputs_are_ignored_and_must_be_closed() {
        let fence = |text: &str| {
            format!(
                "# %% [code]\nx\n{}\n{text}\n{}\n# %% [raw]",
                marker::fence_open(0),
                marker::fence_close()
            )
        };
        assert_eq!(sources(&fence("out\n# %% [code]\nput")), ["x", ""]);
        let open = format!("# %% [code]\n{}\nout", marker::fence_open(0));
        assert_eq!(parse(&open), Err(EditError::OpenFence { line: 2 }));
    }
}
