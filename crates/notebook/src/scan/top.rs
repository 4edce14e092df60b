//! The top-level members of a notebook, and whether its format is supported.

use super::ScanStop;
use crate::error::FormatError;
use crate::span::Span;

/// The top-level members that describe the format.
#[derive(Default)]
pub(super) struct TopLevel {
    pub(super) major: Option<Number>,
    pub(super) minor: Option<Number>,
    pub(super) cells: Option<Span>,
    /// Offset of the value of `cells`, if it is not an array.
    pub(super) cells_not_array: Option<usize>,
    pub(super) metadata: Span,
    pub(super) worksheets: bool,
}

pub(super) enum Number {
    Whole(u32),
    Other(String),
}

impl TopLevel {
    /// The minor version, if the format is supported.
    pub(super) fn supported_minor(&self) -> Result<u32, ScanStop> {
        let stop = |error| Err(ScanStop::Format(error));
        match &self.major {
            Some(Number::Whole(major @ 0..=3)) => {
                return stop(FormatError::OldFormat { major: *major });
            }
            Some(Number::Whole(4)) | None => {}
            Some(Number::Whole(major)) => {
                return stop(FormatError::NewFormat {
                    major: major.to_string(),
                });
            }
            Some(Number::Other(raw)) if raw.starts_with(|c: char| c.is_ascii_digit()) => {
                return stop(FormatError::NewFormat {
                    major: shorten(raw),
                });
            }
            Some(Number::Other(_)) => return stop(FormatError::NoFormatNumber),
        }
        if let Some(offset) = self.cells_not_array {
            return Err(ScanStop::CellsNotAnArray { offset });
        }
        if self.cells.is_none() {
            return stop(if self.worksheets {
                FormatError::OldFormat { major: 3 }
            } else {
                FormatError::NoCells
            });
        }
        if self.major.is_none() {
            return stop(FormatError::NoFormatNumber);
        }
        Ok(match self.minor {
            Some(Number::Whole(minor)) => minor,
            // Jupyter reads a missing minor number as 0.
            _ => 0,
        })
    }
}

/// The beginning of a text, for a message.
pub(super) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
