//! Properties that hold for all events, in any chunks.

use cellwright_output::{
    Artifacts, Bundle, Capture, Captured, Event, JsonStyle, Limits, LiveTarget, LiveText,
    Retention, Sink, Stream, Traceback, clean,
};
use proptest::prelude::*;

use crate::outputs::values;

use crate::terminal::{Move, moves};

/// An owned event.
#[derive(Clone, Debug)]
enum Step {
    Text(Stream, Vec<u8>),
    Display(String, Option<u8>),
    Update(String, u8),
    Clear(bool),
    Raised(String),
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)]
}

/// Bytes as programs write them, and malformed ones.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => moves().prop_map(|moves| moves.iter().map(Move::bytes).collect::<String>().into_bytes()),
        2 => "[a-zé日 \n]{0,80}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => "[a-z]{0,5}\x1b[\\[\\]P_^X0-9;mKA]{0,8}[a-z\x07]{0,5}".prop_map(String::into_bytes),
        1 => (0..4000_usize).prop_map(|length| vec![b'x'; length]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (stream(), bytes()).prop_map(|(stream, bytes)| Step::Text(stream, bytes)),
        2 => ("[a-zé\n\r]{0,60}", prop::option::of(0..3_u8)).prop_map(|(text, id)| Step::Display(text, id)),
        1 => ("[a-zé\n]{0,200}", 0..3_u8).prop_map(|(text, id)| Step::Update(text, id)),
        1 => any::<bool>().prop_map(Step::Clear),
        1 => "[a-z\n]{0,20}".prop_map(Step::Raised),
    ]
}

/// Small limits, so that each one is reached.
fn limits() -> Limits {
    Limits {
        inline_bytes: 400,
        head_bytes: 100,
        line_bytes: 30,
        line_characters: 48,
        cursor_rows: 4,
        stream_bytes: 300,
        display_bytes: 200,
        outputs: 6,
        ..Limits::default()
    }
}

/// Pushes a step, with its text in chunks of the given lengths.
fn push(capture: &mut Capture, step: &Step, lengths: &[usize]) {
    match step {
        Step::Text(stream, bytes) => {
            for chunk in split_chunks(bytes, lengths) {
                capture.push(Event::Text {
                    stream: *stream,
                    bytes: chunk,
                });
            }
        }
        Step::Display(text, id) => capture.push(Event::Display {
            bundle: Bundle::text("text/plain", text),
            id: id.map(|id| id.to_string()),
            result: None,
        }),
        Step::Update(text, id) => capture.push(Event::Update {
            bundle: Bundle::text("text/plain", text),
            id: id.to_string(),
        }),
        Step::Clear(wait) => capture.push(Event::Clear { wait: *wait }),
        Step::Raised(text) => capture.push(Event::Raised(Traceback {
            name: text.clone(),
            ..Traceback::default()
        })),
    }
}

fn split_chunks<'a>(mut bytes: &'a [u8], lengths: &'a [usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    for &length in lengths.iter().cycle().take(10_000) {
        if bytes.is_empty() {
            break;
        }
        let (chunk, rest) = bytes.split_at(length.min(bytes.len()));
        chunks.push(chunk);
        bytes = rest;
    }
    chunks.push(bytes);
    chunks
}

fn run(
    steps: &[Step],
    limits: Limits,
    artifacts: Option<Artifacts>,
    lengths: &[usize],
) -> Captured {
    let mut capture = Capture::new(limits, artifacts);
    for step in steps {
        push(&mut capture, step, lengths);
    }
    capture.finish()
}

