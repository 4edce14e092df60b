//! Effects of control characters and sequences on text.

use cellwright_output::clean;

fn check(raw: &str, plain: &str) {
    assert_eq!(clean::plain(raw), plain, "{raw:?}");
}

#[test]
fn plain_text_is_unchanged() {
    for text in [
        "",
        "a",
        "a\nb",
        "\n\n",
        "tab\there\n",
        "日本 é 🦀\n",
        "€ ° ¿",
    ] {
        check(text, text);
    }
}

#[test]
fn a_progress_bar_is_one_line() {
    check("\r 10%\r 20%\r100%\ndone\n", "100%\ndone\n");
    check("longer text\rshort\n", "shortr text\n");
    check("longer text\r\x1b[Kshort\n", "short\n");
    check("longer text\x1b[2K\rshort\n", "short\n");
    check("ab\u{8}c\n", "ac\n");
    check("-\u{8}\\\u{8}|\u{8}", "|");
    check("a\r\nb\r\n", "a\nb\n");
    check("a\r\r\nb", "a\nb");
    check("\u{8}\u{8}a", "a");
}

#[test]
fn several_progress_bars_are_several_lines() {
    // tqdm draws nested bars this way.
    let mut raw = String::from("\router 0/2");
    for outer in 1..=2 {
        for inner in 1..=3 {
            raw.push_str(&format!("\n\rinner {inner}/3\x1b[A"));
        }
        raw.push_str(&format!("\router {outer}/2"));
    }
    raw.push_str("\n\n");
    check(&raw, "outer 2/2\ninner 3/3\n");
    // rich redraws a table this way: up, erasing every line.
    check(
        "one\ntwo\nthree\n\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2Kuno\ndos\n",
        "uno\ndos\n",
    );
}

#[test]
fn a_cleared_screen_loses_no_text() {
    check("before\n\x1b[2J\x1b[Hafter\n\x1bc", "before\nafter\n");
}

#[test]
fn sequences_are_removed() {
    let cases = [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\u{9b}31mred\u{9b}0m", "red"),
        ("\x1b[38;2;1;2;3mrgb", "rgb"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\u{9d}0;title\u{9c}text", "text"),
        ("\x1bP1$r0m\x1b\\text", "text"),
        ("\x1bXsos\x1b\\\x1b^pm\x1b\\\x1b_apc\x1b\\text", "text"),
        ("\x1b(Btext\x1b=\x1b>\x1b7\x1b8", "text"),
        ("\x1b[?1049htext\x1b[>c\x1b[!p", "text"),
        ("\x1b[6n\x1b[5ntext", "text"),
        ("a\0b\x01c\x07d\x0be\x0cf\x7fg\u{80}h\u{9f}i", "abcdefgh"),
        ("\x1b\x1b[31mred", "red"),
        ("\x1b[3\x181mtext", "1mtext"),
        ("\x1b[31éa", "éa"),
        ("\x1béa", "éa"),
        ("cut off \x1b[3", "cut off "),
    ];
    for (raw, plain) in cases {
        check(raw, plain);
    }
}

#[test]
fn unterminated_control_string_does_not_hide_later_text() {
    check("\x1b]0;oops\nnext line\n", "\nnext line\n");
    let long = format!("\x1b]{}end", "x".repeat(10_000));
    assert!(clean::plain(&long).ends_with("xend"));
    for begin in ["\x1bP", "\x1b_", "\x1b^", "\x1bX", "\u{90}", "\u{9f}"] {
        check(&format!("a{begin}oops\nnext line\n"), "a\nnext line\n");
        let long = format!("{begin}{}\nx", "y".repeat(2_000_000));
        assert!(clean::plain(&long).ends_with("y\nx"));
    }
}

#[test]
fn coloured_text_keeps_colours() {
    let cases = [
        ("\x1b[31mred\x1b[0m\n", "\x1b[0;31mred\x1b[0m\n"),
        (
            "\x1b[1;4mb\x1b[22mu\x1b[mx",
            "\x1b[0;1;4mb\x1b[0;4mu\x1b[0mx",
        ),
        ("\x1b[38;5;200mx", "\x1b[0;38;5;200mx\x1b[0m"),
        ("\x1b[38:2::1:2:3mx", "\x1b[0;38;2;1;2;3mx\x1b[0m"),
        ("\x1b[97;104mx", "\x1b[0;97;104mx\x1b[0m"),
        // A colour continues on the next line, and each line sets its own colour.
        (
            "\x1b[32ma\nb\x1b[0m",
            "\x1b[0;32ma\x1b[0m\n\x1b[0;32mb\x1b[0m",
        ),
        // Text is never hidden.
        ("\x1b[8mhidden\x1b[0m", "hidden"),
        ("\x1b]0;t\x07\x1b[2Jx\u{9b}1mz", "x\x1b[0;1mz\x1b[0m"),
        ("\x1b[31mab\r\x1b[32mc", "\x1b[0;32mc\x1b[0;31mb\x1b[0m"),
    ];
    for (raw, coloured) in cases {
        assert_eq!(clean::coloured(raw), coloured, "{raw:?}");
    }
}
