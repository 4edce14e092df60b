//! JSON values for models: complete if short, else truncated.

use std::io::{self, Write};

use serde_json::Value;

/// A JSON value for a model.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundedJson {
    /// The complete value.
    Whole(Value),
    /// The beginning of the value's text, and a note.
    Truncated {
        /// The truncated text with the note.
        text: String,
        /// Length of the complete text, in characters.
        characters: u64,
    },
}

impl BoundedJson {
    /// Returns the value, truncated if its text exceeds `max_characters`.
    pub fn new(value: &Value, max_characters: usize) -> Self {
        let mut prefix = PrefixWriter {
            max_characters,
            ..PrefixWriter::default()
        };
        // The writer never fails, and all keys are strings.
        drop(serde_json::to_writer(&mut prefix, value));
        let characters = prefix.characters;
        if characters <= max_characters as u64 {
            return Self::Whole(value.clone());
        }
        let mut text = String::from_utf8_lossy(&prefix.bytes).into_owned();
        // The note counts too: the result has at most `max_characters`.
        let note = |kept: u64| format!("\n[… {} characters elided …]", characters - kept);
        let length = max_characters.saturating_sub(note(0).chars().count());
        let end = text
            .char_indices()
            .nth(length)
            .map_or(text.len(), |(at, _)| at);
        text.truncate(end);
        text.push_str(&note(length as u64));
        Self::Truncated { text, characters }
    }
}

/// Keeps the first characters and counts all of them.
#[derive(Default)]
struct PrefixWriter {
    bytes: Vec<u8>,
    characters: u64,
    max_characters: usize,
}

impl Write for PrefixWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let characters = buffer.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        if self.characters <= self.max_characters as u64 {
            self.bytes.extend_from_slice(buffer);
            // A character has at most four bytes, and a long string arrives in one write.
            self.bytes.truncate(4 * (self.max_characters + 1));
        }
        self.characters += characters as u64;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
