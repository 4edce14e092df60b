//! Reads and checks one settings file.

use std::io;
use std::path::Path;

use cellwright_diagnostics::suggest::nearest;
use cellwright_notebook::Position;
use cellwright_stdext::regular_file::{self, Links};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::definitions::{SETTINGS, SettingDef};
use super::error::SettingsError;
use super::value::Value;

/// Largest settings file, in bytes. A project's file may come from other people.
const FILE_SIZE_LIMIT: u64 = 1 << 20;

/// A setting in a file, with its checked value.
pub(super) struct FileSetting {
    pub(super) definition: &'static SettingDef,
    pub(super) value: Value,
    pub(super) at: Position,
}

/// Returns the text of a file; `None` if the file does not exist.
pub(super) fn read(file: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |reason: String| SettingsError::Unreadable {
        file: file.to_owned(),
        reason,
    };
    let bytes = match regular_file::read(file, Links::Follow, FILE_SIZE_LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.split(|byte| *byte == b'\n').count();
        unreadable(format!("it is not UTF-8 on line {line}"))
    })
}

/// Returns the settings in the text of a file. Of several errors it returns the first.
pub(super) fn parse(file: &Path, text: &str) -> Result<Vec<FileSetting>, SettingsError> {
    let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
        file: file.to_owned(),
        at: position(text, error.span().map_or(0, |span| span.start)),
        reason: one_line(error.message()),
    })?;
    let mut parser = FileParser {
        file,
        text,
        settings: Vec::new(),
        first_error: None,
    };
    for (group, value) in table.get_ref() {
        parser.parse_group(group, value);
    }
    match parser.first_error {
        Some((_, error)) => Err(error),
        None => Ok(parser.settings),
    }
}

struct FileParser<'a> {
    file: &'a Path,
    text: &'a str,
    settings: Vec<FileSetting>,
    /// The error with the smallest byte offset, and that offset.
    first_error: Option<(usize, SettingsError)>,
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl FileParser<'_> {
    fn parse_group(&mut self, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let group = key.get_ref().as_ref();
        if SETTINGS
            .iter()
            .all(|definition| definition.group() != group)
        {
            // The file may name a key without its table.
            let suggestion = nearest(group, SETTINGS.iter().map(SettingDef::group))
                .map(str::to_owned)
                .or_else(|| {
                    let key = nearest(group, SETTINGS.iter().map(SettingDef::key))?;
                    let definition = SETTINGS.iter().find(|definition| definition.key() == key)?;
                    Some(definition.name.to_owned())
                });
            let mut existing: Vec<String> = SETTINGS.iter().map(|d| d.group().to_owned()).collect();
            existing.dedup();
            self.report_unknown(key, group.to_owned(), suggestion, existing);
            return;
        }
        let DeValue::Table(table) = value.get_ref() else {
            self.report_bad_value(group.to_owned(), None, value);
            return;
        };
        for (key, value) in table {
            self.parse_setting(group, key, value);
        }
    }

    fn parse_setting(&mut self, group: &str, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let name = format!("{group}.{}", key.get_ref());
        let Some(definition) = SETTINGS.iter().find(|definition| definition.name == name) else {
            let siblings = || {
                SETTINGS
                    .iter()
                    .filter(|definition| definition.group() == group)
            };
            let suggestion = nearest(key.get_ref(), siblings().map(SettingDef::key))
                .map(|suggestion| format!("{group}.{suggestion}"));
            let existing = siblings()
                .map(|definition| definition.name.to_owned())
                .collect();
            self.report_unknown(key, name, suggestion, existing);
            return;
        };
        match definition.kind.parse_toml(value.get_ref()) {
            Some(value) => self.settings.push(FileSetting {
                definition,
                value,
                at: position(self.text, key.span().start),
            }),
            None => self.report_bad_value(name, Some(definition), value),
        }
    }

    fn report_unknown(
        &mut self,
        at: &Key<'_>,
        key: String,
        suggestion: Option<String>,
        existing: Vec<String>,
    ) {
        let offset = at.span().start;
        let error = SettingsError::Unknown {
            file: self.file.to_owned(),
            at: position(self.text, offset),
            key,
            suggestion,
            existing,
        };
        self.record_error(offset, error);
    }

    fn report_bad_value(
        &mut self,
        key: String,
        definition: Option<&'static SettingDef>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let offset = value.span().start;
        let error = SettingsError::BadValue {
            file: self.file.to_owned(),
            at: position(self.text, offset),
            key,
            expected: definition.map_or("a table".to_owned(), |definition| {
                definition.kind.expected()
            }),
            found: if definition
                .is_some_and(|definition| definition.kind.accepts_type(value.get_ref()))
            {
                "a value out of range or of another form"
            } else {
                type_name(value.get_ref())
            },
            meaning: definition.map(SettingDef::meaning),
        };
        self.record_error(offset, error);
    }

    fn record_error(&mut self, offset: usize, error: SettingsError) {
        if self
            .first_error
            .as_ref()
            .is_none_or(|(first, _)| offset < *first)
        {
            self.first_error = Some((offset, error));
        }
    }
}

/// Returns the type of a value for an error. Errors never contain the value: it may be a secret.
fn type_name(value: &DeValue<'_>) -> &'static str {
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
