//! Matches the cells of two versions of a notebook.

use std::collections::HashMap;

use crate::document::Cells;
use crate::lines::{LineChange, diff_lines};

/// Cells of an older notebook matched with those of a newer one.
pub(crate) struct CellMatching {
    /// For each old cell, its index in the new notebook.
    pub(crate) to_new: Vec<Option<usize>>,
    /// For each new cell, its index in the old notebook.
    pub(crate) to_base: Vec<Option<usize>>,
    /// The number of matches by id or equal content.
    pub(crate) certain: usize,
}

/// Gaps with more pairs of candidates are skipped.
const CANDIDATE_LIMIT: usize = 2000;
/// Number of words of a source that are compared.
const WORD_LIMIT: usize = 2000;
/// The similarity in percent below which two cells do not match.
const MIN_SIMILARITY: usize = 50;

impl CellMatching {
    /// Matches cells by id and content. In the gaps, cells without ids match if they were changed
    /// one for one.
    pub(crate) fn strict(base: &dyn Cells, now: &dyn Cells) -> Self {
        let mut matching = Self::unmatched(base, now);
        matching.pair_by_id(base, now);
        let others = matching.pair_by_content(base, now, &key_with_id);
        matching.certain = matching.to_new.iter().flatten().count();
        matching.pair_one_for_one(base, now, others);
        matching
    }

    /// Matches cells as a person would: also if ids were added or replaced, and cells without ids
    /// that were changed but are still similar.
    pub(crate) fn heuristic(base: &dyn Cells, now: &dyn Cells) -> Self {
        let mut matching = Self::unmatched(base, now);
        matching.pair_by_id(base, now);
        let ids_are_reliable = matching.to_new.iter().any(Option::is_some);
        matching.pair_by_content(base, now, &key_with_id);
        matching.pair_by_content(base, now, &key_without_id);
        matching.certain = matching.to_new.iter().flatten().count();
        matching.pair_by_similarity(base, now, ids_are_reliable);
        matching
    }

    fn unmatched(base: &dyn Cells, now: &dyn Cells) -> Self {
        Self {
            to_new: vec![None; base.count()],
            to_base: vec![None; now.count()],
            certain: 0,
        }
    }

    fn pair(&mut self, origin: usize, current: usize) {
        if self.to_new[origin].is_none() && self.to_base[current].is_none() {
            self.to_new[origin] = Some(current);
            self.to_base[current] = Some(origin);
        }
    }

    fn pair_by_id(&mut self, base: &dyn Cells, now: &dyn Cells) {
        let mut indexes = unique_ids(now);
        for (id, origin) in unique_ids(base) {
            if let Some(current) = indexes.remove(&id) {
                self.pair(origin, current);
            }
        }
    }

    /// Matches cells that have no matching id: equal cells in equal order, and moved cells whose
    /// content is unique. Returns the ranges in between that have no equal.
    fn pair_by_content(
        &mut self,
        base: &dyn Cells,
        now: &dyn Cells,
        key: &dyn Fn(&dyn Cells, usize) -> String,
    ) -> Vec<(Vec<usize>, Vec<usize>)> {
        let old = unmatched_indexes(&self.to_new);
        let new = unmatched_indexes(&self.to_base);
        if old.is_empty() || new.is_empty() {
            return Vec::new();
        }
        let old_keys: Vec<String> = old.iter().map(|&n| key(base, n)).collect();
        let new_keys: Vec<String> = new.iter().map(|&n| key(now, n)).collect();
        let old_texts: Vec<&str> = old_keys.iter().map(String::as_str).collect();
        let new_texts: Vec<&str> = new_keys.iter().map(String::as_str).collect();
        let mut others = Vec::new();
        let mut index = 0;
        for change in diff_lines(&old_texts, &new_texts) {
            match change {
                LineChange::Keep(range) => {
                    for origin in range {
                        self.pair(old[origin], new[index]);
                        index += 1;
                    }
                }
                LineChange::Replace { old: from, new: to } => {
                    index = to.end;
                    others.push((old[from].to_vec(), new[to].to_vec()));
                }
            }
        }
        let mut indexes = unique_names(new_keys.iter().cloned().zip(new.iter().copied()));
        for (key, origin) in unique_names(old_keys.into_iter().zip(old.iter().copied())) {
            if let Some(current) = indexes.remove(&key) {
                self.pair(origin, current);
            }
        }
        others
    }

