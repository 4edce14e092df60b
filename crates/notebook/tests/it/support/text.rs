//! Texts that are hard for a text view, and the many ways to encode them in JSON.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::SeededRandom;

/// Stands for a high surrogate, which no `String` can hold.
pub(crate) const HIGH: char = '\u{e000}';
/// Stands for a low surrogate.
pub(crate) const LOW: char = '\u{e001}';

/// The rest of lines that look like markers and fences, after the percent signs.
const TAILS: [&str; 23] = [
    " [code] cell:0",
    " [code]",
    " [markdown] cell:1",
    " [raw] id:x",
    " [raw] cell:2 id:a-b",
    " [code] cell:99999999999999999999999999",
    " [sql]",
    " [code] ",
    " [code] cell:",
    " Title",
    " Title [raw]",
    " [md]",
    " [markdown] Title",
    " [raw] cell:x",
    " tags=[\"x\"]",
    " {\"a\": 1}",
    " \t",
    "time",
    "",
    "--- end of outputs ---",
    "--- outputs of cell:1 (not part of the source) ---",
    "--- outputs of cell: ---",
    "--- end of outputs --- ",
];

/// A line that is a marker or a fence, or almost, with any number of percent signs.
fn marker_like() -> impl Strategy<Value = String> {
    (
        select(vec!["# ", "# ", "# ", "#", " # ", ""]),
        2..6usize,
        select(TAILS.to_vec()),
        select(vec!["", "", "", "\r", "\r\r"]),
    )
        .prop_map(|(start, depth, tail, end)| format!("{start}{}{tail}{end}", "%".repeat(depth)))
}

fn character() -> impl Strategy<Value = char> {
    prop_oneof![
        6 => select("ab =(){}[],:%#'".chars().collect::<Vec<_>>()),
        2 => select("\"\\/\t\r".chars().collect::<Vec<_>>()),
        1 => select("\0\u{8}\u{b}\u{c}\u{1b}\u{7f}".chars().collect::<Vec<_>>()),
        2 => select("é漢𝄞😀🦀\u{10000}\u{10ffff}\u{85}\u{2028}\u{feff}\u{fffd}\u{301}".chars().collect::<Vec<_>>()),
        1 => select(vec![HIGH, LOW]),
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => vec(character(), 0..8).prop_map(String::from_iter),
        2 => marker_like(),
        1 => Just(String::new()),
        1 => select(vec!["import os", "x = 1", "%%time", "!ls", "# Title"]).prop_map(str::to_owned),
    ]
}

/// The text of a cell. May contain [`HIGH`] and [`LOW`].
pub(crate) fn source() -> impl Strategy<Value = String> {
    (
        vec((line(), select(vec!["\n", "\n", "\n", "\n", "\r\n"])), 0..5),
        line(),
    )
        .prop_map(|(lines, last)| {
            let mut text: String = lines.into_iter().flat_map(|(a, b)| [a, b.into()]).collect();
            text.push_str(&last);
            text
        })
}

/// The text of a cell as typed: lone surrogates cannot be typed.
pub(crate) fn typed() -> impl Strategy<Value = String> {
    source().prop_map(|text| text.replace([HIGH, LOW], "\u{fffd}"))
}

/// Texts that are a view, or almost.
pub(crate) fn view() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        3 => marker_like(),
        1 => select(vec!["# %%", "# %% [code]", "# %% [raw] cell:0", "# %% [markdown] cell:1 id:b", "# ---"])
            .prop_map(str::to_owned),
        1 => line(),
        1 => any::<String>(),
    ];
    (vec(line, 0..12), select(vec!["\n", "\r\n"]), any::<bool>()).prop_map(
        |(lines, newline, bom)| {
            let bom = if bom { "\u{feff}" } else { "" };
            format!("{bom}{}", lines.join(newline)).replace([HIGH, LOW], "\u{fffd}")
        },
    )
}

/// How text is encoded in JSON.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spelling {
    /// As Jupyter does: only required escapes.
    Plain,
    /// As Python does by default: ASCII only.
    Ascii,
    /// Every possible encoding, at random.
    Wild(u64),
}

/// The contents of a JSON string.
pub(crate) fn spell(text: &str, spelling: Spelling) -> String {
    let mut random = match spelling {
        Spelling::Wild(seed) => Some(SeededRandom::new(seed)),
        _ => None,
    };
    let mut wild = |chances: usize| random.as_mut().is_some_and(|random| random.one_in(chances));
    let mut out = String::new();
    for character in text.chars() {
        let short = match character {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            '/' if wild(2) => Some("\\/"),
            _ => None,
        };
        let halves = match character {
            HIGH => Some(0xd83d),
            LOW => Some(0xde00),
            _ => None,
        };
        if let Some(half) = halves {
            out.push_str(&unit(half, wild(2)));
        } else if let Some(short) = short.filter(|_| !wild(4)) {
            out.push_str(short);
        } else {
            let ascii = matches!(spelling, Spelling::Ascii) && !character.is_ascii();
            let must = short.is_some() && character != '/';
            if must || character < ' ' || ascii || wild(5) {
                let upper = wild(2);
                for &mut half in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&unit(half, upper));
                }
            } else {
                out.push(character);
            }
        }
    }
    out
}

fn unit(unit: u16, upper: bool) -> String {
    if upper {
        format!("\\u{unit:04X}")
    } else {
        format!("\\u{unit:04x}")
    }
}
