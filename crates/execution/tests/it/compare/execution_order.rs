//! The order in which cells ran.

use cellwright_execution::compare::{StoredCount, check_order};

/// The problems of cells with these counts: a number, `-` for a cell that has not run, `0` for an empty cell.
fn problems(counts: &str) -> Vec<String> {
    let cells: Vec<StoredCount> = counts
        .split_whitespace()
        .enumerate()
        .map(|(cell, count)| StoredCount {
            cell,
            is_empty: count == "0",
            count: count.parse().ok().filter(|count| *count > 0),
        })
        .collect();
    check_order(cells).iter().map(ToString::to_string).collect()
}

#[test]
fn cells_in_order_have_no_problems() {
    for counts in ["", "1", "1 2 3", "3 7 20", "1 0 2 0", "0"] {
        assert_eq!(problems(counts), [""; 0], "{counts}");
    }
}

#[test]
fn order_problems_are_reported() {
    let before = |cell, other, count, other_count| {
        format!(
            "cell {cell} ran before cell {other} above it (execution counts {count} and {other_count})"
        )
    };
    let never = |cell| format!("cell {cell} has never run");
    let twice = |cell, other, count| {
        format!(
            "cell {cell} and cell {other} have the same execution count {count}: they did not run one after the \
             other in one kernel"
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
        assert_eq!(problems(counts), expected, "{counts}");
    }
}