    fn pair_one_for_one(
        &mut self,
        base: &dyn Cells,
        now: &dyn Cells,
        stretches: Vec<(Vec<usize>, Vec<usize>)>,
    ) {
        for (from, to) in stretches {
            if from.len() == to.len() {
                for (origin, current) in from.into_iter().zip(to) {
                    // Cells with ids match by id only.
                    if base.id(origin).is_none() && now.id(current).is_none() {
                        self.pair(origin, current);
                    }
                }
            }
        }
    }

    /// Matches the remaining cells between the same neighbours, the most similar first. Two cells
    /// with ids do not match, unless no id is reliable.
    fn pair_by_similarity(&mut self, base: &dyn Cells, now: &dyn Cells, ids_are_reliable: bool) {
        for (from, to) in self.gaps() {
            if from.len() * to.len() > CANDIDATE_LIMIT {
                continue;
            }
            let old_sources: Vec<_> = from.iter().map(|&n| base.source(n)).collect();
            let new_sources: Vec<_> = to.iter().map(|&n| now.source(n)).collect();
            let old_words: Vec<_> = old_sources.iter().map(|text| words(text)).collect();
            let new_words: Vec<_> = new_sources.iter().map(|text| words(text)).collect();
            let mut pairs = Vec::new();
            for (&origin, old) in from.iter().zip(&old_words) {
                for (&current, new) in to.iter().zip(&new_words) {
                    let different =
                        ids_are_reliable && base.id(origin).is_some() && now.id(current).is_some();
                    if different || base.kind(origin) != now.kind(current) {
                        continue;
                    }
                    let score = similarity(old, new);
                    if score >= MIN_SIMILARITY {
                        pairs.push((score, origin, current));
                    }
                }
            }
            pairs.sort_by_key(|&(score, origin, current)| {
                (std::cmp::Reverse(score), origin.abs_diff(current), origin)
            });
            for (_, origin, current) in pairs {
                self.pair(origin, current);
            }
        }
    }

    /// The unmatched cells after the same match, or before the same match.
    fn gaps(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let mut gaps = Vec::new();
        let mut start = 0;
        while start < self.to_base.len() {
            let run = self.to_base[start..].iter().take_while(|b| b.is_none());
            let end = start + run.count();
            if end == start {
                start += 1;
                continue;
            }
            let after = match start.checked_sub(1) {
                Some(before) => self.to_base[before].map(|origin| origin + 1),
                None => Some(0),
            };
            let before = match self.to_base.get(end) {
                Some(after) => *after,
                None => Some(self.to_new.len()),
            };
            let is_free = |n: &usize| self.to_new[*n].is_none();
            let from = after.unwrap_or(0);
            let after = after.map_or(0, |from| {
                (from..self.to_new.len()).take_while(is_free).count()
            });
            let to = before.unwrap_or(0);
            let before = (0..to).rev().take_while(is_free).count();
            let first = from..from + after;
            let second = (to - before..to).filter(|n| !first.contains(n));
            let old: Vec<usize> = first.clone().chain(second).collect();
            if !old.is_empty() {
                gaps.push((old, (start..end).collect()));
            }
            start = end;
        }
        gaps
    }

    /// For each new cell, whether it moved: the smallest set of cells that explains the new
    /// order.
    pub(crate) fn moved_cells(&self) -> Vec<bool> {
        let pairs: Vec<(usize, usize)> = self
            .to_base
            .iter()
            .enumerate()
            .filter_map(|(current, origin)| Some(((*origin)?, current)))
            .collect();
        let origins: Vec<usize> = pairs.iter().map(|(origin, _)| *origin).collect();
        let mut moved = vec![false; self.to_base.len()];
        for (&(_, current), stays) in pairs.iter().zip(longest_increasing(&origins)) {
            moved[current] = !stays;
        }
        moved
    }
}

/// For each number, whether it belongs to the longest increasing subsequence.
fn longest_increasing(numbers: &[usize]) -> Vec<bool> {
    // For each length, the index of the smallest number that ends a sequence of this length.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (index, &number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|&end| numbers[end] < number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut stays = vec![false; numbers.len()];
    let mut index = ends.last().copied();
    while let Some(at) = index {
        stays[at] = true;
        index = before[at];
    }
    stays
}

fn unmatched_indexes(pairs: &[Option<usize>]) -> Vec<usize> {
    (0..pairs.len()).filter(|&n| pairs[n].is_none()).collect()
}

