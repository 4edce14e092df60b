//! Generates notebooks as JSON text, from tidy to barely valid.

use std::fmt;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::relayout::{Layout, Order, Spacing, relayout};
use crate::support::text::{Spelling, source, spell};
use crate::support::{SeededRandom, lossy};

/// The bytes of a notebook.
#[derive(Clone)]
pub(crate) struct Generated(pub(crate) Vec<u8>);

impl fmt::Debug for Generated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lossy(&self.0))
    }
}

/// How `source` is written.
#[derive(Clone, Debug)]
enum Shape {
    Missing,
    Text,
    Lines,
    /// Split anywhere, with empty elements in between.
    Odd(u64),
}

#[derive(Clone, Debug)]
struct Cell {
    kind: &'static str,
    text: String,
    shape: Shape,
    spelling: Spelling,
    id: Option<&'static str>,
    metadata: &'static str,
    count: Option<&'static str>,
    outputs: Option<&'static str>,
    attachments: bool,
    extra: Option<&'static str>,
    /// An earlier `source` that every reader must ignore.
    shadowed: bool,
}

const IDS: [&str; 10] = [
    r#""a""#,
    r#""b""#,
    r#""b""#,
    r#""5c0ffee5""#,
    r#""odd id""#,
    r#""""#,
    r#""\u00e9\ud83d""#,
    r#""line\nbreak""#,
    "5",
    "null",
];

const METADATA: [&str; 8] = [
    "{}",
    "{}",
    "{}",
    r#"{"tags":["a","b"],"collapsed":true}"#,
    r#"{"n":NaN,"i":Infinity,"m":-Infinity,"big":1e400,"int":123456789012345678901234567890}"#,
    r#"{"f":1.0,"e":1E5,"z":-0,"s":"\/\u00e9","d":1,"d":2}"#,
    r#"{"source":"not this","cell_type":"nor this","deep":[[[[{"a":[]}]]]]}"#,
    r#"{"":null,"trusted":false}"#,
];

const OUTPUTS: [&str; 6] = [
    "[]",
    "[]",
    r#"[{"output_type":"stream","name":"stdout","text":["1\n","2"]}]"#,
    r#"[{"output_type":"display_data","data":{"image/png":"iVBORw0KGgo=","text/plain":"<fig>"},"metadata":{}}]"#,
    r#"[{"output_type":"execute_result","execution_count":1e400,"data":{"application/json":[NaN,1.0]},"metadata":{}}]"#,
    r##"[{"output_type":"error","ename":"E","evalue":"\ud800","traceback":["# %% [code] cell:0"]}]"##,
];

const EXTRA: [&str; 5] = [
    r#""zzz":{"k":[1.0]}"#,
    r#""aaa":"\"source\": []""#,
    r#""sources":["no"]"#,
    r#""sourc\u0065s":null"#,
    r#""Cell_type":"code""#,
];

fn cell() -> impl Strategy<Value = Cell> {
    let spelling = prop_oneof![
        2 => Just(Spelling::Plain),
        1 => Just(Spelling::Ascii),
        2 => any::<u64>().prop_map(Spelling::Wild),
    ];
    let shape = prop_oneof![
        1 => Just(Shape::Missing),
        3 => Just(Shape::Text),
        6 => Just(Shape::Lines),
        3 => any::<u64>().prop_map(Shape::Odd),
    ];
    let parts = (
        select(vec!["code", "code", "markdown", "raw"]),
        source(),
        shape,
        spelling,
        option::weighted(0.7, select(IDS.to_vec())),
        select(METADATA.to_vec()),
    );
    let more = (
        option::weighted(0.9, select(vec!["null", "1", "1.0"])),
        option::weighted(0.9, select(OUTPUTS.to_vec())),
        option::weighted(0.2, select(EXTRA.to_vec())),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.05),
    );
    (parts, more).prop_map(|((kind, text, shape, spelling, id, metadata), more)| {
        let (count, outputs, extra, attachments, shadowed, irregular) = more;
        // Outputs on Markdown cells are invalid, so some cells have them.
        let has_outputs = (kind == "code") != irregular;
        Cell {
            kind,
            text,
            shape,
            spelling,
            id,
            metadata,
            count: count.filter(|_| has_outputs),
            outputs: outputs.filter(|_| has_outputs),
            attachments: attachments && (kind != "code" || irregular),
            extra,
            shadowed,
        }
    })
}

