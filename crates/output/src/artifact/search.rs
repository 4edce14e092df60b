//! Line search in an artifact, without loading the file.
//!
//! Plain text is searched with `memchr::memmem`, at disk speed. Patterns use `regex-lite`, which is slower
//! but small, and linear in the length of the text.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};

use memchr::memmem::Finder;

use super::read::BUFFER_SIZE;
use super::{Artifact, ArtifactError};
use crate::clean;

/// A search pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Exactly this text.
    Plain(String),
    /// A regular expression, matched against each line.
    Regex(String),
}

/// Options of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Maximum number of hits to return; further matches are only counted.
    pub max_hits: usize,
    /// Number of context lines before and after each hit.
    pub context: usize,
    /// Maximum length of each returned line, in bytes.
    pub line_bytes: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            max_hits: 100,
            context: 0,
            line_bytes: 768,
        }
    }
}

/// A matching line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// 1-based line number.
    pub line: u64,
    /// The line, cleaned and shortened.
    pub text: String,
    /// Context lines before the hit.
    pub before: Vec<String>,
    /// Context lines after the hit.
    pub after: Vec<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// The first matching lines.
    pub hits: Vec<SearchHit>,
    /// Number of matching lines in the artifact.
    pub total: u64,
    /// Number of lines searched.
    pub lines_searched: u64,
}

/// Bytes of a line that are searched: a line of a gigabyte must not be held in memory.
const LINE_LIMIT: usize = 1 << 20;

/// Bytes held of a context line.
const CONTEXT_LINE_LIMIT: usize = 16 * 1024;

/// Maximum number of context lines before and after a hit.
const CONTEXT_LINES_MAX: usize = 50;

/// Characters with a special meaning in a regular expression.
const REGEX_METACHARACTERS: [char; 14] = [
    '\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$',
];

enum Matcher {
    Plain(Box<Finder<'static>>),
    Regex(regex_lite::Regex),
}

impl Matcher {
    fn new(pattern: &Pattern) -> Result<Self, ArtifactError> {
        Ok(match pattern {
            // A pattern without metacharacters is plain text, and is found much faster.
            Pattern::Regex(text) if !text.contains(REGEX_METACHARACTERS) => {
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
    /// Returns the matching lines.
    pub fn search(
        &self,
        pattern: &Pattern,
        options: &SearchOptions,
    ) -> Result<SearchResults, ArtifactError> {
        let matcher = Matcher::new(pattern)?;
        self.search_lines(&matcher, options)
            .map_err(ArtifactError::io(self.path()))
    }

    fn search_lines(
        &self,
        matcher: &Matcher,
        options: &SearchOptions,
    ) -> io::Result<SearchResults> {
        let mut reader = BufReader::with_capacity(BUFFER_SIZE, self.file_from_start()?);
        let mut results = SearchResults::default();
        let mut line = Vec::new();
        let context = options.context.min(CONTEXT_LINES_MAX);
        let mut before: VecDeque<Vec<u8>> = VecDeque::new();
        while read_line(&mut reader, &mut line)? {
            results.lines_searched += 1;
            let matched = matcher.matches(&line);
            results.total += u64::from(matched);
            let is_hit = matched && results.hits.len() < options.max_hits;
            let in_context = |hit: &SearchHit, number: u64| number - hit.line <= context as u64;
            if is_hit
                || results
                    .hits
                    .last()
                    .is_some_and(|hit| in_context(hit, results.lines_searched))
            {
                let text = clean_line(&line, options.line_bytes);
                for hit in results.hits.iter_mut().rev() {
                    if !in_context(hit, results.lines_searched) {
                        break;
                    }
                    hit.after.push(text.clone());
                }
                if is_hit {
                    let shortened = before
                        .iter()
                        .map(|line| clean_line(line, options.line_bytes));
                    results.hits.push(SearchHit {
                        line: results.lines_searched,
                        text,
                        before: shortened.collect(),
                        after: Vec::new(),
                    });
                }
            }
            if context > 0 {
                let mut context_line = if before.len() == context {
                    before.pop_front().unwrap_or_default()
                } else {
                    Vec::new()
                };
                context_line.clear();
                context_line.extend_from_slice(&line[..line.len().min(CONTEXT_LINE_LIMIT)]);
                before.push_back(context_line);
            }
        }
        Ok(results)
    }
}

/// Reads a line without its newline, up to `LINE_LIMIT` bytes. Returns `false` at the end of the file.
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
        let left = LINE_LIMIT.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(left)]);
        let count = part.len() + usize::from(end.is_some());
        reader.consume(count);
        if end.is_some() {
            return Ok(true);
        }
    }
}

fn clean_line(line: &[u8], limit: usize) -> String {
    let mut text = clean::plain(&String::from_utf8_lossy(line));
    if limit > 0 && text.len() > limit {
        text.truncate(text.floor_char_boundary(limit.saturating_sub('…'.len_utf8())));
        text.push('…');
    }
    text
}