fn key_with_id(cells: &dyn Cells, index: usize) -> String {
    format!(
        "{} {} {}",
        cells.kind(index),
        cells.id(index).unwrap_or_default(),
        cells.source(index)
    )
}

fn key_without_id(cells: &dyn Cells, index: usize) -> String {
    format!("{} {}", cells.kind(index), cells.source(index))
}

/// The words and punctuation of a text, sorted.
fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words: Vec<&str> = text
        .split_inclusive(|c: char| !is_word(c))
        .flat_map(|part| {
            let sign = part.chars().next_back().filter(|&c| !is_word(c));
            let (word, sign) = part.split_at(part.len() - sign.map_or(0, char::len_utf8));
            [word, sign]
        })
        .filter(|word| !word.trim().is_empty())
        .take(WORD_LIMIT)
        .collect();
    words.sort_unstable();
    words
}

/// The share of words that two texts have in common, in percent.
fn similarity(old: &[&str], new: &[&str]) -> usize {
    let (mut a, mut b, mut both) = (0, 0, 0);
    while a < old.len() && b < new.len() {
        match old[a].cmp(new[b]) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => {
                both += 1;
                a += 1;
                b += 1;
            }
        }
    }
    200 * both / (old.len() + new.len()).max(1)
}

/// The ids that only one cell has.
pub(crate) fn unique_ids(cells: &dyn Cells) -> HashMap<String, usize> {
    unique_names(
        (0..cells.count()).filter_map(|index| Some((cells.id(index)?.into_owned(), index))),
    )
}

/// The names that occur only once, with their cell.
pub(crate) fn unique_names(names: impl Iterator<Item = (String, usize)>) -> HashMap<String, usize> {
    let mut indexes: HashMap<String, Option<usize>> = HashMap::new();
    for (name, index) in names {
        indexes
            .entry(name)
            .and_modify(|index| *index = None)
            .or_insert(Some(index));
    }
    indexes
        .into_iter()
        .filter_map(|(name, index)| Some((name, index?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Notebook;

    /// A notebook of code cells: `id=source`, or only a source.
    fn notebook(cells: &[&str]) -> Notebook {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| match cell.split_once('=') {
                Some((id, source)) => {
                    format!(r#"{{"cell_type":"code","id":"{id}","source":"{source}"}}"#)
                }
                None => format!(r#"{{"cell_type":"code","source":"{cell}"}}"#),
            })
            .collect();
        Notebook::parse(format!(r#"{{"cells":[{}],"nbformat":4}}"#, cells.join(","))).unwrap()
    }

    fn heuristic_matches(old: &[&str], new: &[&str]) -> Vec<Option<usize>> {
        CellMatching::heuristic(&notebook(old), &notebook(new)).to_base
    }

    #[test]
    fn cells_match_after_ids_are_added() {
        let upgraded = heuristic_matches(&["one", "two", "three"], &["a=one", "b=two", "c=three"]);
        assert_eq!(upgraded, [Some(0), Some(1), Some(2)]);
        let replaced =
            heuristic_matches(&["a=one", "b=two"], &["c=one", "d=two and more", "e=new"]);
        assert_eq!(replaced, [Some(0), Some(1), None]);
    }

    #[test]
    fn cells_without_ids_match_by_source() {
        let old = ["import os", "x(1, 2, 3)", "y = f(x)"];
        let new = ["import os", "print(0)", "x(1, 2, 4)", "y = f(x)"];
        assert_eq!(
            heuristic_matches(&old, &new),
            [Some(0), None, Some(1), Some(2)]
        );
        assert_eq!(heuristic_matches(&["alpha"], &["beta"]), [None]);
    }

    #[test]
    fn cells_with_different_ids_do_not_match() {
        let old = ["a=x(1, 2, 3)", "b=stays"];
        assert_eq!(
            heuristic_matches(&old, &["c=x(1, 2, 4)", "b=stays"]),
            [None, Some(1)]
        );
    }

    #[test]
    fn fewest_cells_count_as_moved() {
        let old = ["a=1", "b=2", "c=3", "d=4"];
        let new = ["d=4", "a=1", "n=5", "b=2", "c=3"];
        let matching = CellMatching::heuristic(&notebook(&old), &notebook(&new));
        assert_eq!(matching.moved_cells(), [true, false, false, false, false]);
    }
}
