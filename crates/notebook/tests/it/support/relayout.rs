//! Writes JSON in many layouts. Tokens stay as they are.

use super::SeededRandom;
use super::json::{self, Member, Node, Value};

/// The white space between tokens.
#[derive(Clone, Debug)]
pub(crate) enum Spacing {
    /// All on one line.
    Inline {
        comma: &'static str,
        colon: &'static str,
    },
    /// One line per member.
    Indented {
        unit: &'static str,
        newline: &'static str,
    },
    /// Random white space.
    Ragged(u64),
}

/// The order of members.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    AsIs,
    Sorted,
    Shuffled(u64),
}

/// How a document is laid out.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) spacing: Spacing,
    pub(crate) order: Order,
    pub(crate) bom: bool,
    pub(crate) end: &'static str,
}

/// The document `json` in another layout.
pub(crate) fn relayout(json: &str, layout: &Layout) -> Vec<u8> {
    let node = json::read(json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}"));
    let seed = match layout.spacing {
        Spacing::Ragged(seed) => seed,
        _ => 0,
    };
    let order_seed = match layout.order {
        Order::Shuffled(seed) => seed,
        _ => 0,
    };
    let mut writer = Writer {
        json,
        layout,
        out: String::new(),
        depth: 0,
        space: SeededRandom::new(seed),
        order: SeededRandom::new(order_seed),
    };
    if layout.bom {
        writer.out.push('\u{feff}');
    }
    writer.node(&node);
    writer.out.push_str(layout.end);
    writer.out.into_bytes()
}

struct Writer<'w> {
    json: &'w str,
    layout: &'w Layout,
    out: String,
    depth: usize,
    space: SeededRandom,
    order: SeededRandom,
}

impl Writer<'_> {
    fn node(&mut self, node: &Node) {
        match &node.value {
            Value::Object(members) => {
                let mut members: Vec<&Member> = members.iter().collect();
                match self.layout.order {
                    Order::AsIs => {}
                    Order::Sorted => members.sort_by(|a, b| a.name.cmp(&b.name)),
                    Order::Shuffled(_) => self.order.shuffle(&mut members),
                }
                self.list('{', '}', members.len(), |writer, index| {
                    let member = members[index];
                    writer.token(member.key.clone());
                    writer.colon();
                    writer.node(&member.node);
                });
            }
            Value::Array(elements) => {
                self.list('[', ']', elements.len(), |writer, index| {
                    writer.node(&elements[index]);
                });
            }
            _ => self.token(node.span.clone()),
        }
    }

    fn list(&mut self, open: char, close: char, count: usize, each: impl Fn(&mut Self, usize)) {
        self.out.push(open);
        self.depth += 1;
        for index in 0..count {
            if index > 0 {
                self.comma();
            }
            self.new_line();
            each(self, index);
        }
        self.depth -= 1;
        if count > 0 || matches!(self.layout.spacing, Spacing::Ragged(_)) {
            self.new_line();
        }
        self.out.push(close);
    }

    fn token(&mut self, span: std::ops::Range<usize>) {
        self.out.push_str(&self.json[span]);
    }

    fn new_line(&mut self) {
        match self.layout.spacing {
            Spacing::Inline { .. } => {}
            Spacing::Indented { unit, newline } => {
                self.out.push_str(newline);
                self.out.push_str(&unit.repeat(self.depth));
            }
            Spacing::Ragged(_) => self.ragged(),
        }
    }

    fn comma(&mut self) {
        match self.layout.spacing {
            Spacing::Inline { comma, .. } => self.out.push_str(comma),
            Spacing::Indented { .. } => self.out.push(','),
            Spacing::Ragged(_) => {
                self.ragged();
                self.out.push(',');
            }
        }
    }

    fn colon(&mut self) {
        match self.layout.spacing {
            Spacing::Inline { colon, .. } => self.out.push_str(colon),
            Spacing::Indented { .. } => self.out.push_str(": "),
            Spacing::Ragged(_) => {
                self.ragged();
                self.out.push(':');
                self.ragged();
            }
        }
    }

    fn ragged(&mut self) {
        let spaces = ["", "", "", " ", "\n", "\n  ", "\t", "\r\n", "\r", " \n\n "];
        self.out.push_str(spaces[self.space.below(spaces.len())]);
    }
}