impl Cell {
    fn json(&self) -> String {
        let mut members = vec![format!(r#""cell_type":"{}""#, self.kind)];
        if self.shadowed {
            members.push(r#""source":["shadowed"]"#.to_owned());
        }
        let mut add = |name: &str, value: &str| members.push(format!(r#""{name}":{value}"#));
        if let Some(count) = self.count {
            add("execution_count", count);
        }
        if let Some(id) = self.id {
            add("id", id);
        }
        add("metadata", self.metadata);
        if self.attachments {
            add("attachments", r#"{"a.png":{"image/png":"iVBORw0KGgo="}}"#);
        }
        if let Some(outputs) = self.outputs {
            add("outputs", outputs);
        }
        members.extend(self.extra.map(str::to_owned));
        if let Some(source) = self.source() {
            members.push(format!(r#""source":{source}"#));
        }
        format!("{{{}}}", members.join(","))
    }

    fn source(&self) -> Option<String> {
        let quoted = |text: &str| format!("\"{}\"", spell(text, self.spelling));
        let elements: Vec<String> = match self.shape {
            Shape::Missing => return None,
            Shape::Text => return Some(quoted(&self.text)),
            Shape::Lines => self.text.split_inclusive('\n').map(quoted).collect(),
            Shape::Odd(seed) => {
                let mut random = SeededRandom::new(seed);
                let mut elements = vec![String::new()];
                for character in self.text.chars() {
                    while random.one_in(4) {
                        elements.push(String::new());
                    }
                    elements.last_mut().unwrap().push(character);
                }
                elements.iter().map(|element| quoted(element)).collect()
            }
        };
        Some(format!("[{}]", elements.join(",")))
    }
}

pub(crate) fn layout() -> impl Strategy<Value = Layout> {
    let indented = |unit, newline| Spacing::Indented { unit, newline };
    let spacing = prop_oneof![
        1 => Just(Spacing::Inline { comma: ",", colon: ":" }),
        1 => Just(Spacing::Inline { comma: ", ", colon: ": " }),
        3 => Just(indented(" ", "\n")),
        1 => Just(indented("", "\n")),
        1 => Just(indented("  ", "\n")),
        1 => Just(indented("    ", "\n")),
        1 => Just(indented("\t", "\n")),
        1 => Just(indented(" ", "\r\n")),
        1 => any::<u64>().prop_map(Spacing::Ragged),
    ];
    let order = prop_oneof![
        2 => Just(Order::AsIs),
        1 => Just(Order::Sorted),
        1 => any::<u64>().prop_map(Order::Shuffled),
    ];
    let end = select(vec!["", "\n", "\r\n", "\n\n"]);
    (spacing, order, prop::bool::weighted(0.1), end).prop_map(|(spacing, order, bom, end)| Layout {
        spacing,
        order,
        bom,
        end,
    })
}

/// Unknown top-level members. The first has colons where a careless parser would look for one.
const TOP: [&str; 4] = [
    r#""a\"::b":1"#,
    r#""cell":[{"cell_type":"code"}]"#,
    r#""\u0063ellx":[]"#,
    r#""worksheets":[]"#,
];

/// A notebook in nbformat 4 with at most five cells.
pub(crate) fn notebook() -> impl Strategy<Value = Generated> {
    notebook_of(vec(cell(), 0..6).boxed())
}

/// A notebook with at least one cell.
pub(crate) fn notebook_with_cells() -> impl Strategy<Value = Generated> {
    notebook_of(vec(cell(), 1..6).boxed())
}

fn notebook_of(cells: BoxedStrategy<Vec<Cell>>) -> impl Strategy<Value = Generated> {
    let minor = option::weighted(0.95, select(vec!["0", "1", "2", "3", "4", "5", "5", "6"]));
    (
        cells,
        layout(),
        minor,
        select(vec!["4", "4", "4", "4.0"]),
        select(METADATA.to_vec()),
        option::weighted(0.2, select(TOP.to_vec())),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(cells, layout, minor, major, metadata, extra, shadowed)| {
            let cells: Vec<String> = cells.iter().map(Cell::json).collect();
            let mut members = Vec::new();
            members.extend(extra.map(str::to_owned));
            if shadowed {
                members.push(r#""cells":[{"cell_type":"raw","source":"shadowed"}]"#.to_owned());
            }
            members.push(format!(r#""cells":[{}]"#, cells.join(",")));
            members.push(format!(r#""metadata":{metadata}"#));
            members.push(format!(r#""nbformat":{major}"#));
            members.extend(minor.map(|minor| format!(r#""nbformat_minor":{minor}"#)));
            Generated(relayout(&format!("{{{}}}", members.join(",")), &layout))
        })
}
