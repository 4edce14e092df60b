//! What was written to notebooks while a page had them open, and whether it is still there.
//!
//! A page saves the notebook as it knows it. Then lines that were added are gone, and lines that were replaced are back; the
//! same holds for the outputs of cells. A person who edits further after a reload causes neither.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cellwright_notebook::file::{self, Survey};
use cellwright_notebook::{Cells, Notice};
use cellwright_stdext::{hex, rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Size in bytes of the outputs of a cell that are compared.
const OUTPUTS_LIMIT: usize = 1 << 20;

/// The number of writes since which the changes are remembered.
const WRITES_MAX: usize = 8;

/// How long a write is remembered: a page that is open for longer has been saved or reloaded.
const MEMORY_TIMEOUT: Duration = Duration::from_hours(7 * 24);

/// How often each line of source and each output occurs in a notebook, by hash.
#[derive(Debug, Default)]
pub(super) struct Content {
    revision: String,
    lines: BTreeMap<String, u32>,
    outputs: BTreeMap<String, u32>,
}

impl Content {
    /// Reads a notebook; `None` if it cannot be read.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let survey = file::survey(path).ok()?;
        let mut content = Self {
            revision: survey.revision().to_string(),
            ..Self::default()
        };
        for index in 0..survey.count() {
            let source = survey.source(index);
            for line in source.lines().filter(|line| !line.trim().is_empty()) {
                *content.lines.entry(hash(line.as_bytes())).or_default() += 1;
            }
            if let Some(outputs) = hash_outputs(&survey, index, &source) {
                *content.outputs.entry(outputs).or_default() += 1;
            }
        }
        Some(content)
    }
}

/// A write to a notebook.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WrittenRecord {
    path: PathBuf,
    /// Address of the server whose page had the notebook open.
    server: String,
    at: SystemTime,
    revision: String,
    /// What has changed since before each of the last writes: a page may have been loaded between two of them.
    changes: Vec<Changes>,
}

/// The difference between two states of a notebook.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Changes {
    lines: BTreeMap<String, Occurrences>,
    outputs: BTreeMap<String, Occurrences>,
}

/// How often something occurred before a write and after the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Occurrences {
    before: u32,
    after: u32,
}

impl WrittenRecord {
    /// The record of a write, together with those before it.
    pub(super) fn new(
        path: &Path,
        server: String,
        previous: Option<Self>,
        before: &Content,
        after: &Content,
    ) -> Self {
        let mut changes = previous.map_or_else(Vec::new, |previous| previous.changes);
        changes.push(Changes::default());
        if changes.len() > WRITES_MAX {
            // The first one stays: most pages are loaded before all writes.
            changes.remove(1);
        }
        for change in &mut changes {
            merge(&mut change.lines, &before.lines, &after.lines);
            merge(&mut change.outputs, &before.outputs, &after.outputs);
        }
        Self {
            path: path.to_owned(),
            server,
            at: SystemTime::now(),
            revision: after.revision.clone(),
            changes,
        }
    }

    /// Whether the notebook no longer has what was written.
    pub(super) fn is_overwritten(&self, now: &Content) -> bool {
        let is_undone = |changes: &Changes| {
            is_undone(&changes.lines, &now.lines) || is_undone(&changes.outputs, &now.outputs)
        };
        now.revision != self.revision && self.changes.iter().any(is_undone)
    }

    pub(super) fn to_notice(&self) -> Notice {
        Notice::Overwritten {
            at: rfc3339::format_seconds(self.at),
            revision: self.revision.clone(),
            server: self.server.clone(),
        }
    }

    fn is_recent(&self) -> bool {
        // A time in the future is that of a clock which was set back.
        self.at.elapsed().is_ok_and(|age| age < MEMORY_TIMEOUT)
    }
}

/// Adds the changes of a write to those before it.
fn merge(
    changes: &mut BTreeMap<String, Occurrences>,
    before: &BTreeMap<String, u32>,
    after: &BTreeMap<String, u32>,
) {
    let count =
        |counts: &BTreeMap<String, u32>, key: &String| counts.get(key).copied().unwrap_or(0);
    for key in before.keys().chain(after.keys()) {
        let (before, after) = (count(before, key), count(after, key));
        let change = changes.entry(key.clone());
        change.or_insert(Occurrences { before, after }).after = after;
    }
    changes.retain(|_, change| change.before != change.after);
}

/// Whether everything that was added is gone, and something that was removed is back.
fn is_undone(changes: &BTreeMap<String, Occurrences>, now: &BTreeMap<String, u32>) -> bool {
    let count = |key| now.get(key).copied().unwrap_or(0);
    let mut added = changes
        .iter()
        .filter(|(_, change)| change.after > change.before);
    let mut removed = changes
        .iter()
        .filter(|(_, change)| change.after < change.before)
        .peekable();
    let nothing_removed = removed.peek().is_none();
    !changes.is_empty()
        && added.all(|(key, change)| count(key) <= change.before)
        && (nothing_removed || removed.any(|(key, change)| count(key) >= change.before))
}

