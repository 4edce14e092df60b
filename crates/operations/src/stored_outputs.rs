//! The outputs in a notebook as the text that `run` shows for them: the same events, through the same capture.

use cellwright_notebook::outputs::{StoredData, StoredOutput};
use cellwright_output::{
    Bundle, Capture, Captured, Data, ElisionLine, Event, Limits, Sink, Stream, Traceback,
};
use serde_json::{Map, Value};

/// Size in bytes of the text of one cell: a reader of a notebook wants to see many cells.
const CELL_TEXT_LIMIT: usize = 4000;

/// Bytes of the text from its beginning. The rest is from its end, where exceptions are.
const HEAD_LIMIT: usize = 1600;

/// How much of the outputs is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputExtent {
    /// The head and the tail of each cell.
    #[default]
    Bounded,
    /// Everything.
    Full,
}

/// The outputs of a cell as text.
#[derive(Debug, Default)]
pub(crate) struct StoredText {
    pub(crate) text: String,
    /// Whether a part is missing.
    pub(crate) is_truncated: bool,
}

/// Renders the outputs of a cell.
pub(crate) fn render(outputs: Vec<StoredOutput>, extent: OutputExtent) -> StoredText {
    let limits = match extent {
        OutputExtent::Full => Limits::whole_text(),
        OutputExtent::Bounded => Limits {
            inline_bytes: CELL_TEXT_LIMIT,
            head_bytes: HEAD_LIMIT,
            ..Limits::default()
        },
    };
    let mut capture = Capture::new(limits, None);
    for output in outputs {
        push(&mut capture, output);
    }
    let mut captured = capture.finish();
    keep_exception_line(&mut captured);
    StoredText {
        is_truncated: captured.truncation.is_some(),
        text: captured.text,
    }
}

fn push(capture: &mut Capture, output: StoredOutput) {
    match output {
        StoredOutput::Stream { name, text } => {
            let stream = match name.as_str() {
                "stderr" => Stream::Stderr,
                _ => Stream::Stdout,
            };
            let bytes = text.as_bytes();
            capture.push(Event::Text { stream, bytes });
        }
        StoredOutput::Display { data } => {
            let data = data.into_iter();
            let bundle = Bundle {
                data: data.map(|(mime, data)| (mime, decode(data))).collect(),
                metadata: Map::new(),
            };
            capture.push(Event::Display {
                bundle,
                id: None,
                result: None,
            });
        }
        StoredOutput::Error {
            name,
            value,
            traceback,
        } => capture.push(Event::Raised(Traceback {
            name,
            value,
            lines: traceback,
        })),
    }
}

fn decode(data: StoredData) -> Data {
    match data {
        StoredData::Text(text) => Data::Text(text),
        // Values that Python writes and JSON does not have (`NaN`) are text.
        StoredData::Json(json) => {
            Data::Json(serde_json::from_str(&json).unwrap_or(Value::String(json)))
        }
    }
}

/// Inserts the name and the message of the exception after the gap, if the gap contains them: the end of a long
/// message is not enough to know what happened.
fn keep_exception_line(captured: &mut Captured) {
    /// Characters of a message.
    const MESSAGE_LIMIT: usize = 200;
    let (Some(truncation), Some(error)) = (&captured.truncation, &captured.error) else {
        return;
    };
    let message = error.value.lines().next().unwrap_or_default();
    let message: String = message.chars().take(MESSAGE_LIMIT).collect();
    let line = format!("{}: {message}", error.name);
    let line = line.trim_end_matches([' ', ':']);
    if captured.text.contains(line) {
        return;
    }
    let gap = ElisionLine(truncation.elided).to_string();
    if let Some(start) = captured.text.find(&gap) {
        captured
            .text
            .insert_str(start + gap.len(), &format!("{line}\n{gap}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(traceback: &[String], value: &str) -> StoredOutput {
        StoredOutput::Error {
            name: "KeyError".to_owned(),
            value: value.to_owned(),
            traceback: traceback.to_vec(),
        }
    }

    #[test]
    fn the_exception_is_shown_however_long_the_traceback_or_its_message_is() {
        let frame = |number: u32| format!("  File \"deep.py\", line {number}, in call\n    call()");
        let mut long: Vec<String> = (0..500).map(frame).collect();
        long.insert(0, "Traceback (most recent call last)".to_owned());
        long.push("\u{1b}[31mKeyError\u{1b}[39m: 'b'".to_owned());
        let shown = render(vec![error(&long, "'b'")], OutputExtent::Bounded);
        assert!(
            shown
                .text
                .starts_with("Traceback (most recent call last)\n")
        );
        assert!(shown.text.ends_with("\nKeyError: 'b'\n"), "{}", shown.text);
        assert!(shown.is_truncated && shown.text.len() <= CELL_TEXT_LIMIT);

        let message = format!("no key\n{}", "one of the keys\n".repeat(1000));
        let lines = [long[0].clone(), format!("KeyError: {message}")];
        let mut with_long_message: Vec<String> = (0..100).map(frame).collect();
        with_long_message.extend(lines);
        let shown = render(
            vec![error(&with_long_message, &message)],
            OutputExtent::Bounded,
        );
        assert!(
            shown.text.contains("\nKeyError: no key\n"),
            "{}",
            shown.text
        );
    }

    #[test]
    fn everything_is_shown_on_request() {
        let text: Vec<String> = (0..5000).map(|line| format!("line {line}\n")).collect();
        let text = text.concat();
        let wide = "w".repeat(100_000);
        let output = |text: &str| StoredOutput::Stream {
            name: "stdout".to_owned(),
            text: text.to_owned(),
        };
        let outputs = vec![output(&text), output(&wide)];
        let shown = render(outputs.clone(), OutputExtent::Full);
        assert_eq!(shown.text, format!("{text}{wide}"));
        assert!(!shown.is_truncated);
        assert!(render(outputs, OutputExtent::Bounded).is_truncated);
    }
}
