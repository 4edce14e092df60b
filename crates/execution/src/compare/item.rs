//! Outputs prepared for comparison: neighbouring streams are joined.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::bundle;
use super::difference::{Difference, Side, excerpt};
use super::rules::{Rule, Rules};
use super::text;

/// An output, or several joined stream outputs.
#[derive(Debug)]
pub(super) struct OutputItem<'a> {
    /// Index of the output; of joined outputs, the first one.
    output: usize,
    kind: ItemKind<'a>,
}

#[derive(Debug)]
enum ItemKind<'a> {
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
    /// An output type that nbformat does not define.
    Other(&'a Value),
}

/// Prepares the outputs of a cell for comparison.
pub(super) fn output_items<'a>(outputs: &'a [Value], rules: Rules) -> Vec<OutputItem<'a>> {
    let mut items: Vec<OutputItem<'a>> = Vec::new();
    // Positions of the streams since the last other output: further text of the same stream joins them.
    let mut streams: Vec<usize> = Vec::new();
    for (output, value) in outputs.iter().enumerate() {
        let kind = parse_kind(value);
        if let ItemKind::Stream { name, text } = kind {
            if name == "stderr" && rules.has(Rule::Stderr) {
                continue;
            }
            let earlier = streams
                .iter()
                .copied()
                .find(|&at| items[at].is_stream(name));
            if let Some(at) = earlier.filter(|_| rules.has(Rule::Streams)) {
                items[at].append(&text);
            } else {
                streams.push(items.len());
                let kind = ItemKind::Stream { name, text };
                items.push(OutputItem { output, kind });
            }
        } else {
            streams.clear();
            items.push(OutputItem { output, kind });
        }
    }
    if rules.has(Rule::Streams) {
        sort_adjacent_streams(&mut items);
    }
    for item in &mut items {
        item.render_text(rules);
    }
    items.retain(|item| !item.is_blank(rules));
    items
}

fn parse_kind(value: &Value) -> ItemKind<'_> {
    match value["output_type"].as_str() {
        Some("stream") => ItemKind::Stream {
            name: value["name"].as_str().unwrap_or("stdout"),
            text: join_text(&value["text"]),
        },
        Some("display_data" | "execute_result") => ItemKind::Bundle {
            output: value,
            data: value["data"].as_object(),
        },
        Some("error") => ItemKind::Error {
            name: value["ename"].as_str().unwrap_or_default(),
            message: value["evalue"].as_str().unwrap_or_default(),
            traceback: join_lines(&value["traceback"]),
        },
        _ => ItemKind::Other(value),
    }
}

/// Text that nbformat stores as a string or as a list of lines.
pub(super) fn join_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(pieces) => pieces.iter().filter_map(Value::as_str).collect(),
        _ => Cow::Borrowed(""),
    }
}

