//! Replies of tools: text for a model and images. Structured content repeats the text for clients that request it.
//!
//! Text from code and files is enclosed in delimiters with a random number per reply. The text existed before the
//! number, so it cannot close the delimiter and pass for text of the server.

use std::io;

use cellwright_diagnostics::failure::Failure;
use cellwright_stdext::hex;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

use super::images::EncodedImage;
use super::wording;

/// The reply of a tool.
#[derive(Debug)]
pub(super) struct Reply {
    /// Complete on its own: status, output, truncation, next step.
    pub(super) text: String,
    /// Images in the order in which the text names them.
    pub(super) images: Vec<EncodedImage>,
    pub(super) structured: Value,
    /// Whether the call failed. Code that raised an exception is a result.
    pub(super) is_error: bool,
}

impl Reply {
    /// Creates a reply from a text and the same as a JSON document.
    pub(super) fn new(text: impl Into<String>, document: &impl Serialize) -> io::Result<Self> {
        Ok(Self {
            text: text.into(),
            images: Vec::new(),
            structured: serde_json::to_value(document)?,
            is_error: false,
        })
    }

    /// Converts the reply; `structured`: whether it repeats its content as structured content.
    pub(super) fn into_result(self, structured: bool) -> CallToolResult {
        let mut blocks = vec![ContentBlock::text(self.text.trim_end())];
        let mut result = if self.is_error {
            // Some hosts pass the images of a failed call to the model as base64 text. The text names their artifacts.
            CallToolResult::error(blocks)
        } else {
            let images = self.images.into_iter();
            blocks.extend(images.map(|image| ContentBlock::image(image.base64, image.mime)));
            CallToolResult::success(blocks)
        };
        result.structured_content = structured.then_some(self.structured);
        result
    }
}

/// Converts a failure into a JSON object whose texts are bounded and sanitized.
pub(super) fn failure_document(failure: &Failure) -> Value {
    let mut error = failure.error_object();
    error.message = wording::sanitize(&failure.message);
    let causes = failure.causes.iter().map(|cause| wording::sanitize(cause));
    error.causes = causes.collect();
    error.hints = failure.hints.iter().map(wording::format_hint).collect();
    json!(error)
}

/// Converts a failure into a reply.
pub(super) fn failure_reply(failure: &Failure) -> Reply {
    Reply {
        text: wording::format_failure(failure),
        images: Vec::new(),
        structured: json!({"error": failure_document(failure)}),
        is_error: true,
    }
}

/// A pair of tags with a random number, which enclosed text cannot forge.
#[derive(Debug)]
pub(super) struct Delimiter(String);

impl Delimiter {
    pub(super) fn new() -> io::Result<Self> {
        let mut bytes = [0_u8; 4];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex::encode(&bytes)))
    }

    /// Encloses text from a file or a kernel.
    pub(super) fn enclose(&self, tag: &str, text: &str) -> String {
        let number = &self.0;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        format!("<{tag} {number}>\n{text}{end}</{tag} {number}>\n")
    }
}

/// Divides `total` characters among texts of these lengths: short texts stay whole, long ones get equal shares.
pub(super) fn fair_shares(lengths: &[usize], total: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&at| lengths[at]);
    let mut shares = vec![0; lengths.len()];
    let mut left = total;
    for (done, &at) in order.iter().enumerate() {
        let share = left / (lengths.len() - done);
        shares[at] = lengths[at].min(share);
        left -= shares[at];
    }
    shares
}

/// Cuts the middle out of a text that is longer than `limit` characters. Returns the text and the number of characters
/// that it lacks.
pub(super) fn truncate_middle(text: &str, limit: usize) -> (String, usize) {
    let total = text.chars().count();
    if total <= limit {
        return (text.to_owned(), 0);
    }
    let head = limit * 2 / 5;
    let tail = limit - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(total - tail).collect();
    // Cut at line breaks if that loses less than half.
    let start = match start.rfind('\n') {
        Some(at) if at > start.len() / 2 => &start[..=at],
        _ => &start,
    };
    let end = match end.find('\n') {
        Some(at) if at < end.len() / 2 => &end[at + 1..],
        _ => &end,
    };
    let missing = total - start.chars().count() - end.chars().count();
    let gap = if start.ends_with('\n') || start.is_empty() {
        ""
    } else {
        "\n"
    };
    (
        format!("{start}{gap}[… {missing} characters …]\n{end}"),
        missing,
    )
}

