//! One file of settings: read, taken apart, every value checked.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use cellwright_notebook::Position;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::declared::{DECLARED, Declared};
use super::error::SettingsError;
use super::near::nearest;
use super::value::Value;

/// Larger files are something else. A project's file is other people's.
const LARGEST: u64 = 1 << 20;

/// A value that stands in a file.
pub(super) struct Found {
    pub(super) declared: &'static Declared,
    pub(super) value: Value,
    pub(super) at: Position,
}

/// The text of a file; `None` if there is none.
pub(super) fn read(file: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |why: String| SettingsError::Unreadable {
        file: file.to_owned(),
        why,
    };
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    // Opening a pipe could wait for ever.
    if !metadata.is_file() {
        let what = if metadata.is_dir() {
            "a folder"
        } else {
            "not a file"
        };
        return Err(unreadable(format!("it is {what}")));
    }
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|opened| opened.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(unreadable("it is larger than 1 MiB".to_owned()));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count();
        unreadable(format!("it is not UTF-8 on line {line}"))
    })
}

/// The values in the text of a file. Of several mistakes the first is told.
pub(super) fn parse(file: &Path, text: &str) -> Result<Vec<Found>, SettingsError> {
    let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
        file: file.to_owned(),
        at: position(text, error.span().map_or(0, |span| span.start)),
        why: one_line(error.message()),
    })?;
    let mut reading = Reading {
        file,
        text,
        found: Vec::new(),
        mistake: None,
    };
    for (group, value) in table.get_ref() {
        reading.group(group, value);
    }
    match reading.mistake {
        Some((_, mistake)) => Err(mistake),
        None => Ok(reading.found),
    }
}

struct Reading<'a> {
    file: &'a Path,
    text: &'a str,
    found: Vec<Found>,
    /// The first mistake, and where it is.
    mistake: Option<(usize, SettingsError)>,
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl Reading<'_> {
    fn group(&mut self, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let group = key.get_ref().as_ref();
        if DECLARED.iter().all(|declared| declared.group() != group) {
            // Somebody may have left the table out.
            let near = nearest(group, DECLARED.iter().map(Declared::group))
                .map(str::to_owned)
                .or_else(|| {
                    let key = nearest(group, DECLARED.iter().map(Declared::key))?;
                    let declared = DECLARED.iter().find(|declared| declared.key() == key)?;
                    Some(declared.name.to_owned())
                });
            let mut known: Vec<String> = DECLARED.iter().map(|d| d.group().to_owned()).collect();
            known.dedup();
            self.unknown(key, group.to_owned(), near, known);
            return;
        }
        let DeValue::Table(table) = value.get_ref() else {
            self.bad_value(group.to_owned(), None, value);
            return;
        };
        for (key, value) in table {
            self.setting(group, key, value);
        }
    }

    fn setting(&mut self, group: &str, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let name = format!("{group}.{}", key.get_ref());
        let Some(declared) = DECLARED.iter().find(|declared| declared.name == name) else {
            let siblings = || DECLARED.iter().filter(|declared| declared.group() == group);
            let near = nearest(key.get_ref(), siblings().map(Declared::key))
                .map(|near| format!("{group}.{near}"));
            let known = siblings()
                .map(|declared| declared.name.to_owned())
                .collect();
            self.unknown(key, name, near, known);
            return;
        };
        match declared.kind.read_toml(value.get_ref()) {
            Some(read) => self.found.push(Found {
                declared,
                value: read,
                at: position(self.text, key.span().start),
            }),
            None => self.bad_value(name, Some(declared), value),
        }
    }

    fn unknown(&mut self, at: &Key<'_>, key: String, near: Option<String>, known: Vec<String>) {
        let offset = at.span().start;
        let mistake = SettingsError::Unknown {
            file: self.file.to_owned(),
            at: position(self.text, offset),
            key,
            near,
            known,
        };
        self.take(offset, mistake);
    }

    fn bad_value(
        &mut self,
        key: String,
        declared: Option<&'static Declared>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let offset = value.span().start;
        let mistake = SettingsError::BadValue {
            file: self.file.to_owned(),
            at: position(self.text, offset),
            key,
            expected: declared.map_or("a table".to_owned(), |declared| declared.kind.expected()),
            found: if declared.is_some_and(|declared| declared.kind.takes(value.get_ref())) {
                "one that will not do"
            } else {
                sort_of(value.get_ref())
            },
            meaning: declared.map(Declared::meaning),
        };
        self.take(offset, mistake);
    }

    fn take(&mut self, offset: usize, mistake: SettingsError) {
        if self
            .mistake
            .as_ref()
            .is_none_or(|(first, _)| offset < *first)
        {
            self.mistake = Some((offset, mistake));
        }
    }
}

/// What sort of value it is. The value itself is not told: it may be a secret.
fn sort_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn position(text: &str, offset: usize) -> Position {
    let before = &text[..text.floor_char_boundary(offset)];
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.matches('\n').count() + 1,
        column: before[start..]
            .trim_start_matches('\u{feff}')
            .chars()
            .count()
            + 1,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
