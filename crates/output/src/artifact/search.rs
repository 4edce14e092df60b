//! Finding lines in an artifact without loading it.
//!
//! A plain text is found by `memchr::memmem`, at the speed of the disk. A pattern goes through
//! `regex-lite`, which is slower but small and takes time linear in the text.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};

use memchr::memmem::Finder;

use super::read::BUFFER;
use super::{Artifact, ArtifactError};
use crate::clean;

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// This text, exactly.
    Plain(String),
    /// A regular expression, matched line by line.
    Regex(String),
}

/// How to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Search {
    /// How many lines that match are given back; the others are counted.
    pub most_hits: usize,
    /// How many lines before and after each are given back with it.
    pub context: usize,
    /// Bytes of each line.
    pub line_bytes: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            most_hits: 100,
            context: 0,
            line_bytes: 768,
        }
    }
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its number, from 1.
    pub line: u64,
    /// The line, clean and cut.
    pub text: String,
    /// The lines before it.
    pub before: Vec<String>,
    /// The lines after it.
    pub after: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// The first lines that match.
    pub hits: Vec<Hit>,
    /// How many match in all.
    pub total: u64,
    /// How many lines were looked at.
    pub lines: u64,
}

/// Bytes of a line that are looked at: a line of a gigabyte must not be held.
const MOST_OF_A_LINE: usize = 1 << 20;

/// As above, for the lines around a hit.
const MOST_OF_A_NEIGHBOUR: usize = 16 * 1024;

/// Lines around a hit that anyone needs.
const MOST_CONTEXT: usize = 50;

/// What means something else than itself in a pattern.
const SPECIAL: [char; 14] = [
    '\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$',
];

enum Matcher {
    Plain(Box<Finder<'static>>),
    Regex(regex_lite::Regex),
}

impl Matcher {
    fn new(pattern: &Pattern) -> Result<Self, ArtifactError> {
        Ok(match pattern {
            // Without any of these a pattern is the text it matches, and found much faster.
            Pattern::Regex(text) if !text.contains(SPECIAL) => {
                Self::Plain(Box::new(Finder::new(text).into_owned()))
            }
            Pattern::Plain(text) => Self::Plain(Box::new(Finder::new(text).into_owned())),
            Pattern::Regex(text) => Self::Regex(regex_lite::Regex::new(text).map_err(|error| {
                ArtifactError::BadPattern {
                    pattern: text.clone(),
                    reason: error.to_string(),
                }
            })?),
        })
    }

    fn matches(&self, line: &[u8]) -> bool {
        match self {
            Self::Plain(finder) => finder.find(line).is_some(),
            Self::Regex(regex) => regex.is_match(&String::from_utf8_lossy(line)),
        }
    }
}

impl Artifact {
    /// Finds the lines that match.
    pub fn search(&self, pattern: &Pattern, search: &Search) -> Result<Hits, ArtifactError> {
        let matcher = Matcher::new(pattern)?;
        self.look(&matcher, search)
            .map_err(ArtifactError::io(self.path()))
    }

    fn look(&self, matcher: &Matcher, search: &Search) -> io::Result<Hits> {
        let mut reader = BufReader::with_capacity(BUFFER, self.file_from_start()?);
        let mut hits = Hits::default();
        let mut line = Vec::new();
        let context = search.context.min(MOST_CONTEXT);
        let mut before: VecDeque<Vec<u8>> = VecDeque::new();
        while read_line(&mut reader, &mut line)? {
            hits.lines += 1;
            let matched = matcher.matches(&line);
            hits.total += u64::from(matched);
            let wanted = matched && hits.hits.len() < search.most_hits;
            let near = |hit: &Hit, number: u64| number - hit.line <= context as u64;
            if wanted || hits.hits.last().is_some_and(|hit| near(hit, hits.lines)) {
                let text = shorten(&line, search.line_bytes);
                for hit in hits.hits.iter_mut().rev() {
                    if !near(hit, hits.lines) {
                        break;
                    }
                    hit.after.push(text.clone());
                }
                if wanted {
                    let shortened = before.iter().map(|line| shorten(line, search.line_bytes));
                    hits.hits.push(Hit {
                        line: hits.lines,
                        text,
                        before: shortened.collect(),
                        after: Vec::new(),
                    });
                }
            }
            if context > 0 {
                let mut kept = if before.len() == context {
                    before.pop_front().unwrap_or_default()
                } else {
                    Vec::new()
                };
                kept.clear();
                kept.extend_from_slice(&line[..line.len().min(MOST_OF_A_NEIGHBOUR)]);
                before.push_back(kept);
            }
        }
        Ok(hits)
    }
}

/// Reads a line without its newline, and of a very long one the beginning.
fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = memchr::memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = MOST_OF_A_LINE.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let count = part.len() + usize::from(end.is_some());
        reader.consume(count);
        if end.is_some() {
            return Ok(true);
        }
    }
}

fn shorten(line: &[u8], most: usize) -> String {
    let mut text = clean::plain(&String::from_utf8_lossy(line));
    if most > 0 && text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub('…'.len_utf8())));
        text.push('…');
    }
    text
}
