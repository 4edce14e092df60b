//! Control sequences and characters that a terminal must not receive.

/// One sequence each.
pub(super) const PAYLOADS: [&str; 77] = [
    // Window title, clipboard, links, colours, fonts, notifications, directory.
    "\u{1b}]0;PWN\u{7}",
    "\u{1b}]2;PWN\u{1b}\\",
    "\u{1b}]52;c;UFdO\u{7}",
    "\u{1b}]8;;http://127.0.0.1/\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}]4;1;?\u{7}",
    "\u{1b}]10;?\u{7}",
    "\u{1b}]50;font\u{7}",
    "\u{1b}]9;note\u{7}",
    "\u{1b}]7;file:///\u{7}",
    "\u{1b}]1337;File=inline=1:UFdO\u{7}",
    // Clearing, cursor, scrolling.
    "\u{1b}[2J",
    "\u{1b}[3J",
    "\u{1b}[H",
    "\u{1b}[1A",
    "\u{1b}[10D",
    "\u{1b}[5;5H",
    "\u{1b}[6L",
    "\u{1b}[4M",
    "\u{1b}[3S",
    "\u{1b}[2;4r",
    "\u{1b}[s",
    "\u{1b}[u",
    "\u{1b}[4X",
    "\u{1b}[2@",
    // Modes.
    "\u{1b}[?1049h",
    "\u{1b}[?25l",
    "\u{1b}[?1000h",
    "\u{1b}[?2004h",
    "\u{1b}[?1004h",
    "\u{1b}[4h",
    "\u{1b}[20h",
    "\u{1b}[!p",
    "\u{1b}[2 q",
    "\u{1b}[>4;2m",
    "\u{1b}[1;2:3x",
    // Reports, which the terminal would type.
    "\u{1b}[6n",
    "\u{1b}[5n",
    "\u{1b}[c",
    "\u{1b}[>c",
    "\u{1b}[21t",
    "\u{1b}[14t",
    "\u{1b}[?15n",
    "\u{1b}Z",
    // Colours and hidden text.
    "\u{1b}[38;5;123m",
    "\u{1b}[8m",
    "\u{1b}[m",
    // Reset, character sets, lines.
    "\u{1b}c",
    "\u{1b}#8",
    "\u{1b}(0",
    "\u{1b})B",
    "\u{1b}%G",
    "\u{1b}N",
    "\u{1b}=",
    "\u{1b}7",
    "\u{1b}8",
    "\u{1b}D",
    "\u{1b}M",
    // Strings.
    "\u{1b}Pq#0\u{1b}\\",
    "\u{1b}_Ga=T;UFdO\u{1b}\\",
    "\u{1b}^x\u{1b}\\",
    "\u{1b}Xx\u{1b}\\",
    // C0 and DEL.
    "\u{7}\u{5}",
    "\u{8}\u{8}",
    "\u{b}\u{c}",
    "\u{e}\u{f}",
    "\u{18}\u{1a}\u{11}\u{13}",
    "\u{7f}",
    "\r",
    // C1.
    "\u{9b}2J",
    "\u{9d}0;PWN\u{9c}",
    "\u{90}q\u{9c}",
    "\u{85}\u{84}\u{8d}",
    "\u{98}x\u{9c}\u{9e}x\u{9c}\u{9f}x\u{9c}",
    // Direction and separators.
    "\u{202e}\u{202a}\u{202b}\u{202c}\u{202d}",
    "\u{2066}\u{2067}\u{2068}\u{2069}",
    "\u{200e}\u{200f}\u{61c}",
    "\u{2028}\u{2029}",
];

/// All sequences, with text between them. Last come those that do not end.
pub(super) fn payload() -> String {
    format!("{} \u{1b}[ \u{1b}]0;", PAYLOADS.join(" . "))
}

/// The sequences in parts that fit into names of files.
pub(super) fn name_payloads() -> Vec<String> {
    const NAME_LENGTH_MAX: usize = 180;
    let mut names = vec![String::new()];
    for payload in PAYLOADS {
        let payload = payload.replace('/', "");
        let last = names.last_mut().unwrap();
        if last.len() + payload.len() > NAME_LENGTH_MAX {
            names.push(payload);
        } else {
            last.push_str(&payload);
        }
    }
    names
}
