//! Pairs stored outputs with new ones when some were added or removed.

use super::item::OutputItem;
use super::rules::Rules;

/// Number of outputs on a side above which they are paired by position: alignment is quadratic.
const ALIGNMENT_LIMIT: usize = 32;

type Pair<'a, 'b> = (Option<&'a OutputItem<'b>>, Option<&'a OutputItem<'b>>);

/// Pairs stored items with new ones; each item is in one pair. Equal items at the start and the end may be left
/// out.
pub(super) fn pair_items<'a, 'b>(
    stored: &'a [OutputItem<'b>],
    fresh: &'a [OutputItem<'b>],
    rules: Rules,
) -> Vec<Pair<'a, 'b>> {
    let same =
        |one: &OutputItem<'_>, other: &OutputItem<'_>| one.differences(other, rules).is_empty();
    if stored.len() == fresh.len() && stored.iter().zip(fresh).all(|(a, b)| a.resembles(b)) {
        return pair_by_position(stored, fresh);
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
    // The equal items at the start and the end have no differences and are left out.
    if stored_rest.len() > ALIGNMENT_LIMIT || fresh_rest.len() > ALIGNMENT_LIMIT {
        return pair_by_position(stored_rest, fresh_rest);
    }
    align(stored_rest, fresh_rest, same)
}

fn pair_by_position<'a, 'b>(
    stored: &'a [OutputItem<'b>],
    fresh: &'a [OutputItem<'b>],
) -> Vec<Pair<'a, 'b>> {
    (0..stored.len().max(fresh.len()))
        .map(|at| (stored.get(at), fresh.get(at)))
        .collect()
}

/// The pairing with the fewest changes.
fn align<'a, 'b>(
    stored: &'a [OutputItem<'b>],
    fresh: &'a [OutputItem<'b>],
    same: impl Fn(&OutputItem<'_>, &OutputItem<'_>) -> bool,
) -> Vec<Pair<'a, 'b>> {
    let (rows, columns) = (stored.len(), fresh.len());
    // Cost from here to the end: one for each item that is removed, added or changed.
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
            let mut lowest = 1 + costs[row + 1][column].min(costs[row][column + 1]);
            if let Some(change) = change {
                lowest = lowest.min(change + costs[row + 1][column + 1]);
            }
            costs[row][column] = lowest;
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
