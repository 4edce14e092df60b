//! YAML read into values. The only place that knows the library.
//!
//! The library gives events and bounds how deeply they are nested. What is made of them is made here,
//! without recursion, and what aliases repeat is counted, so that a small file cannot become a large
//! value.

use std::collections::{HashMap, HashSet};
use std::fmt;

use cellwright_notebook::Position;
use cellwright_run::parameters::Value;
use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag, options};

use super::scalar::{self, Scalar};

/// The most that lists and mappings may be nested.
const DEEPEST: usize = 64;

/// How much may be copied because of anchors and aliases, in values and bytes of text.
const MOST_COPIED: usize = 4 << 20;

/// What stands in a text.
#[derive(Debug)]
pub(super) struct Document {
    /// Null if it is empty.
    pub(super) value: Value,
    /// What an older YAML would have taken for something else.
    pub(super) doubts: Vec<Doubt>,
}

/// A word that an older YAML takes for something else.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Doubt {
    /// Where it stands.
    pub(super) at: Position,
    /// The word.
    pub(super) word: String,
    /// What has to be written for what the older YAML means by it.
    pub(super) meant: String,
}

/// Why a text is not what we read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum YamlError {
    /// Something is wrong somewhere.
    At(Position, String),
    /// It is something else than a mapping.
    NoMapping,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(at, what) => write!(f, "{at}: {what}"),
            Self::NoMapping => f.write_str("the top level is not a mapping of names to values"),
        }
    }
}

/// Reads one document.
pub(super) fn read(text: &str) -> Result<Document, YamlError> {
    let options = options! {
        flow_nesting_limit: DEEPEST,
        block_nesting_limit: DEEPEST,
    };
    let mut builder = Builder::default();
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| {
            let what = error.info().replace('\n', " ");
            YamlError::At(position(error.marker()), what)
        })?;
        builder.take(event, position(&span.start))?;
    }
    Ok(Document {
        value: builder.root.unwrap_or(Value::Null),
        doubts: builder.doubts,
    })
}

/// Columns of the library count from 0.
fn position(marker: &Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

/// Puts values together from events.
#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Copyable>,
    copied: usize,
    root: Option<Value>,
    doubts: Vec<Doubt>,
}

/// A list or mapping that is not closed yet.
struct Open {
    anchor: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Value>),
    Map(Entries),
}

#[derive(Default)]
struct Entries {
    entries: Vec<(String, Value)>,
    lines: HashMap<String, usize>,
    /// Values that come in by `<<`, unless they are there already.
    merged: Vec<(String, Value)>,
    /// The key that waits for its value.
    key: Option<Key>,
}

enum Key {
    Name(String),
    Merge(Position),
}

/// A value that aliases repeat, and how much it is.
struct Copyable {
    value: Value,
    weight: usize,
}

