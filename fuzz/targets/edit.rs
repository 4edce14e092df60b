//! Sequences of operations on arbitrary notebooks.
//!
//! The first line has the operations, three characters each: the operation, the cell (`0` is the
//! first) and the argument (a text, kind or position, from `a`). The rest is the notebook. Letters
//! keep the seeds readable.

#![no_main]

use cellwright_fuzz::apply;
use cellwright_notebook::edit::{self, Address, CellPosition, Operation, ReplaceScope};
use cellwright_notebook::{CellChangeCounts, CellKind, Cells, Notebook};
use libfuzzer_sys::fuzz_target;

/// Each operation costs a whole check of the notebook.
const OPERATION_LIMIT: usize = 6;

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
    for step in data[..end].chunks_exact(3).take(OPERATION_LIMIT) {
        let (action, cell, argument) = (step[0], step[1], step[2]);
        // Wrapping is fine: an index out of range is an error, not a panic.
        let cell = usize::from(cell.wrapping_sub(b'0'));
        let argument = usize::from(argument.wrapping_sub(b'a'));
        let draft = match action {
            b'r' => edit::replace_text(
                &notebook,
                TEXTS[cell % TEXTS.len()],
                TEXTS[argument % TEXTS.len()],
                ReplaceScope::All,
            ),
            _ => operation(action, cell, argument, &notebook).draft(&notebook),
        };
        let Ok(draft) = draft else { continue };
        let tally = CellChangeCounts::count(&draft.plan, &notebook);
        assert_eq!(
            tally.kept + tally.changed + tally.added,
            draft.plan.slots.len()
        );
        if let Some(focus) = draft.focus {
            assert!(focus < draft.plan.slots.len());
        }
        notebook = apply(&notebook, &draft.plan);
    }
});

fn operation(action: u8, cell: usize, argument: usize, notebook: &Notebook) -> Operation {
    let text = TEXTS[argument % TEXTS.len()].to_owned();
    let kind = KINDS[argument % KINDS.len()];
    let address = address(cell, notebook);
    let position = match argument % 4 {
        0 => CellPosition::End,
        1 => CellPosition::At(argument / 4),
        2 => CellPosition::After(Address::Index(argument / 4)),
        _ => CellPosition::Before(Address::Index(argument / 4)),
    };
    match action {
        b'i' => Operation::Insert {
            position: CellPosition::At(cell),
            kind,
            source: text,
            tags: Vec::new(),
        },
        b'd' => Operation::Delete { cell: address },
        b'm' => Operation::Move {
            cell: address,
            position,
        },
        b't' => Operation::Type {
            cell: address,
            kind,
        },
        b'c' => Operation::Clear {
            // `c0z` clears all cells.
            cell: (argument != 25).then_some(address),
        },
        _ => Operation::Edit {
            cell: address,
            source: text,
            tags: None,
        },
    }
}

/// Uses the id of odd cells, if they have one, so that both forms of address are tried.
fn address(cell: usize, notebook: &Notebook) -> Address {
    let id = (cell < notebook.count())
        .then(|| notebook.id(cell))
        .flatten();
    match id {
        Some(id) if cell % 2 == 1 => Address::Id(id.into_owned()),
        _ => Address::Index(cell),
    }
}
