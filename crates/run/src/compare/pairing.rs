//! Which output is which, when some have gone or come.

use super::item::Item;
use super::rules::Rules;

/// Beyond this many on a side they are taken in turn: looking for the best way is quadratic.
const MOST: usize = 32;

type Pair<'a, 'b> = (Option<&'a Item<'b>>, Option<&'a Item<'b>>);

/// Pairs of what was and what is, each item in one of them.
pub(super) fn pair<'a, 'b>(
    stored: &'a [Item<'b>],
    fresh: &'a [Item<'b>],
    rules: Rules,
) -> Vec<Pair<'a, 'b>> {
    let same = |one: &Item<'_>, other: &Item<'_>| one.differences(other, rules).is_empty();
    if stored.len() == fresh.len() && stored.iter().zip(fresh).all(|(a, b)| a.resembles(b)) {
        return in_turn(stored, fresh);
    }
    let before = stored
        .iter()
        .zip(fresh)
        .take_while(|(a, b)| same(a, b))
        .count();
    let (stored_rest, fresh_rest) = (&stored[before..], &fresh[before..]);
    let after = stored_rest
        .iter()
        .rev()
        .zip(fresh_rest.iter().rev())
        .take_while(|(a, b)| same(a, b))
        .count();
    let stored_rest = &stored_rest[..stored_rest.len() - after];
    let fresh_rest = &fresh_rest[..fresh_rest.len() - after];
    // What is the same on both sides has been compared; it makes no difference any more.
    if stored_rest.len() > MOST || fresh_rest.len() > MOST {
        return in_turn(stored_rest, fresh_rest);
    }
    best(stored_rest, fresh_rest, same)
}

fn in_turn<'a, 'b>(stored: &'a [Item<'b>], fresh: &'a [Item<'b>]) -> Vec<Pair<'a, 'b>> {
    (0..stored.len().max(fresh.len()))
        .map(|at| (stored.get(at), fresh.get(at)))
        .collect()
}

/// The way to pair them that leaves the least changed.
fn best<'a, 'b>(
    stored: &'a [Item<'b>],
    fresh: &'a [Item<'b>],
    same: impl Fn(&Item<'_>, &Item<'_>) -> bool,
) -> Vec<Pair<'a, 'b>> {
    let (rows, columns) = (stored.len(), fresh.len());
    // What it costs from here to the end: one for each that goes, comes or changes.
    let mut costs = vec![vec![0_usize; columns + 1]; rows + 1];
    let mut step = vec![vec![None; columns + 1]; rows + 1];
    for row in (0..=rows).rev() {
        for column in (0..=columns).rev() {
            if row == rows || column == columns {
                costs[row][column] = (rows - row) + (columns - column);
                continue;
            }
            let (one, other) = (&stored[row], &fresh[column]);
            let change = if same(one, other) {
                Some(0)
            } else {
                one.resembles(other).then_some(1)
            };
            step[row][column] = change;
            let mut least = 1 + costs[row + 1][column].min(costs[row][column + 1]);
            if let Some(change) = change {
                least = least.min(change + costs[row + 1][column + 1]);
            }
            costs[row][column] = least;
        }
    }
    let mut pairs = Vec::new();
    let (mut row, mut column) = (0, 0);
    while row < rows || column < columns {
        let here = costs[row][column];
        let change = step[row][column];
        if change.is_some_and(|change| change + costs[row + 1][column + 1] == here) {
            pairs.push((Some(&stored[row]), Some(&fresh[column])));
            row += 1;
            column += 1;
        } else if row < rows && 1 + costs[row + 1][column] == here {
            pairs.push((Some(&stored[row]), None));
            row += 1;
        } else {
            pairs.push((None, fresh.get(column)));
            column += 1;
        }
    }
    pairs
}
