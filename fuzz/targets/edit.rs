//! Operations on arbitrary notebooks, one after the other.
//!
//! The first line is the operations, three characters each: what to do, to which cell (`0` is the
//! first), and with what (a text, kind or place, from `a`). The rest is the notebook. In letters, so
//! that the seeds can be read.

#![no_main]

use cellwright_fuzz::carry_out;
use cellwright_notebook::edit::{self, Address, Occurrences, Operation, Place};
use cellwright_notebook::{CellKind, Cells, Notebook, Tally};
use libfuzzer_sys::fuzz_target;

/// Each further one costs a whole check of the notebook.
const MOST_OPERATIONS: usize = 6;

const TEXTS: [&str; 12] = [
    "",
    "x",
    "x = 1\nprint(x)",
    "\n",
    "\n\nlast",
    "ends with a newline\n",
    "# %% [code] cell:0\nlooks like a marker",
    "\u{e9}\u{1d11e}\u{2028}",
    "carriage\r\nreturns\r",
    "\u{fffd}\u{fffd}",
    "\0\u{1f}\"\\/\u{7f}",
    "\\ud83d",
];

const KINDS: [CellKind; 3] = [CellKind::Code, CellKind::Markdown, CellKind::Raw];

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else {
        return;
    };
    let Ok(mut notebook) = Notebook::parse(&data[end + 1..]) else {
        return;
    };
    for step in data[..end].chunks_exact(3).take(MOST_OPERATIONS) {
        let (what, cell, with) = (step[0], step[1], step[2]);
        // A wrapped number is as good as any: out of range is an error, not a panic.
        let cell = usize::from(cell.wrapping_sub(b'0'));
        let with = usize::from(with.wrapping_sub(b'a'));
        let draft = match what {
            b'r' => edit::replace_text(
                &notebook,
                TEXTS[cell % TEXTS.len()],
                TEXTS[with % TEXTS.len()],
                Occurrences::All,
            ),
            _ => operation(what, cell, with, &notebook).draft(&notebook),
        };
        let Ok(draft) = draft else { continue };
        let tally = Tally::of(&draft.plan, &notebook);
        assert_eq!(
            tally.kept + tally.changed + tally.added,
            draft.plan.slots.len()
        );
        if let Some(focus) = draft.focus {
            assert!(focus < draft.plan.slots.len());
        }
        notebook = carry_out(&notebook, &draft.plan);
    }
});

fn operation(what: u8, cell: usize, with: usize, notebook: &Notebook) -> Operation {
    let text = TEXTS[with % TEXTS.len()].to_owned();
    let kind = KINDS[with % KINDS.len()];
    let address = address(cell, notebook);
    let place = match with % 4 {
        0 => Place::End,
        1 => Place::At(with / 4),
        2 => Place::After(Address::Index(with / 4)),
        _ => Place::Before(Address::Index(with / 4)),
    };
    match what {
        b'i' => Operation::Insert {
            place: Place::At(cell),
            kind,
            source: text,
        },
        b'd' => Operation::Delete { cell: address },
        b'm' => Operation::Move {
            cell: address,
            place,
        },
        b't' => Operation::Type {
            cell: address,
            kind,
        },
        b'c' => Operation::Clear {
            // `c0z` means all of them.
            cell: (with != 25).then_some(address),
        },
        _ => Operation::Edit {
            cell: address,
            source: text,
        },
    }
}

/// By id where there is one, so that both ways of naming a cell are tried.
fn address(cell: usize, notebook: &Notebook) -> Address {
    let id = (cell < notebook.count())
        .then(|| notebook.id(cell))
        .flatten();
    match id {
        Some(id) if cell % 2 == 1 => Address::Id(id.into_owned()),
        _ => Address::Index(cell),
    }
}
