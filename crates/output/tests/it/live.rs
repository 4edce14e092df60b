//! Live text for terminals and pipes.

use cellwright_output::{LiveTarget, LiveText};

fn live_text(target: LiveTarget, chunks: &[&[u8]]) -> String {
    let mut live = LiveText::new(target);
    let mut out = String::new();
    for chunk in chunks {
        live.push(chunk, &mut out);
    }
    live.finish(&mut out);
    out
}

#[test]
fn terminal_gets_only_harmless_sequences() {
    let raw = b"\x1b]0;title\x07\x1b[31mred\x1b[0m\r\x1b[K\x1b[2Agreen\x1b[2J\x1b[6n\n";
    assert_eq!(
        live_text(LiveTarget::ColourTerminal, &[raw]),
        "\x1b[0;31mred\x1b[0m\r\x1b[0Kgreen\n"
    );
    assert_eq!(
        live_text(LiveTarget::PlainTerminal, &[raw]),
        "red\r\x1b[0Kgreen\n"
    );
}

#[test]
fn colours_end_with_the_cell() {
    assert_eq!(
        live_text(LiveTarget::ColourTerminal, &[b"\x1b[31mred"]),
        "\x1b[0;31mred\x1b[0m"
    );
}

#[test]
fn text_is_passed_on_immediately() {
    let mut live = LiveText::new(LiveTarget::Pipe);
    let mut out = String::new();
    live.push(b"no newline", &mut out);
    assert_eq!(out, "no newline");
    live.push(b" yet\xe2\x82", &mut out);
    assert_eq!(out, "no newline yet");
    live.push(b"\xac\n", &mut out);
    assert_eq!(out, "no newline yet\u{20ac}\n");
}

#[test]
fn pipe_gets_the_final_progress_bar() {
    let cases: [(&[u8], &str); 9] = [
        (b"\rlong text\r\x1b[Kab\n", "ab\n"),
        (b"\r 10%\r 20%\r100%\ndone\n", "100%\ndone\n"),
        (b"start\r 10%\r100%\n", "start\n100%\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"\r50%", "50%"),
        (b"\rlong text\rshort\x1b[K\n", "short\n"),
        (b"|\x08/\x08-\x08", "|\n-"),
        (b"\x1b[31mred\x1b[0m\n", "red\n"),
        (b"x\xff\xfey", "x\u{fffd}\u{fffd}y"),
    ];
    for (raw, expected) in cases {
        assert_eq!(live_text(LiveTarget::Pipe, &[raw]), expected, "{raw:?}");
        // The same byte by byte.
        let bytes: Vec<&[u8]> = raw.chunks(1).collect();
        assert_eq!(live_text(LiveTarget::Pipe, &bytes), expected, "{raw:?}");
    }
}

#[test]
fn long_line_to_a_pipe_is_complete() {
    let line = "x".repeat(100_000);
    assert_eq!(live_text(LiveTarget::Pipe, &[line.as_bytes()]), line);
}

/// A bar that is wider than the window would print a new line with every redraw.
#[test]
fn redrawn_lines_are_clipped_to_the_window() {
    let write = |texts: &[&str]| {
        let mut live = LiveText::new(LiveTarget::PlainTerminal).with_columns(Some(10));
        let mut out = String::new();
        for text in texts {
            live.push(text.as_bytes(), &mut out);
        }
        live.finish(&mut out);
        out
    };
    assert_eq!(write(&["\r0123456789abc", "de", "\r1"]), "\r012345678\r1");
    assert_eq!(
        write(&["\r東京東京東京\nmore than ten columns"]),
        "\r東京東京\nmore than ten columns"
    );
    // A line that is not redrawn wraps.
    assert_eq!(
        write(&["more than ten columns\r\nnext"]),
        "more than ten columns\r\nnext"
    );
}

/// As `tqdm` draws a bar at position 1: a line feed, the bar, and back up.
#[test]
fn bars_below_each_other_are_redrawn_in_place() {
    let raw = b"\router 1\n\rinner 1\x1b[A\n\rinner 2\x1b[A\router 2\n";
    for target in [LiveTarget::ColourTerminal, LiveTarget::PlainTerminal] {
        assert_eq!(
            live_text(target, &[raw]),
            "\router 1\n\rinner 1\x1b[1A\n\rinner 2\x1b[1A\router 2\n"
        );
    }
    // Text that follows does not overwrite the rows below the cursor.
    assert_eq!(
        live_text(LiveTarget::PlainTerminal, &[b"a\nb\nc\x1b[2A\rA"]),
        "a\nb\nc\x1b[2A\rA\n\n\n"
    );
}

#[test]
fn the_cursor_stays_within_the_rows_of_the_stream() {
    let show = |raw: &[u8]| live_text(LiveTarget::PlainTerminal, &[raw]);
    assert_eq!(show(b"\x1b[A\x1b[99Aover"), "over");
    assert_eq!(show(b"a\n\x1b[99Aover\n"), "a\n\x1b[1Aover\n");
    assert_eq!(
        show(b"a\nb\n\x1b[0A\x1b[A\x1b[Ax"),
        "a\nb\n\x1b[1A\x1b[1Ax\n\n\n"
    );
    assert_eq!(show(b"a\n\x1b[99999999999999999999Ax"), "a\n\x1b[1Ax\n\n");
    // Another stream has written below the rows.
    let mut live = LiveText::new(LiveTarget::PlainTerminal);
    let mut out = String::new();
    live.push(b"a\nb\x1b[A", &mut out);
    live.leave_rows(&mut out);
    live.push(b"\x1b[Ac", &mut out);
    assert_eq!(out, "a\nb\x1b[1A\n\nc");
}