/// The hash of a cell with its outputs; `None` if it has too many to compare.
fn hash_outputs(survey: &Survey, index: usize, source: &str) -> Option<String> {
    if survey.outputs_size(index) > OUTPUTS_LIMIT {
        return None;
    }
    let outputs = survey.outputs(index).ok()?;
    let outputs: Value = serde_json::from_slice(&outputs).unwrap_or_default();
    let mut text = source.to_owned();
    write_canonical(&outputs, &mut text);
    Some(hash(text.as_bytes()))
}

/// Writes a value as all programs that save notebooks agree on: sorted members, and lists of lines as one text.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            for (name, value) in members {
                text.push_str(name);
                text.push('\u{1}');
                write_canonical(value, text);
            }
            text.push('\u{2}');
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) => {
            for item in items {
                text.push_str(item.as_str().unwrap_or_default());
            }
            text.push('\u{3}');
        }
        Value::Array(items) => {
            for item in items {
                write_canonical(item, text);
            }
            text.push('\u{2}');
        }
        Value::String(string) => {
            text.push_str(string);
            text.push('\u{3}');
        }
        other => {
            text.push_str(&other.to_string());
            text.push('\u{3}');
        }
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..8])
}

/// The records of writes, one file for each notebook.
#[derive(Clone, Debug)]
pub(super) struct WrittenRecords {
    dir: PathBuf,
}

impl WrittenRecords {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            dir: state_dir.join("written"),
        }
    }

    /// The record of a notebook, by its path without links.
    pub(super) fn find(&self, path: &Path) -> Option<WrittenRecord> {
        let text = fs::read(self.file(path)).ok()?;
        let record: WrittenRecord = serde_json::from_slice(&text).ok()?;
        if record.path != path || !record.is_recent() {
            self.remove(path);
            return None;
        }
        Some(record)
    }

    /// Stores a record. Without it, an overwritten text is not reported; the write itself is not affected.
    pub(super) fn store(&self, record: &WrittenRecord) -> std::io::Result<()> {
        fs::create_dir_all(&self.dir)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        file.write_all(&serde_json::to_vec(record)?)?;
        file.persist(self.file(&record.path))?;
        Ok(())
    }

    pub(super) fn remove(&self, path: &Path) {
        fs::remove_file(self.file(path)).ok();
    }

    fn file(&self, path: &Path) -> PathBuf {
        let name = hash(path.as_os_str().as_encoded_bytes());
        self.dir.join(format!("{name}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A notebook with one code cell of these lines, and an output.
    fn content(dir: &Path, lines: &str, output: &str) -> Content {
        let notebook = serde_json::json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{
            "cell_type": "code", "id": "one", "metadata": {}, "execution_count": 1, "source": lines,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": output}],
        }]});
        let path = dir.join("a.ipynb");
        fs::write(&path, notebook.to_string()).unwrap();
        Content::read(&path).unwrap()
    }

    /// Whether a write that changed `before` to `after` is overwritten in `now`: lines and output of each.
    fn is_overwritten(before: [&str; 2], after: [&str; 2], now: [&str; 2]) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let content = |[lines, output]: [&str; 2]| content(dir.path(), lines, output);
        let (before, after) = (content(before), content(after));
        let record = WrittenRecord::new(dir.path(), String::new(), None, &before, &after);
        record.is_overwritten(&content(now))
    }

    #[test]
    fn a_write_is_overwritten_if_the_old_lines_are_back() {
        let is_overwritten = |now| is_overwritten(["a\nb", ""], ["a\nB", ""], [now, ""]);
        assert!(is_overwritten("a\nb"));
        assert!(is_overwritten("a, and typed\nb"));
        assert!(!is_overwritten("a\nB"));
        // Edited further, after a reload.
        assert!(!is_overwritten("a\nB, and more"));
        assert!(!is_overwritten("a, and more\nB"));
    }

    #[test]
    fn added_lines_are_overwritten_if_all_are_gone() {
        let is_overwritten = |now| is_overwritten(["a", ""], ["a\nb\nc", ""], [now, ""]);
        assert!(is_overwritten("a"));
        assert!(!is_overwritten("a\nc"));
    }

    #[test]
    fn outputs_are_overwritten_if_the_old_ones_are_back() {
        let is_overwritten = |now| is_overwritten(["a", "1"], ["a", "2"], ["a", now]);
        assert!(is_overwritten("1"));
        assert!(!is_overwritten("2"));
        // The page has run the cell again.
        assert!(!is_overwritten("3"));
    }

    #[test]
    fn the_state_before_any_of_several_writes_counts() {
        let dir = tempfile::tempdir().unwrap();
        let content = |lines| content(dir.path(), lines, "");
        let (first, second, third) = (content("1"), content("2"), content("3"));
        let record = WrittenRecord::new(dir.path(), String::new(), None, &first, &second);
        let record = WrittenRecord::new(dir.path(), String::new(), Some(record), &second, &third);
        assert!(record.is_overwritten(&content("1")));
        assert!(record.is_overwritten(&content("2")));
        assert!(!record.is_overwritten(&content("4")));
    }
}
