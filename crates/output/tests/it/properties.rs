//! What must hold whatever comes, and however it is cut when it comes.

use cellwright_output::{
    Artifacts, Bundle, Capture, Captured, Event, Limits, Live, Retention, Sink, Stream, Style,
    Target, Traceback, clean,
};
use proptest::prelude::*;

use crate::terminal::{Move, moves};

/// An event that can be kept.
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

/// Bytes as programs write them, and worse.
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

/// Small ones, so that every one is reached.
fn limits() -> Limits {
    Limits {
        inline_bytes: 400,
        head_bytes: 100,
        column_bytes: 30,
        line_characters: 48,
        rows: 4,
        stream_bytes: 300,
        display_bytes: 200,
        outputs: 6,
        ..Limits::default()
    }
}

/// Pushes a step; text in pieces of such lengths.
fn push(capture: &mut Capture, step: &Step, pieces: &[usize]) {
    match step {
        Step::Text(stream, bytes) => {
            for piece in cut(bytes, pieces) {
                capture.push(Event::Text {
                    stream: *stream,
                    bytes: piece,
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

fn cut<'a>(mut bytes: &'a [u8], pieces: &'a [usize]) -> Vec<&'a [u8]> {
    let mut cut = Vec::new();
    for &length in pieces.iter().cycle().take(10_000) {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at(length.min(bytes.len()));
        cut.push(piece);
        bytes = rest;
    }
    cut.push(bytes);
    cut
}

fn run(steps: &[Step], limits: Limits, artifacts: Option<Artifacts>, pieces: &[usize]) -> Captured {
    let mut capture = Capture::new(limits, artifacts);
    for step in steps {
        push(&mut capture, step, pieces);
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
    fn chunks_do_not_matter(
        steps in prop::collection::vec(step(), 0..12),
        pieces in prop::collection::vec(1..40_usize, 1..5),
        small in any::<bool>(),
    ) {
        let limits = if small { limits() } else { Limits::default() };
        let whole = run(&steps, limits.clone(), None, &[usize::MAX]);
        let cut = run(&steps, limits, None, &pieces);
        prop_assert_eq!(&whole.text, &cut.text);
        prop_assert_eq!(&whole.cut, &cut.cut);
        prop_assert_eq!(whole.outputs.to_values(), cut.outputs.to_values());
        prop_assert_eq!(whole.notices, cut.notices);
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
        if let Some(cut) = captured.cut {
            let parts = cut.shown.bytes + cut.elided.bytes + cut.columns.bytes;
            prop_assert_eq!(cut.total.bytes, parts);
            prop_assert_eq!(cut.total.lines, cut.shown.lines + cut.elided.lines);
            prop_assert!(cut.shown.bytes <= captured.text.len() as u64);
        }
    }

    #[test]
    fn without_cuts_text_is_the_clean_text(bytes in bytes(), stream in stream()) {
        let limits = Limits {
            inline_bytes: 1 << 20,
            column_bytes: 0,
            line_characters: 10_000,
            ..Limits::default()
        };
        let captured = run(&[Step::Text(stream, bytes.clone())], limits, None, &[7]);
        prop_assert!(captured.cut.is_none());
        prop_assert_eq!(captured.text, clean::plain(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn plain_text_is_shown_from_both_ends(
        lines in prop::collection::vec("[a-zé日]{0,40}", 0..120),
        pieces in prop::collection::vec(1..1000_usize, 1..5),
    ) {
        let text = lines.join("\n");
        let limits = Limits { column_bytes: 200, line_characters: 200, ..limits() };
        let steps = [Step::Text(Stream::Stdout, text.clone().into_bytes())];
        let captured = run(&steps, limits, None, &pieces);
        match captured.cut {
            None => prop_assert_eq!(captured.text, text),
            Some(cut) => {
                let note = format!("[… {} line", cut.elided.lines);
                let (head, rest) = captured.text.split_once(&note).unwrap();
                let (_, tail) = rest.split_once("elided …]\n").unwrap();
                // A newline ends what is half a line, and may stand where there was one anyway.
                let ours = (head.len() + tail.len()) as u64 - cut.shown.bytes;
                let head = &head[..head.len() - usize::try_from(ours).unwrap()];
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(cut.total.bytes, text.len() as u64);
                let elided = &text[head.len()..text.len() - tail.len()];
                prop_assert_eq!(cut.elided.bytes, elided.len() as u64);
                prop_assert_eq!(cut.elided.lines, elided.matches('\n').count() as u64);
                // Of what there was room for, at most a line at each end is not used.
                prop_assert!(head.len() + tail.len() + 2 * 121 + 80 >= 400);
            }
        }
    }

    #[test]
    fn the_artifact_is_what_came(
        chunks in prop::collection::vec((stream(), bytes()), 1..8),
        pieces in prop::collection::vec(1..4000_usize, 1..5),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(dir.path(), Retention::default());
        let steps: Vec<Step> = chunks
            .iter()
            .map(|(stream, bytes)| Step::Text(*stream, bytes.clone()))
            .collect();
        let raw: Vec<u8> = chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        let captured = run(&steps, limits(), Some(artifacts.clone()), &pieces);
        if let Some(id) = captured.cut.and_then(|cut| cut.artifact) {
            let kept = std::fs::read(artifacts.open(id).unwrap().path()).unwrap();
            prop_assert_eq!(kept, raw);
        }
        // And the notebook can have all of it.
        let all = Limits { stream_bytes: 1 << 20, ..limits() };
        let expected = run(&steps, all, None, &[usize::MAX]).outputs.to_values();
        let mut whole = Vec::new();
        captured.outputs.write(&mut whole, &Style::compact(), 0).unwrap();
        let whole: Vec<serde_json::Value> = serde_json::from_slice(&whole).unwrap();
        prop_assert_eq!(whole, expected);
    }

    #[test]
    fn live_text_is_harmless_and_chunks_do_not_matter(
        bytes in bytes(),
        pieces in prop::collection::vec(1..40_usize, 1..5),
    ) {
        for target in [Target::Colours, Target::Terminal, Target::Pipe] {
            let show = |pieces: &[usize]| {
                let mut live = Live::new(target);
                let mut out = String::new();
                for piece in cut(&bytes, pieces) {
                    live.push(piece, &mut out);
                }
                live.finish(&mut out);
                out
            };
            let whole = show(&[usize::MAX]);
            prop_assert_eq!(&whole, &show(&pieces));
            let mut rest = whole.as_str();
            while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
                prop_assert!(target != Target::Pipe, "{:?}", whole);
                rest = &rest[at..];
                if let Some(after) = rest.strip_prefix("\x1b[") {
                    let end = after.find(|c: char| c != ';' && !c.is_ascii_digit()).unwrap();
                    let letter = after.as_bytes()[end];
                    prop_assert!(letter == b'K' || letter == b'm' && target == Target::Colours);
                    rest = &after[end + 1..];
                } else {
                    prop_assert!(rest.starts_with(['\r', '\u{8}']), "{:?}", whole);
                    rest = &rest[1..];
                }
            }
        }
    }
}
