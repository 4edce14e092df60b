//! Parses YAML into values. Only this module uses the YAML library.
//!
//! The library produces events and limits their nesting. This module builds values from them without recursion, and
//! limits what aliases copy, so that a small file cannot become a large value.

use std::collections::{HashMap, HashSet};
use std::fmt;

use cellwright_execution::parameters::Value;
use cellwright_notebook::Position;
use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag, options};

use super::scalar::{self, Scalar};

/// Maximum nesting of lists and mappings.
const DEPTH_MAX: usize = 64;

/// How much anchors and aliases may copy: the number of values plus their bytes of text.
const ALIAS_COPY_LIMIT: usize = 4 << 20;

/// A parsed document.
#[derive(Debug)]
pub(super) struct YamlDocument {
    /// Null if the document is empty.
    pub(super) value: Value,
    /// Scalars with another meaning in YAML 1.1.
    pub(super) ambiguities: Vec<AmbiguousScalar>,
}

/// A plain scalar with another meaning in YAML 1.1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AmbiguousScalar {
    /// Its position.
    pub(super) at: Position,
    /// Its text.
    pub(super) word: String,
    /// The text that has the YAML 1.1 meaning in both versions.
    pub(super) unambiguous: String,
}

/// Why a text cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum YamlError {
    /// An error at a position.
    At(Position, String),
    /// The document is not a mapping.
    NotAMapping,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at, what) => write!(f, "{at}: {what}"),
            Self::NotAMapping => f.write_str("the top level is not a mapping of names to values"),
        }
    }
}

/// Parses one document.
pub(super) fn read(text: &str) -> Result<YamlDocument, YamlError> {
    let options = options! {
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut builder = ValueBuilder::default();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| {
            let what = error.info().replace('\n', " ");
            YamlError::At(position(error.marker()), what)
        })?;
        builder.handle(event, position(&span.start))?;
    }
    Ok(YamlDocument {
        value: builder.root.unwrap_or(Value::Null),
        ambiguities: builder.ambiguities,
    })
}

/// Converts a position; columns of the library count from 0.
fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// Builds values from events.
#[derive(Default)]
struct ValueBuilder {
    open: Vec<OpenContainer>,
    anchors: HashMap<usize, AnchoredValue>,
    copied: usize,
    root: Option<Value>,
    ambiguities: Vec<AmbiguousScalar>,
}

/// A list or mapping whose end has not been read.
struct OpenContainer {
    anchor: usize,
    container: Container,
}

enum Container {
    List(Vec<Value>),
    Map(MapBuilder),
}

#[derive(Default)]
struct MapBuilder {
    entries: Vec<(String, Value)>,
    lines: HashMap<String, usize>,
    /// Entries from `<<`; they are used for names that `entries` does not have.
    merged: Vec<(String, Value)>,
    /// The key whose value comes next.
    key: Option<Key>,
}

enum Key {
    Name(String),
    Merge(Position),
}

/// A value that aliases copy, and its size.
struct AnchoredValue {
    value: Value,
    size: usize,
}

/// A value that may also be a key.
struct Node {
    value: Value,
    /// Its name as a key; `None` for lists and mappings.
    name: Option<String>,
    /// Whether it is the key `<<`, which merges another mapping.
    merges: bool,
}

impl ValueBuilder {
    fn handle(&mut self, event: Event<'_>, at: Position) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(error_at(at, "there is a second document"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let node = self.scalar(&text, style, tag.as_deref(), at)?;
                if anchor > 0 {
                    self.store_anchor(anchor, &node.value, at)?;
                }
                self.add(node, at)
            }
            Event::SequenceStart(_, anchor, tag) => {
                expect_tag(tag.as_deref(), "seq", at)?;
                self.open_container(anchor, Container::List(Vec::new()), at)
            }
            Event::MappingStart(_, anchor, tag) => {
                expect_tag(tag.as_deref(), "map", at)?;
                self.open_container(anchor, Container::Map(MapBuilder::default()), at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close_container(at),
            Event::Alias(anchor) => {
                let value = self.resolve_alias(anchor, at)?;
                let name = match &value {
                    Value::Text(text) => Some(text.clone()),
                    _ => None,
                };
                let merges = false;
                self.add(
                    Node {
                        value,
                        name,
                        merges,
                    },
                    at,
                )
            }
            _ => Ok(()),
        }
    }

    fn open_container(
        &mut self,
        anchor: usize,
        container: Container,
        at: Position,
    ) -> Result<(), YamlError> {
        if let Some(OpenContainer {
            container: Container::Map(MapBuilder { key: None, .. }),
            ..
        }) = self.open.last()
        {
            return Err(error_at(at, "a list or a mapping cannot be a key"));
        }
        self.open.push(OpenContainer { anchor, container });
        Ok(())
    }

    fn close_container(&mut self, at: Position) -> Result<(), YamlError> {
        let Some(OpenContainer { anchor, container }) = self.open.pop() else {
            return Ok(());
        };
        let value = match container {
            Container::List(items) => Value::List(items),
            Container::Map(map) => Value::Map(map.finish()),
        };
        if anchor > 0 {
            self.store_anchor(anchor, &value, at)?;
        }
        let node = Node {
            value,
            name: None,
            merges: false,
        };
        self.add(node, at)
    }