/// A part of a text from an offset on. It ends at a line break if that loses less than half.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextPage<'t> {
    pub(super) text: &'t str,
    /// Number of characters in the page.
    pub(super) characters: usize,
    /// Whether the text ends with this page.
    pub(super) is_last: bool,
}

impl<'t> TextPage<'t> {
    /// Returns the page that starts at `offset` and has at most `limit` characters.
    pub(super) fn at(text: &'t str, offset: usize, limit: usize) -> Self {
        let byte_index = |count: usize, text: &str| {
            let found = text.char_indices().nth(count);
            found.map_or(text.len(), |(at, _)| at)
        };
        let rest = &text[byte_index(offset, text)..];
        let end = byte_index(limit, rest);
        if end == rest.len() {
            return Self {
                text: rest,
                characters: rest.chars().count(),
                is_last: true,
            };
        }
        let page = match rest[..end].rfind('\n') {
            Some(line) if line >= end / 2 => &rest[..=line],
            _ => &rest[..end],
        };
        Self {
            text: page,
            characters: page.chars().count(),
            is_last: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_texts_stay_whole_and_long_ones_share() {
        assert_eq!(fair_shares(&[5, 1000, 10, 1000], 100), [5, 42, 10, 43]);
        assert_eq!(fair_shares(&[5, 6], 100), [5, 6]);
        assert_eq!(fair_shares(&[], 100), [0_usize; 0]);
        assert_eq!(fair_shares(&[7, 7], 0), [0, 0]);
    }

    #[test]
    fn omitted_characters_are_counted() {
        let lines: Vec<String> = (0..1000).map(|line| format!("line {line}\n")).collect();
        let text = lines.concat();
        let (shown, missing) = truncate_middle(&text, 200);
        assert!(shown.starts_with("line 0\n") && shown.ends_with("line 999\n"));
        let gap = format!("[… {missing} characters …]\n");
        let kept = shown.replace(&gap, "");
        assert_eq!(kept.chars().count() + missing, text.chars().count());
        assert_eq!(truncate_middle("short", 10), ("short".to_owned(), 0));
    }

    #[test]
    fn enclosed_text_cannot_close_its_delimiter() {
        let (one, other) = (Delimiter::new().unwrap(), Delimiter::new().unwrap());
        let forged = one.enclose("output", "x");
        let enclosed = other.enclose("output", &forged);
        let last = enclosed.lines().last().unwrap();
        assert_eq!(enclosed.matches(last).count(), 1);
    }

    proptest! {
        #[test]
        fn shares_never_exceed_the_total(
            lengths in prop::collection::vec(0_usize..5000, 0..20), most in 0_usize..20_000
        ) {
            let shares = fair_shares(&lengths, most);
            prop_assert!(shares.iter().sum::<usize>() <= most);
            prop_assert!(shares.iter().zip(&lengths).all(|(share, length)| share <= length));
        }

        #[test]
        fn truncation_keeps_characters_whole(text in "(\\PC|\n){0,300}", most in 0_usize..200) {
            let (shown, missing) = truncate_middle(&text, most);
            if missing == 0 {
                prop_assert_eq!(shown, text);
            } else {
                prop_assert!(shown.chars().count() <= most + 40);
            }
        }

        #[test]
        fn all_pages_together_are_the_text(text in "([a-zä]|\n){0,300}", most in 1_usize..200) {
            let (mut offset, mut all) = (0, String::new());
            loop {
                let page = TextPage::at(&text, offset, most);
                prop_assert!(page.characters <= most);
                all.push_str(page.text);
                offset += page.characters;
                if page.is_last {
                    break;
                }
                prop_assert!(page.characters > 0);
            }
            prop_assert_eq!(all, text);
        }
    }
}