fn check_clean(text: &str) {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.contains(harmful), "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn result_does_not_depend_on_chunks(
        steps in prop::collection::vec(step(), 0..12),
        lengths in prop::collection::vec(1..40_usize, 1..5),
        small in any::<bool>(),
    ) {
        let limits = if small { limits() } else { Limits::default() };
        let whole = run(&steps, limits.clone(), None, &[usize::MAX]);
        let chunked = run(&steps, limits, None, &lengths);
        prop_assert_eq!(&whole.text, &chunked.text);
        prop_assert_eq!(&whole.truncation, &chunked.truncation);
        prop_assert_eq!(values(&whole.outputs), values(&chunked.outputs));
        prop_assert_eq!(whole.notices, chunked.notices);
    }

    #[test]
    fn bounds_hold_and_counts_add_up(steps in prop::collection::vec(step(), 0..12)) {
        let limits = limits();
        let captured = run(&steps, limits.clone(), None, &[usize::MAX]);
        prop_assert!(captured.text.len() <= limits.inline_bytes, "{}", captured.text.len());
        check_clean(&captured.text);
        for line in captured.text.lines() {
            prop_assert!(line.len() <= 64, "{}", line);
        }
        prop_assert!(captured.outputs.len() <= limits.outputs + 16);
        if let Some(truncation) = captured.truncation {
            let parts = truncation.shown.bytes + truncation.elided.bytes + truncation.long_lines.bytes;
            prop_assert_eq!(truncation.total.bytes, parts);
            prop_assert_eq!(truncation.total.lines, truncation.shown.lines + truncation.elided.lines);
            prop_assert!(truncation.shown.bytes <= captured.text.len() as u64);
        }
    }

    #[test]
    fn untruncated_text_is_the_clean_text(bytes in bytes(), stream in stream()) {
        let limits = Limits {
            inline_bytes: 1 << 20,
            line_bytes: 0,
            line_characters: 10_000,
            ..Limits::default()
        };
        let captured = run(&[Step::Text(stream, bytes.clone())], limits, None, &[7]);
        prop_assert!(captured.truncation.is_none());
        prop_assert_eq!(captured.text, clean::plain(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn plain_text_is_shown_from_both_ends(
        lines in prop::collection::vec("[a-zé日]{0,40}", 0..120),
        lengths in prop::collection::vec(1..1000_usize, 1..5),
    ) {
        let text = lines.join("\n");
        let limits = Limits { line_bytes: 200, line_characters: 200, ..limits() };
        let steps = [Step::Text(Stream::Stdout, text.clone().into_bytes())];
        let captured = run(&steps, limits, None, &lengths);
        match captured.truncation {
            None => prop_assert_eq!(captured.text, text),
            Some(truncation) => {
                let note = format!("[… {} line", truncation.elided.lines);
                let (head, rest) = captured.text.split_once(&note).unwrap();
                let (_, tail) = rest.split_once("elided …]\n").unwrap();
                // The elision line adds a newline after a partial line.
                let added = (head.len() + tail.len()) as u64 - truncation.shown.bytes;
                let head = &head[..head.len() - usize::try_from(added).unwrap()];
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(truncation.total.bytes, text.len() as u64);
                let elided = &text[head.len()..text.len() - tail.len()];
                prop_assert_eq!(truncation.elided.bytes, elided.len() as u64);
                prop_assert_eq!(truncation.elided.lines, elided.matches('\n').count() as u64);
                // At most one line at each end is left unused.
                prop_assert!(head.len() + tail.len() + 2 * 121 + 80 >= 400);
            }
        }
    }

    #[test]
    fn artifact_holds_the_raw_bytes(
        chunks in prop::collection::vec((stream(), bytes()), 1..8),
        lengths in prop::collection::vec(1..4000_usize, 1..5),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(dir.path(), Retention::default());
        let steps: Vec<Step> = chunks
            .iter()
            .map(|(stream, bytes)| Step::Text(*stream, bytes.clone()))
            .collect();
        let raw: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let captured = run(&steps, limits(), Some(artifacts.clone()), &lengths);
        if let Some(id) = captured.truncation.and_then(|truncation| truncation.artifact) {
            let stored = std::fs::read(artifacts.open(id).unwrap().path()).unwrap();
            prop_assert_eq!(stored, raw);
        }
        // The notebook is complete.
        let all = Limits { stream_bytes: 1 << 20, ..limits() };
        let expected = values(&run(&steps, all, None, &[usize::MAX]).outputs);
        let mut whole = Vec::new();
        captured.outputs.write(&mut whole, &JsonStyle::compact(), 0).unwrap();
        let whole: Vec<serde_json::Value> = serde_json::from_slice(&whole).unwrap();
        prop_assert_eq!(whole, expected);
    }

    #[test]
    fn live_text_is_harmless_and_does_not_depend_on_chunks(
        bytes in bytes(),
        lengths in prop::collection::vec(1..40_usize, 1..5),
    ) {
        for target in [LiveTarget::ColourTerminal, LiveTarget::PlainTerminal, LiveTarget::Pipe] {
            let show = |lengths: &[usize]| {
                let mut live = LiveText::new(target);
                let mut out = String::new();
                for chunk in split_chunks(&bytes, lengths) {
                    live.push(chunk, &mut out);
                }
                live.finish(&mut out);
                out
            };
            let whole = show(&[usize::MAX]);
            prop_assert_eq!(&whole, &show(&lengths));
            let mut rest = whole.as_str();
            while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
                prop_assert!(target != LiveTarget::Pipe, "{:?}", whole);
                rest = &rest[at..];
                if let Some(after) = rest.strip_prefix("\x1b[") {
                    let end = after.find(|c: char| c != ';' && !c.is_ascii_digit()).unwrap();
                    let letter = after.as_bytes()[end];
                    if letter == b'A' {
                        // Within the rows of the text before it.
                        let before = &whole[..whole.len() - rest.len()];
                        let rows: usize = after[..end].parse().unwrap();
                        prop_assert!(rows <= before.matches('\n').count(), "{:?}", whole);
                    } else {
                        prop_assert!(letter == b'K' || letter == b'm' && target == LiveTarget::ColourTerminal);
                    }
                    rest = &after[end + 1..];
                } else {
                    prop_assert!(rest.starts_with(['\r', '\u{8}']), "{:?}", whole);
                    rest = &rest[1..];
                }
            }
        }
    }
}
