//! What a tool answers: text for a model, images, links, and the same as structured content.
//!
//! What code printed or a file holds stands between borders with a number that is drawn for each answer:
//! no text can pretend to be ours, because it was there before the number.

use std::io;

use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde::Serialize;
use serde_json::{Value, json};

use super::wording;
use crate::failure::Failure;
use crate::hex::hex;

/// An answer under way.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) blocks: Vec<ContentBlock>,
    pub(super) structured: Value,
    pub(super) is_error: bool,
}

impl Reply {
    /// An answer of text and the same as a document.
    pub(super) fn new(text: impl Into<String>, document: &impl Serialize) -> io::Result<Self> {
        let text: String = text.into();
        Ok(Self {
            blocks: vec![ContentBlock::text(text.trim_end())],
            structured: serde_json::to_value(document)?,
            is_error: false,
        })
    }

    /// Puts a link to a full output behind it.
    pub(super) fn add_link(&mut self, artifact: &str, what: &str, mime: &str) {
        let resource = Resource::new(artifact, artifact.trim_start_matches("artifact://"))
            .with_description(what)
            .with_mime_type(mime);
        self.blocks.push(ContentBlock::resource_link(resource));
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = if self.is_error {
            CallToolResult::error(self.blocks)
        } else {
            CallToolResult::success(self.blocks)
        };
        result.structured_content = Some(self.structured);
        result
    }
}

/// A call that came to nothing, in words.
pub(super) fn failure_reply(failure: &Failure) -> Reply {
    let mut document = failure.to_json();
    let error = &mut document["error"];
    error["message"] = json!(wording::sanitize(&failure.message));
    for (name, texts) in [("causes", &failure.causes), ("hints", &failure.hints)] {
        let texts: Vec<String> = texts.iter().map(|text| wording::sanitize(text)).collect();
        error[name] = json!(texts);
    }
    Reply {
        blocks: vec![ContentBlock::text(
            wording::format_failure(failure).trim_end(),
        )],
        structured: document,
        is_error: true,
    }
}

/// Borders that nobody else can draw.
#[derive(Debug)]
pub(super) struct Delimiter(String);

impl Delimiter {
    pub(super) fn new() -> io::Result<Self> {
        let mut bytes = [0_u8; 4];
        getrandom::fill(&mut bytes)?;
        Ok(Self(hex(&bytes)))
    }

    /// Somebody else's text, as such.
    pub(super) fn enclose(&self, what: &str, text: &str) -> String {
        let number = &self.0;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        format!("<{what} {number}>\n{text}{end}</{what} {number}>\n")
    }
}

/// How many characters each of several texts may have, so that all of them fit: short ones stay whole,
/// long ones get the same share.
pub(super) fn fair_shares(lengths: &[usize], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&at| lengths[at]);
    let mut shares = vec![0; lengths.len()];
    let mut left = most;
    for (done, &at) in order.iter().enumerate() {
        let share = left / (lengths.len() - done);
        shares[at] = lengths[at].min(share);
        left -= shares[at];
    }
    shares
}

/// A text of no more than so many characters: its beginning and its end. How many are missing, if any.
pub(super) fn truncate_middle(text: &str, most: usize) -> (String, usize) {
    let total = text.chars().count();
    if total <= most {
        return (text.to_owned(), 0);
    }
    let head = most * 2 / 5;
    let tail = most - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(total - tail).collect();
    // Whole lines where that costs little.
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

/// A piece of a text: so many characters from an offset on, whole lines where that costs little.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextPage<'t> {
    pub(super) text: &'t str,
    /// How many characters it has.
    pub(super) characters: usize,
    /// Whether the text ends with it.
    pub(super) last: bool,
}

impl<'t> TextPage<'t> {
    pub(super) fn at(text: &'t str, offset: usize, most: usize) -> Self {
        let at = |count: usize, text: &str| {
            let found = text.char_indices().nth(count);
            found.map_or(text.len(), |(at, _)| at)
        };
        let rest = &text[at(offset, text)..];
        let end = at(most, rest);
        if end == rest.len() {
            return Self {
                text: rest,
                characters: rest.chars().count(),
                last: true,
            };
        }
        let kept = match rest[..end].rfind('\n') {
            Some(line) if line >= end / 2 => &rest[..=line],
            _ => &rest[..end],
        };
        Self {
            text: kept,
            characters: kept.chars().count(),
            last: false,
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
    fn what_is_cut_is_counted() {
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
    fn what_is_between_borders_cannot_close_them() {
        let (one, other) = (Delimiter::new().unwrap(), Delimiter::new().unwrap());
        let forged = one.enclose("output", "x");
        let enclosed = other.enclose("output", &forged);
        let last = enclosed.lines().last().unwrap();
        assert_eq!(enclosed.matches(last).count(), 1);
    }

    proptest! {
        #[test]
        fn shares_never_exceed_what_there_is(
            lengths in prop::collection::vec(0_usize..5000, 0..20), most in 0_usize..20_000
        ) {
            let shares = fair_shares(&lengths, most);
            prop_assert!(shares.iter().sum::<usize>() <= most);
            prop_assert!(shares.iter().zip(&lengths).all(|(share, length)| share <= length));
        }

        #[test]
        fn a_cut_keeps_characters_whole(text in "(\\PC|\n){0,300}", most in 0_usize..200) {
            let (shown, missing) = truncate_middle(&text, most);
            if missing == 0 {
                prop_assert_eq!(shown, text);
            } else {
                prop_assert!(shown.chars().count() <= most + 40);
            }
        }

        #[test]
        fn pieces_put_together_are_the_text(text in "([a-zä]|\n){0,300}", most in 1_usize..200) {
            let (mut offset, mut all) = (0, String::new());
            loop {
                let piece = TextPage::at(&text, offset, most);
                prop_assert!(piece.characters <= most);
                all.push_str(piece.text);
                offset += piece.characters;
                if piece.last {
                    break;
                }
                prop_assert!(piece.characters > 0);
            }
            prop_assert_eq!(all, text);
        }
    }
}