    /// Adds a complete value to the innermost container.
    fn add(&mut self, node: Node, at: Position) -> Result<(), YamlError> {
        match self.open.last_mut().map(|open| &mut open.container) {
            None => self.root = Some(node.value),
            Some(Container::List(items)) => items.push(node.value),
            Some(Container::Map(map)) => map.add(node, at)?,
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        at: Position,
    ) -> Result<Node, YamlError> {
        let is_plain = style == ScalarStyle::Plain;
        let read = match tag {
            None if is_plain => scalar::resolve(text),
            None => Scalar::Text,
            Some(tag) => resolve_tagged(tag, text).ok_or_else(|| {
                error_at(at, &format!("`{text}` is not a valid `{}`", tag.original()))
            })?,
        };
        let value = match read {
            Scalar::Value(value) => value,
            Scalar::Text => Value::from(text),
            Scalar::TooLarge => return Err(error_at(at, "a number has too many digits")),
        };
        if tag.is_none()
            && is_plain
            && !self.expects_key()
            && let Some(unambiguous) = scalar::yaml_1_1_meaning(text)
        {
            let word = text.to_owned();
            self.ambiguities.push(AmbiguousScalar {
                at,
                word,
                unambiguous,
            });
        }
        Ok(Node {
            value,
            name: Some(text.to_owned()),
            merges: is_plain && tag.is_none() && text == "<<",
        })
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(OpenContainer {
                container: Container::Map(MapBuilder { key: None, .. }),
                ..
            })
        )
    }

    fn store_anchor(
        &mut self,
        anchor: usize,
        value: &Value,
        at: Position,
    ) -> Result<(), YamlError> {
        let size = value_size(value);
        self.charge_copy(size, at)?;
        let value = value.clone();
        self.anchors.insert(anchor, AnchoredValue { value, size });
        Ok(())
    }

    fn resolve_alias(&mut self, anchor: usize, at: Position) -> Result<Value, YamlError> {
        let Some(AnchoredValue { value, size }) = self.anchors.get(&anchor) else {
            return Err(error_at(
                at,
                "the alias is part of the value that it repeats",
            ));
        };
        let (value, size) = (value.clone(), *size);
        self.charge_copy(size, at)?;
        if self.open.len() + value.depth() > DEPTH_MAX {
            return Err(error_at(at, "it is nested too deeply"));
        }
        Ok(value)
    }

    fn charge_copy(&mut self, size: usize, at: Position) -> Result<(), YamlError> {
        self.copied += size;
        if self.copied > ALIAS_COPY_LIMIT {
            return Err(error_at(at, "aliases repeat too much"));
        }
        Ok(())
    }
}

impl MapBuilder {
    fn add(&mut self, node: Node, at: Position) -> Result<(), YamlError> {
        match self.key.take() {
            None if node.merges => self.key = Some(Key::Merge(at)),
            None => {
                let Some(name) = node.name else {
                    return Err(error_at(at, "a list or a mapping cannot be a key"));
                };
                if let Some(first) = self.lines.insert(name.clone(), at.line) {
                    let what = format!("duplicate key `{name}`, first in line {first}");
                    return Err(error_at(at, &what));
                }
                self.key = Some(Key::Name(name));
            }
            Some(Key::Name(name)) => self.entries.push((name, node.value)),
            Some(Key::Merge(at)) => self.merge(node.value, at)?,
        }
        Ok(())
    }

    fn merge(&mut self, value: Value, at: Position) -> Result<(), YamlError> {
        let sources = match value {
            Value::List(items) => items,
            other => vec![other],
        };
        for source in sources {
            let Value::Map(entries) = source else {
                return Err(error_at(at, "only mappings can be merged by `<<`"));
            };
            self.merged.extend(entries);
        }
        Ok(())
    }

    fn finish(self) -> Vec<(String, Value)> {
        let mut entries = self.entries;
        let mut names: HashSet<String> = self.lines.into_keys().collect();
        for (name, value) in self.merged {
            if names.insert(name.clone()) {
                entries.push((name, value));
            }
        }
        entries
    }
}

fn error_at(at: Position, what: &str) -> YamlError {
    YamlError::At(at, what.to_owned())
}

fn expect_tag(tag: Option<&Tag>, suffix: &str, at: Position) -> Result<(), YamlError> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(suffix) => Err(error_at(
            at,
            &format!("unsupported tag `{}`", tag.original()),
        )),
        _ => Ok(()),
    }
}

/// Resolves a scalar with a tag; `None` if the tag does not fit.
fn resolve_tagged(tag: &Tag, text: &str) -> Option<Scalar> {
    let read = scalar::resolve(text);
    match (tag.core_suffix()?, &read) {
        ("str", _) => Some(Scalar::Text),
        ("null", Scalar::Value(Value::Null))
        | ("bool", Scalar::Value(Value::Bool(_)))
        | ("int", Scalar::Value(Value::Integer(_)) | Scalar::TooLarge)
        | ("float", Scalar::Value(Value::Float(_))) => Some(read),
        ("float", Scalar::Value(Value::Integer(integer))) => {
            let number = integer.as_str().parse().ok()?;
            Some(Scalar::Value(Value::Float(number)))
        }
        _ => None,
    }
}

/// The size of a value: the number of values in it plus their bytes of text.
fn value_size(value: &Value) -> usize {
    let mut size = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        size += 1;
        match value {
            Value::Text(text) => size += text.len(),
            Value::Integer(integer) => size += integer.as_str().len(),
            Value::List(items) => left.extend(items),
            Value::Map(entries) => {
                size += entries.iter().map(|(name, _)| name.len()).sum::<usize>();
                left.extend(entries.iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    size
}
