//! JSON for models: whole if it is short, else its beginning.

use std::io::{self, Write};

use serde_json::Value;

/// A JSON value for a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// The value.
    Whole(Value),
    /// The beginning of its text, and a note.
    Cut {
        /// The text.
        text: String,
        /// How many characters the value has in all.
        characters: u64,
    },
}

impl Json {
    /// The value, if its text has at most so many characters.
    pub fn bounded(value: &Value, most: usize) -> Self {
        let mut beginning = Beginning {
            most,
            ..Beginning::default()
        };
        // The writer never fails, and all keys are strings.
        drop(serde_json::to_writer(&mut beginning, value));
        let characters = beginning.characters;
        if characters <= most as u64 {
            return Self::Whole(value.clone());
        }
        let mut text = String::from_utf8_lossy(&beginning.bytes).into_owned();
        // Room for the note itself: the whole is at most as long as promised.
        let note = |kept: u64| format!("\n[… {} characters elided …]", characters - kept);
        let room = most.saturating_sub(note(0).chars().count());
        let end = text
            .char_indices()
            .nth(room)
            .map_or(text.len(), |(at, _)| at);
        text.truncate(end);
        text.push_str(&note(room as u64));
        Self::Cut { text, characters }
    }
}

/// Keeps the first characters and counts the others.
#[derive(Default)]
struct Beginning {
    bytes: Vec<u8>,
    characters: u64,
    most: usize,
}

impl Write for Beginning {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let characters = buffer.iter().filter(|&&byte| byte & 0xc0 != 0x80).count();
        if self.characters <= self.most as u64 {
            self.bytes.extend_from_slice(buffer);
            // Characters are at most four bytes; a long string comes in one piece.
            self.bytes.truncate(4 * (self.most + 1));
        }
        self.characters += characters as u64;
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
