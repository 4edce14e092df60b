//! Outputs as they are compared: streams joined, everything else as it is.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::bundle;
use super::difference::{Difference, Side, excerpt};
use super::rules::{Rule, Rules};
use super::text;

/// An output, or several streams that belong together.
#[derive(Debug)]
pub(super) struct Item<'a> {
    /// The index of the output; of several the first.
    output: usize,
    kind: Kind<'a>,
}

#[derive(Debug)]
enum Kind<'a> {
    Stream {
        name: &'a str,
        text: Cow<'a, str>,
    },
    Bundle {
        output: &'a Value,
        data: Option<&'a Map<String, Value>>,
    },
    Error {
        name: &'a str,
        message: &'a str,
        traceback: String,
    },
    /// What nbformat does not know.
    Other(&'a Value),
}

/// The outputs of a cell, as they are compared.
pub(super) fn items<'a>(outputs: &'a [Value], rules: Rules) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = Vec::new();
    // Where streams of the current stretch are, so that others join them.
    let mut stretch: Vec<usize> = Vec::new();
    for (output, value) in outputs.iter().enumerate() {
        let kind = read(value);
        if let Kind::Stream { name, text } = kind {
            if name == "stderr" && rules.has(Rule::Stderr) {
                continue;
            }
            let earlier = stretch
                .iter()
                .copied()
                .find(|&at| items[at].is_stream(name));
            if let Some(at) = earlier.filter(|_| rules.has(Rule::Streams)) {
                items[at].append(&text);
            } else {
                stretch.push(items.len());
                let kind = Kind::Stream { name, text };
                items.push(Item { output, kind });
            }
        } else {
            stretch.clear();
            items.push(Item { output, kind });
        }
    }
    if rules.has(Rule::Streams) {
        sort_stretches(&mut items);
    }
    for item in &mut items {
        item.settle(rules);
    }
    items.retain(|item| !item.is_blank(rules));
    items
}

fn read(value: &Value) -> Kind<'_> {
    match value["output_type"].as_str() {
        Some("stream") => Kind::Stream {
            name: value["name"].as_str().unwrap_or("stdout"),
            text: joined(&value["text"]),
        },
        Some("display_data" | "execute_result") => Kind::Bundle {
            output: value,
            data: value["data"].as_object(),
        },
        Some("error") => Kind::Error {
            name: value["ename"].as_str().unwrap_or_default(),
            message: value["evalue"].as_str().unwrap_or_default(),
            traceback: lines(&value["traceback"]),
        },
        _ => Kind::Other(value),
    }
}

/// Text that nbformat keeps as a string or as a list of lines.
pub(super) fn joined(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(pieces) => pieces.iter().filter_map(Value::as_str).collect(),
        _ => Cow::Borrowed(""),
    }
}

/// Lines that are kept without their ends.
fn lines(value: &Value) -> String {
    let lines = value.as_array().into_iter().flatten();
    lines
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Puts neighbouring streams in the order of their names, so that it does not matter which came first.
fn sort_stretches(items: &mut [Item<'_>]) {
    for stretch in items.chunk_by_mut(|one, other| one.is_any_stream() && other.is_any_stream()) {
        // Longer ones are not neighbouring streams: each name is there once.
        stretch.sort_by(|one, other| one.what().cmp(&other.what()));
    }
}

impl<'a> Item<'a> {
    fn is_any_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream { .. })
    }

    fn is_stream(&self, wanted: &str) -> bool {
        matches!(self.kind, Kind::Stream { name, .. } if name == wanted)
    }

    fn append(&mut self, more: &str) {
        if let Kind::Stream { text, .. } = &mut self.kind {
            text.to_mut().push_str(more);
        }
    }

    /// Lets text do what it does on a terminal, once it is whole.
    fn settle(&mut self, rules: Rules) {
        if let Kind::Stream { text, .. } = &mut self.kind
            && let Cow::Owned(settled) = text::seen(text, rules)
        {
            *text = Cow::Owned(settled);
        }
    }

    /// Whether nothing of it is left to compare.
    fn is_blank(&self, rules: Rules) -> bool {
        match &self.kind {
            Kind::Stream { text, .. } => {
                rules.has(Rule::Streams)
                    && (text.is_empty()
                        || rules.has(Rule::Whitespace) && text.trim_end().is_empty())
            }
            _ => false,
        }
    }

    /// Whether both are of a sort, so that one may have become the other.
    pub(super) fn resembles(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Stream { name, .. }, Kind::Stream { name: other, .. }) => name == other,
            (Kind::Bundle { .. }, Kind::Bundle { .. })
            | (Kind::Error { .. }, Kind::Error { .. })
            | (Kind::Other(_), Kind::Other(_)) => true,
            _ => false,
        }
    }

    /// What it is, in a word or two.
    fn what(&self) -> Cow<'a, str> {
        match &self.kind {
            Kind::Stream { name, .. } => Cow::Borrowed(*name),
            Kind::Bundle { data, .. } => bundle::title(*data),
            Kind::Error { .. } => Cow::Borrowed("error"),
            Kind::Other(_) => Cow::Borrowed("output"),
        }
    }

    /// A passage of it.
    fn passage(&self) -> String {
        match &self.kind {
            Kind::Stream { text, .. } => first_line(text),
            Kind::Bundle { data, .. } => data.map_or(String::new(), bundle::passage),
            Kind::Error { name, message, .. } => first_line(&format!("{name}: {message}")),
            Kind::Other(value) => excerpt(&value.to_string(), 0),
        }
    }

    fn side(&self, text: String) -> Side {
        Side {
            output: self.output,
            text: Some(text),
        }
    }

    pub(super) fn gone(&self) -> Difference {
        Difference {
            what: self.what().into_owned(),
            line: None,
            stored: Some(self.side(self.passage())),
            fresh: None,
        }
    }

    pub(super) fn new_one(&self) -> Difference {
        Difference {
            what: self.what().into_owned(),
            line: None,
            stored: None,
            fresh: Some(self.side(self.passage())),
        }
    }

    /// What differs between two items.
    pub(super) fn differences(&self, fresh: &Self, rules: Rules) -> Vec<Difference> {
        let places = (self.output, fresh.output);
        match (&self.kind, &fresh.kind) {
            (
                Kind::Stream { name, text },
                Kind::Stream {
                    name: other,
                    text: now,
                },
            ) if name == other => text::difference(name, text, now, places, rules)
                .into_iter()
                .collect(),
            (
                Kind::Bundle { output, data },
                Kind::Bundle {
                    output: other,
                    data: now,
                },
            ) => bundle::differences((*output, *data), (*other, *now), places, rules),
            (
                Kind::Error {
                    name,
                    message,
                    traceback,
                },
                Kind::Error {
                    name: other,
                    message: said,
                    traceback: from,
                },
            ) => {
                let first = text::difference("the name of the error", name, other, places, rules);
                let second =
                    text::difference("the message of the error", message, said, places, rules);
                let third = (!rules.has(Rule::Tracebacks))
                    .then(|| text::difference("the traceback", traceback, from, places, rules))
                    .flatten();
                first.into_iter().chain(second).chain(third).collect()
            }
            (Kind::Other(value), Kind::Other(now)) if value == now => Vec::new(),
            _ => vec![Difference {
                what: "output".to_owned(),
                line: None,
                stored: Some(self.side(format!("{}: {}", self.what(), self.passage()))),
                fresh: Some(fresh.side(format!("{}: {}", fresh.what(), fresh.passage()))),
            }],
        }
    }
}

pub(super) fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    excerpt(line.unwrap_or_default(), 0)
}