/// A value, or a word that may be a key.
struct Node {
    value: Value,
    /// What it is called as a key; `None` for lists and mappings.
    name: Option<String>,
    /// Whether as a key it takes in another mapping.
    merges: bool,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), YamlError> {
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(wrong(at, "there is a second document"))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let node = self.scalar(&text, style, tag.as_deref(), at)?;
                if anchor > 0 {
                    self.remember(anchor, &node.value, at)?;
                }
                self.put(node, at)
            }
            Event::SequenceStart(_, anchor, tag) => {
                expect_tag(tag.as_deref(), "seq", at)?;
                self.begin(anchor, Kind::List(Vec::new()), at)
            }
            Event::MappingStart(_, anchor, tag) => {
                expect_tag(tag.as_deref(), "map", at)?;
                self.begin(anchor, Kind::Map(Entries::default()), at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(at),
            Event::Alias(anchor) => {
                let value = self.repeat(anchor, at)?;
                let name = match &value {
                    Value::Text(text) => Some(text.clone()),
                    _ => None,
                };
                let merges = false;
                self.put(
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

    fn begin(&mut self, anchor: usize, kind: Kind, at: Position) -> Result<(), YamlError> {
        if let Some(Open {
            kind: Kind::Map(Entries { key: None, .. }),
            ..
        }) = self.open.last()
        {
            return Err(wrong(at, "a list or a mapping cannot be a key"));
        }
        self.open.push(Open { anchor, kind });
        Ok(())
    }

    fn end(&mut self, at: Position) -> Result<(), YamlError> {
        let Some(Open { anchor, kind }) = self.open.pop() else {
            return Ok(());
        };
        let value = match kind {
            Kind::List(items) => Value::List(items),
            Kind::Map(map) => Value::Map(map.close()),
        };
        if anchor > 0 {
            self.remember(anchor, &value, at)?;
        }
        let node = Node {
            value,
            name: None,
            merges: false,
        };
        self.put(node, at)
    }

    /// Puts a whole value where it belongs.
    fn put(&mut self, node: Node, at: Position) -> Result<(), YamlError> {
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => self.root = Some(node.value),
            Some(Kind::List(items)) => items.push(node.value),
            Some(Kind::Map(map)) => map.put(node, at)?,
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
            Some(tag) => tagged(tag, text).ok_or_else(|| {
                wrong(
                    at,
                    &format!("`{text}` is nothing of the sort `{}`", tag.original()),
                )
            })?,
        };
        let value = match read {
            Scalar::Value(value) => value,
            Scalar::Text => Value::from(text),
            Scalar::TooLarge => return Err(wrong(at, "a number has too many digits")),
        };
        if tag.is_none()
            && is_plain
            && !self.waits_for_key()
            && let Some(meant) = scalar::older_meaning(text)
        {
            let word = text.to_owned();
            self.doubts.push(Doubt { at, word, meant });
        }
        Ok(Node {
            value,
            name: Some(text.to_owned()),
            merges: is_plain && tag.is_none() && text == "<<",
        })
    }

    fn waits_for_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(Open {
                kind: Kind::Map(Entries { key: None, .. }),
                ..
            })
        )
    }

    fn remember(&mut self, anchor: usize, value: &Value, at: Position) -> Result<(), YamlError> {
        let weight = weigh(value);
        self.count(weight, at)?;
        let value = value.clone();
        self.anchors.insert(anchor, Copyable { value, weight });
        Ok(())
    }

    fn repeat(&mut self, anchor: usize, at: Position) -> Result<Value, YamlError> {
        let Some(Copyable { value, weight }) = self.anchors.get(&anchor) else {
            return Err(wrong(at, "it repeats something that it is part of"));
        };
        let (value, weight) = (value.clone(), *weight);
        self.count(weight, at)?;
        if self.open.len() + value.height() > DEEPEST {
            return Err(wrong(at, "it is nested too deeply"));
        }
        Ok(value)
    }

    fn count(&mut self, weight: usize, at: Position) -> Result<(), YamlError> {
        self.copied += weight;
        if self.copied > MOST_COPIED {
            return Err(wrong(at, "aliases repeat too much"));
        }
        Ok(())
    }
}

impl Entries {
    fn put(&mut self, node: Node, at: Position) -> Result<(), YamlError> {
        match self.key.take() {
            None if node.merges => self.key = Some(Key::Merge(at)),
            None => {
                let Some(name) = node.name else {
                    return Err(wrong(at, "a list or a mapping cannot be a key"));
                };
                if let Some(first) = self.lines.insert(name.clone(), at.line) {
                    let what = format!("`{name}` is there twice, first in line {first}");
                    return Err(wrong(at, &what));
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
                return Err(wrong(at, "only mappings can be merged by `<<`"));
            };
            self.merged.extend(entries);
        }
        Ok(())
    }

    fn close(self) -> Vec<(String, Value)> {
        let mut entries = self.entries;
        let mut known: HashSet<String> = self.lines.into_keys().collect();
        for (name, value) in self.merged {
            if known.insert(name.clone()) {
                entries.push((name, value));
            }
        }
        entries
    }
}

fn wrong(at: Position, what: &str) -> YamlError {
    YamlError::At(at, what.to_owned())
}

fn expect_tag(tag: Option<&Tag>, suffix: &str, at: Position) -> Result<(), YamlError> {
    match tag {
        Some(tag) if tag.core_suffix() != Some(suffix) => Err(wrong(
            at,
            &format!(
                "`{}` is a sort of value that is not known here",
                tag.original()
            ),
        )),
        _ => Ok(()),
    }
}

/// What a word means with a tag before it; `None` if it cannot.
fn tagged(tag: &Tag, text: &str) -> Option<Scalar> {
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

/// How much a value is, in values and bytes of text.
fn weigh(value: &Value) -> usize {
    let mut weight = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        weight += 1;
        match value {
            Value::Text(text) => weight += text.len(),
            Value::Integer(integer) => weight += integer.as_str().len(),
            Value::List(items) => left.extend(items),
            Value::Map(entries) => {
                weight += entries.iter().map(|(name, _)| name.len()).sum::<usize>();
                left.extend(entries.iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    weight
}
