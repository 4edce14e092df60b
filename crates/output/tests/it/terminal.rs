//! A minimal reference terminal: a grid of characters and a cursor. `clean::plain` must produce the text it
//! shows.

use cellwright_output::clean;
use proptest::prelude::*;

/// One action of a program on its terminal.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Write(String),
    Newline,
    Return,
    Backspace,
    Up(usize),
    Down(usize),
    Right(usize),
    Left(usize),
    Column(usize),
    EraseRight,
    EraseLeft,
    EraseLine,
    EraseBelow,
    /// A sequence without visible effect.
    Silent(&'static str),
}

impl Move {
    pub(crate) fn bytes(&self) -> String {
        match self {
            Self::Write(text) => text.clone(),
            Self::Newline => "\n".to_owned(),
            Self::Return => "\r".to_owned(),
            Self::Backspace => "\u{8}".to_owned(),
            Self::Up(count) => format!("\x1b[{count}A"),
            Self::Down(count) => format!("\x1b[{count}B"),
            Self::Right(count) => format!("\u{9b}{count}C"),
            Self::Left(count) => format!("\x1b[{count}D"),
            Self::Column(column) => format!("\x1b[{column}G"),
            Self::EraseRight => "\x1b[K".to_owned(),
            Self::EraseLeft => "\x1b[1K".to_owned(),
            Self::EraseLine => "\x1b[2K".to_owned(),
            Self::EraseBelow => "\x1b[J".to_owned(),
            Self::Silent(text) => (*text).to_owned(),
        }
    }
}

pub(crate) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        6 => "[a-z0-9 é█日🦀\t]{1,8}".prop_map(Move::Write),
        4 => Just(Move::Newline),
        4 => Just(Move::Return),
        2 => Just(Move::Backspace),
        2 => (1..4_usize).prop_map(Move::Up),
        1 => (1..4_usize).prop_map(Move::Down),
        1 => (1..6_usize).prop_map(Move::Right),
        1 => (1..6_usize).prop_map(Move::Left),
        1 => (1..12_usize).prop_map(Move::Column),
        1 => Just(Move::EraseRight),
        1 => Just(Move::EraseLeft),
        1 => Just(Move::EraseLine),
        1 => Just(Move::EraseBelow),
        2 => prop::sample::select(SILENT.to_vec()).prop_map(Move::Silent),
    ];
    prop::collection::vec(one, 0..40)
}

const SILENT: [&str; 16] = [
    "\x1b[1;31m",
    "\x1b[0m",
    "\x1b[38;5;200m",
    "\x1b]0;a title\x07",
    "\x1b]8;;http://example.org\x1b\\",
    "\x1bPq#0;2;0;0;0\x1b\\",
    "\x1b_Gf=100;AAAA\x1b\\",
    "\x1b(B",
    "\x1b7",
    "\x1b[?25l",
    "\x1b[2J",
    "\x1b[10;10H",
    "\x07",
    "\0",
    "\u{85}",
    "\u{9d}0;title\u{9c}",
];

#[derive(Default)]
struct Terminal {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Terminal {
    fn after(moves: &[Move]) -> String {
        let mut terminal = Self {
            rows: vec![Vec::new()],
            ..Self::default()
        };
        for step in moves {
            terminal.step(step);
        }
        while terminal.rows.len() > terminal.row + 1
            && terminal.rows.last().unwrap().iter().all(|&c| c == ' ')
        {
            terminal.rows.pop();
        }
        let lines: Vec<String> = terminal
            .rows
            .iter()
            .map(|row| row.iter().collect())
            .collect();
        lines.join("\n")
    }

    fn step(&mut self, step: &Move) {
        let width = self.rows[self.row].len();
        match step {
            Move::Write(text) => {
                for character in text.chars() {
                    let row = &mut self.rows[self.row];
                    while row.len() <= self.column {
                        row.push(' ');
                    }
                    row[self.column] = character;
                    self.column += 1;
                }
            }
            Move::Newline => {
                self.row += 1;
                self.column = 0;
                if self.row == self.rows.len() {
                    self.rows.push(Vec::new());
                }
            }
            Move::Return => self.column = 0,
            Move::Backspace => self.column = self.column.saturating_sub(1),
            Move::Up(count) => self.row = self.row.saturating_sub(*count),
            Move::Down(count) => self.row = (self.row + count).min(self.rows.len() - 1),
            Move::Right(count) => self.column += count,
            Move::Left(count) => self.column = self.column.saturating_sub(*count),
            Move::Column(column) => self.column = column - 1,
            Move::EraseRight => self.rows[self.row].truncate(self.column),
            Move::EraseLeft => {
                for column in 0..width.min(self.column + 1) {
                    self.rows[self.row][column] = ' ';
                }
            }
            Move::EraseLine => self.rows[self.row].clear(),
            Move::EraseBelow => {
                self.rows[self.row].truncate(self.column);
                self.rows.truncate(self.row + 1);
            }
            Move::Silent(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn text_matches_the_terminal(moves in moves()) {
        let text: String = moves.iter().map(Move::bytes).collect();
        prop_assert_eq!(clean::plain(&text), Terminal::after(&moves), "{:?}", text);
    }

    #[test]
    fn colours_change_nothing_else(moves in moves()) {
        let text: String = moves.iter().map(Move::bytes).collect();
        let coloured = clean::coloured(&text);
        prop_assert_eq!(clean::plain(&coloured), clean::plain(&text), "{:?}", coloured);
    }
}
