//! In which order cells ran.

use cellwright_run::compare::{Ran, order};

/// Cells as counts: a number, `-` for a cell that did not run, `0` for one with nothing in it.
fn told(counts: &str) -> Vec<String> {
    let cells: Vec<Ran> = counts
        .split_whitespace()
        .enumerate()
        .map(|(cell, count)| Ran {
            cell,
            is_empty: count == "0",
            count: count.parse().ok().filter(|count| *count > 0),
        })
        .collect();
    order(&cells).iter().map(ToString::to_string).collect()
}

#[test]
fn cells_that_ran_in_order_are_fine() {
    for counts in ["", "1", "1 2 3", "3 7 20", "1 0 2 0", "0"] {
        assert_eq!(told(counts), [""; 0], "{counts}");
    }
}

#[test]
fn disorder_is_told() {
    let before = |cell, other, count, other_count| {
        format!(
            "cell {cell} ran before cell {other}, which stands above it (execution counts {count} and {other_count})"
        )
    };
    let never = |cell| format!("cell {cell} has never run");
    let twice = |cell, other, count| {
        format!(
            "cell {cell} has the execution count {count}, as cell {other} has: they did not run in one kernel, \
             one after the other"
        )
    };
    let cases = [
        ("1 - 2", vec![never(1)]),
        ("- -", vec![never(0), never(1)]),
        ("2 1", vec![before(1, 0, 1, 2)]),
        ("1 5 3 4 6", vec![before(2, 1, 3, 5), before(3, 1, 4, 5)]),
        ("1 1 1", vec![twice(1, 0, 1), twice(2, 0, 1)]),
        ("1 2 - 1 3", vec![never(2), twice(3, 0, 1)]),
    ];
    for (counts, expected) in cases {
        assert_eq!(told(counts), expected, "{counts}");
    }
}