/// Joins lines that are stored without line ends.
fn join_lines(value: &Value) -> String {
    let lines = value.as_array().into_iter().flatten();
    lines
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Sorts neighbouring streams by name, so that their order does not matter.
fn sort_adjacent_streams(items: &mut [OutputItem<'_>]) {
    for streams in items.chunk_by_mut(|one, other| one.is_any_stream() && other.is_any_stream()) {
        // Each stream occurs once among its neighbours.
        streams.sort_by(|one, other| one.label().cmp(&other.label()));
    }
}

impl<'a> OutputItem<'a> {
    fn is_any_stream(&self) -> bool {
        matches!(self.kind, ItemKind::Stream { .. })
    }

    fn is_stream(&self, wanted: &str) -> bool {
        matches!(self.kind, ItemKind::Stream { name, .. } if name == wanted)
    }

    fn append(&mut self, more: &str) {
        if let ItemKind::Stream { text, .. } = &mut self.kind {
            text.to_mut().push_str(more);
        }
    }

    /// Renders the complete text of a stream as a terminal would show it.
    fn render_text(&mut self, rules: Rules) {
        if let ItemKind::Stream { text, .. } = &mut self.kind
            && let Cow::Owned(rendered) = text::render(text, rules)
        {
            *text = Cow::Owned(rendered);
        }
    }

    /// Whether there is nothing to compare.
    fn is_blank(&self, rules: Rules) -> bool {
        match &self.kind {
            ItemKind::Stream { text, .. } => {
                rules.has(Rule::Streams)
                    && (text.is_empty()
                        || rules.has(Rule::Whitespace) && text.trim_end().is_empty())
            }
            _ => false,
        }
    }

    /// Whether both have the same type, so that one may have replaced the other.
    pub(super) fn resembles(&self, other: &Self) -> bool {
        match (&self.kind, &other.kind) {
            (ItemKind::Stream { name, .. }, ItemKind::Stream { name: other, .. }) => name == other,
            (ItemKind::Bundle { .. }, ItemKind::Bundle { .. })
            | (ItemKind::Error { .. }, ItemKind::Error { .. })
            | (ItemKind::Other(_), ItemKind::Other(_)) => true,
            _ => false,
        }
    }

    /// Short name of the output.
    fn label(&self) -> Cow<'a, str> {
        match &self.kind {
            ItemKind::Stream { name, .. } => Cow::Borrowed(*name),
            ItemKind::Bundle { data, .. } => bundle::label(*data),
            ItemKind::Error { .. } => Cow::Borrowed("error"),
            ItemKind::Other(_) => Cow::Borrowed("output"),
        }
    }

    /// Excerpt of the output.
    fn excerpt(&self) -> String {
        match &self.kind {
            ItemKind::Stream { text, .. } => first_line(text),
            ItemKind::Bundle { data, .. } => data.map_or(String::new(), bundle::data_excerpt),
            ItemKind::Error { name, message, .. } => first_line(&format!("{name}: {message}")),
            ItemKind::Other(value) => excerpt(&value.to_string(), 0),
        }
    }

    fn side(&self, text: String) -> Side {
        Side {
            output: self.output,
            text: Some(text),
        }
    }

    pub(super) fn removed(&self) -> Difference {
        Difference {
            what: self.label().into_owned(),
            line: None,
            stored: Some(self.side(self.excerpt())),
            fresh: None,
        }
    }

    pub(super) fn added(&self) -> Difference {
        Difference {
            what: self.label().into_owned(),
            line: None,
            stored: None,
            fresh: Some(self.side(self.excerpt())),
        }
    }

    /// The differences between two items.
    pub(super) fn differences(&self, fresh: &Self, rules: Rules) -> Vec<Difference> {
        let indexes = (self.output, fresh.output);
        match (&self.kind, &fresh.kind) {
            (
                ItemKind::Stream { name, text },
                ItemKind::Stream {
                    name: other,
                    text: new,
                },
            ) if name == other => text::first_difference(name, text, new, indexes, rules)
                .into_iter()
                .collect(),
            (
                ItemKind::Bundle { output, data },
                ItemKind::Bundle {
                    output: other,
                    data: new,
                },
            ) => bundle::differences((*output, *data), (*other, *new), indexes, rules),
            (
                ItemKind::Error {
                    name,
                    message,
                    traceback,
                },
                ItemKind::Error {
                    name: other,
                    message: new_message,
                    traceback: new_traceback,
                },
            ) => {
                let first =
                    text::first_difference("the name of the error", name, other, indexes, rules);
                let second = text::first_difference(
                    "the message of the error",
                    message,
                    new_message,
                    indexes,
                    rules,
                );
                let third = (!rules.has(Rule::Tracebacks))
                    .then(|| {
                        text::first_difference(
                            "the traceback",
                            traceback,
                            new_traceback,
                            indexes,
                            rules,
                        )
                    })
                    .flatten();
                first.into_iter().chain(second).chain(third).collect()
            }
            (ItemKind::Other(value), ItemKind::Other(new)) if value == new => Vec::new(),
            _ => vec![Difference {
                what: "output".to_owned(),
                line: None,
                stored: Some(self.side(format!("{}: {}", self.label(), self.excerpt()))),
                fresh: Some(fresh.side(format!("{}: {}", fresh.label(), fresh.excerpt()))),
            }],
        }
    }
}

pub(super) fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty());
    excerpt(line.unwrap_or_default(), 0)
}
