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
use super::servers::{self, FileServer, SERVER_KEYS, ServerKey};
use super::value::Value;
use super::value_kind::ValueKind;

/// Largest settings file, in bytes. A project's file may come from other people.
const FILE_SIZE_LIMIT: u64 = 1 << 20;

/// A setting in a file, with its checked value.
pub(super) struct FileSetting {
    pub(super) definition: &'static SettingDef,
    pub(super) value: Value,
    pub(super) at: Position,
}

/// What a file contains.
pub(super) struct FileContent {
    pub(super) settings: Vec<FileSetting>,
    pub(super) servers: Vec<FileServer>,
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
pub(super) fn parse(file: &Path, text: &str) -> Result<FileContent, SettingsError> {
    let table = DeTable::parse(text).map_err(|error| SettingsError::Syntax {
        file: file.to_owned(),
        at: position(text, error.span().map_or(0, |span| span.start)),
        reason: one_line(error.message()),
    })?;
    let mut parser = FileParser {
        file,
        text,
        settings: Vec::new(),
        servers: Vec::new(),
        first_error: None,
    };
    for (group, value) in table.get_ref() {
        parser.parse_group(group, value);
    }
    match parser.first_error {
        Some((_, error)) => Err(error),
        None => Ok(FileContent {
            settings: parser.settings,
            servers: parser.servers,
        }),
    }
}

struct FileParser<'a> {
    file: &'a Path,
    text: &'a str,
    settings: Vec<FileSetting>,
    servers: Vec<FileServer>,
    /// The error with the smallest byte offset, and that offset.
    first_error: Option<(usize, SettingsError)>,
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl FileParser<'_> {
    fn parse_group(&mut self, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let group = key.get_ref().as_ref();
        if group == servers::TABLE {
            return self.parse_servers(value);
        }
        if SETTINGS
            .iter()
            .all(|definition| definition.group() != group)
        {
            // The file may name a key without its table.
            let groups = SETTINGS.iter().map(SettingDef::group);
            let suggestion = nearest(group, groups.chain([servers::TABLE]))
                .map(str::to_owned)
                .or_else(|| {
                    let key = nearest(group, SETTINGS.iter().map(SettingDef::key))?;
                    let definition = SETTINGS.iter().find(|definition| definition.key() == key)?;
                    Some(definition.name.to_owned())
                });
            let mut existing: Vec<String> = SETTINGS.iter().map(|d| d.group().to_owned()).collect();
            existing.dedup();
            existing.push(servers::TABLE.to_owned());
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

    fn parse_servers(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = value.get_ref() else {
            self.report_bad_value("server.NAME".to_owned(), None, value);
            return;
        };
        for (name, value) in table {
            self.parse_server(name, value);
        }
    }

    fn parse_server(&mut self, key: &Key<'_>, value: &Spanned<DeValue<'_>>) {
        let name = key.get_ref().as_ref();
        let DeValue::Table(table) = value.get_ref() else {
            // A key without the name of a server.
            return self.report_bad_value("server.NAME".to_owned(), None, value);
        };
        let offset = key.span().start;
        let at = position(self.text, offset);
        let file = self.file.to_owned();
        if !servers::is_server_name(name) {
            let error = SettingsError::BadServerName { file, at };
            return self.record_error(offset, error);
        }
        let mut values = Vec::new();
        let mut is_valid = true;
        for (key, value) in table {
            let full_name = format!("{}.{name}.{}", servers::TABLE, key.get_ref());
            let Some(definition) = SERVER_KEYS
                .iter()
                .find(|known| known.name == key.get_ref().as_ref())
            else {
                let names = || SERVER_KEYS.iter().map(|known| known.name);
                let suggestion = nearest(key.get_ref(), names())
                    .map(|known| format!("{}.{name}.{known}", servers::TABLE));
                let existing = names().map(str::to_owned).collect();
                self.report_unknown(key, full_name, suggestion, existing);
                is_valid = false;
                continue;
            };
            if let Some(value) = definition.kind.parse_toml(value.get_ref()) {
                values.push((definition, value, position(self.text, key.span().start)));
            } else {
                self.report_bad_server_value(full_name, definition, value);
                is_valid = false;
            }
        }
        // Another error in the table explains more.
        if is_valid && !values.iter().any(|(key, ..)| key.name == "url") {
            let name = name.to_owned();
            self.record_error(offset, SettingsError::NoServerUrl { file, at, name });
            return;
        }
        self.servers.push(FileServer {
            name: name.to_owned(),
            at,
            values,
        });
    }

    fn report_bad_server_value(
        &mut self,
        key: String,
        definition: &'static ServerKey,
        value: &Spanned<DeValue<'_>>,
    ) {
        let offset = value.span().start;
        let error = SettingsError::BadValue {
            file: self.file.to_owned(),
            at: position(self.text, offset),
            key,
            expected: definition.kind.expected(),
            found: found(definition.kind, value.get_ref()),
            meaning: Some(definition.meaning),
        };
        self.record_error(offset, error);
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
            found: match definition {
                Some(definition) => found(definition.kind, value.get_ref()),
                None => type_name(value.get_ref()),
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

/// Returns what was found instead of a value of a kind.
fn found(kind: ValueKind, value: &DeValue<'_>) -> &'static str {
    if kind.accepts_type(value) {
        "a value out of range or of another form"
    } else {
        type_name(value)
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
