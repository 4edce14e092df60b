//! Which cell of one notebook is which cell of another.

use std::collections::HashMap;

use crate::document::Cells;
use crate::lines::{Change, changes};

/// Cells of an older notebook paired with those of a newer one.
pub(crate) struct Matched {
    /// For each cell of the old one its cell in the new one.
    pub(crate) now_of: Vec<Option<usize>>,
    /// For each cell of the new one its cell in the old one.
    pub(crate) base_of: Vec<Option<usize>>,
    /// How many pairs are more than a guess.
    pub(crate) sure: usize,
}

/// More candidates for one gap are not compared with each other.
const MOST_CANDIDATES: usize = 2000;
/// How much of a source is looked at to say how alike two are.
const MOST_WORDS: usize = 2000;
/// Cells that share less than this many hundredths of their words are not the same cell.
const ALIKE: usize = 50;

impl Matched {
    /// Pairs cells by id and content; between them, cells without ids that were changed one for one.
    pub(crate) fn of(base: &dyn Cells, now: &dyn Cells) -> Self {
        let mut matched = Self::none(base, now);
        matched.by_id(base, now);
        let others = matched.by_content(base, now, &named_key);
        matched.sure = matched.now_of.iter().flatten().count();
        matched.one_for_one(base, now, others);
        matched
    }

    /// Pairs cells as a person would: also where ids were added or given anew, and cells without ids
    /// that were changed but are still alike.
    pub(crate) fn likely(base: &dyn Cells, now: &dyn Cells) -> Self {
        let mut matched = Self::none(base, now);
        matched.by_id(base, now);
        let ids_tell = matched.now_of.iter().any(Option::is_some);
        matched.by_content(base, now, &named_key);
        matched.by_content(base, now, &nameless_key);
        matched.sure = matched.now_of.iter().flatten().count();
        matched.by_likeness(base, now, ids_tell);
        matched
    }

    fn none(base: &dyn Cells, now: &dyn Cells) -> Self {
        Self {
            now_of: vec![None; base.count()],
            base_of: vec![None; now.count()],
            sure: 0,
        }
    }

    fn pair(&mut self, origin: usize, current: usize) {
        if self.now_of[origin].is_none() && self.base_of[current].is_none() {
            self.now_of[origin] = Some(current);
            self.base_of[current] = Some(origin);
        }
    }

    fn by_id(&mut self, base: &dyn Cells, now: &dyn Cells) {
        let mut places = unique_ids(now);
        for (id, origin) in unique_ids(base) {
            if let Some(current) = places.remove(&id) {
                self.pair(origin, current);
            }
        }
    }

    /// What ids do not tell: equal cells in equal order, and cells that are the only ones of their
    /// kind and were moved. Gives back the stretches between that have no equal.
    fn by_content(
        &mut self,
        base: &dyn Cells,
        now: &dyn Cells,
        key: &dyn Fn(&dyn Cells, usize) -> String,
    ) -> Vec<(Vec<usize>, Vec<usize>)> {
        let old = unpaired(&self.now_of);
        let new = unpaired(&self.base_of);
        if old.is_empty() || new.is_empty() {
            return Vec::new();
        }
        let old_keys: Vec<String> = old.iter().map(|&n| key(base, n)).collect();
        let new_keys: Vec<String> = new.iter().map(|&n| key(now, n)).collect();
        let old_texts: Vec<&str> = old_keys.iter().map(String::as_str).collect();
        let new_texts: Vec<&str> = new_keys.iter().map(String::as_str).collect();
        let mut others = Vec::new();
        let mut place = 0;
        for change in changes(&old_texts, &new_texts) {
            match change {
                Change::Keep(range) => {
                    for origin in range {
                        self.pair(old[origin], new[place]);
                        place += 1;
                    }
                }
                Change::Replace { old: from, new: to } => {
                    place = to.end;
                    others.push((old[from].to_vec(), new[to].to_vec()));
                }
            }
        }
        let mut places = unique(new_keys.iter().cloned().zip(new.iter().copied()));
        for (key, origin) in unique(old_keys.into_iter().zip(old.iter().copied())) {
            if let Some(current) = places.remove(&key) {
                self.pair(origin, current);
            }
        }
        others
    }

    fn one_for_one(
        &mut self,
        base: &dyn Cells,
        now: &dyn Cells,
        stretches: Vec<(Vec<usize>, Vec<usize>)>,
    ) {
        for (from, to) in stretches {
            if from.len() == to.len() {
                for (origin, current) in from.into_iter().zip(to) {
                    // Cells with ids are the ids' business.
                    if base.id(origin).is_none() && now.id(current).is_none() {
                        self.pair(origin, current);
                    }
                }
            }
        }
    }

    /// Pairs what is left between the same neighbours, the most alike first. Two cells that have
    /// ids are different ones, unless no id can be relied on.
    fn by_likeness(&mut self, base: &dyn Cells, now: &dyn Cells, ids_tell: bool) {
        for (from, to) in self.gaps() {
            if from.len() * to.len() > MOST_CANDIDATES {
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
                        ids_tell && base.id(origin).is_some() && now.id(current).is_some();
                    if different || base.kind(origin) != now.kind(current) {
                        continue;
                    }
                    let alike = likeness(old, new);
                    if alike >= ALIKE {
                        pairs.push((alike, origin, current));
                    }
                }
            }
            pairs.sort_by_key(|&(alike, origin, current)| {
                (std::cmp::Reverse(alike), origin.abs_diff(current), origin)
            });
            for (_, origin, current) in pairs {
                self.pair(origin, current);
            }
        }
    }

    /// The unpaired cells behind the same pair, or before the same one.
    fn gaps(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let mut gaps = Vec::new();
        let mut start = 0;
        while start < self.base_of.len() {
            let run = self.base_of[start..].iter().take_while(|b| b.is_none());
            let end = start + run.count();
            if end == start {
                start += 1;
                continue;
            }
            let behind = match start.checked_sub(1) {
                Some(before) => self.base_of[before].map(|origin| origin + 1),
                None => Some(0),
            };
            let before = match self.base_of.get(end) {
                Some(after) => *after,
                None => Some(self.now_of.len()),
            };
            let is_free = |n: &usize| self.now_of[*n].is_none();
            let from = behind.unwrap_or(0);
            let behind = behind.map_or(0, |from| {
                (from..self.now_of.len()).take_while(is_free).count()
            });
            let to = before.unwrap_or(0);
            let before = (0..to).rev().take_while(is_free).count();
            let first = from..from + behind;
            let second = (to - before..to).filter(|n| !first.contains(n));
            let old: Vec<usize> = first.clone().chain(second).collect();
            if !old.is_empty() {
                gaps.push((old, (start..end).collect()));
            }
            start = end;
        }
        gaps
    }

    /// Which cells of the new notebook stand in another order than in the old one: as few as
    /// explain it.
    pub(crate) fn moved(&self) -> Vec<bool> {
        let pairs: Vec<(usize, usize)> = self
            .base_of
            .iter()
            .enumerate()
            .filter_map(|(current, origin)| Some(((*origin)?, current)))
            .collect();
        let origins: Vec<usize> = pairs.iter().map(|(origin, _)| *origin).collect();
        let mut moved = vec![false; self.base_of.len()];
        for (&(_, current), stays) in pairs.iter().zip(rising(&origins)) {
            moved[current] = !stays;
        }
        moved
    }
}

/// Which numbers belong to the longest rising subsequence.
fn rising(numbers: &[usize]) -> Vec<bool> {
    // For each length the place of the smallest number that a sequence of it can end with.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(numbers.len());
    for (place, &number) in numbers.iter().enumerate() {
        let length = ends.partition_point(|&end| numbers[end] < number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(place);
        } else {
            ends[length] = place;
        }
    }
    let mut stays = vec![false; numbers.len()];
    let mut place = ends.last().copied();
    while let Some(at) = place {
        stays[at] = true;
        place = before[at];
    }
    stays
}

fn unpaired(pairs: &[Option<usize>]) -> Vec<usize> {
    (0..pairs.len()).filter(|&n| pairs[n].is_none()).collect()
}

fn named_key(cells: &dyn Cells, index: usize) -> String {
    format!(
        "{} {} {}",
        cells.kind(index),
        cells.id(index).unwrap_or_default(),
        cells.source(index)
    )
}

fn nameless_key(cells: &dyn Cells, index: usize) -> String {
    format!("{} {}", cells.kind(index), cells.source(index))
}

/// The words and signs of a text, in the order of the alphabet.
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
        .take(MOST_WORDS)
        .collect();
    words.sort_unstable();
    words
}

/// How many hundredths of the words of two texts are in both.
fn likeness(old: &[&str], new: &[&str]) -> usize {
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

fn unique_ids(cells: &dyn Cells) -> HashMap<String, usize> {
    unique((0..cells.count()).filter_map(|index| Some((cells.id(index)?.into_owned(), index))))
}

/// The names that only one cell has.
pub(crate) fn unique(names: impl Iterator<Item = (String, usize)>) -> HashMap<String, usize> {
    let mut seen: HashMap<String, Option<usize>> = HashMap::new();
    for (name, index) in names {
        seen.entry(name)
            .and_modify(|place| *place = None)
            .or_insert(Some(index));
    }
    seen.into_iter()
        .filter_map(|(name, place)| Some((name, place?)))
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

    fn likely(old: &[&str], new: &[&str]) -> Vec<Option<usize>> {
        Matched::likely(&notebook(old), &notebook(new)).base_of
    }

    #[test]
    fn cells_that_got_an_id_are_the_same_cells() {
        let upgraded = likely(&["one", "two", "three"], &["a=one", "b=two", "c=three"]);
        assert_eq!(upgraded, [Some(0), Some(1), Some(2)]);
        let anew = likely(&["a=one", "b=two"], &["c=one", "d=two and more", "e=new"]);
        assert_eq!(anew, [Some(0), Some(1), None]);
    }

    #[test]
    fn cells_without_ids_are_known_by_what_they_say() {
        let old = ["import os", "x(1, 2, 3)", "y = f(x)"];
        let new = ["import os", "print(0)", "x(1, 2, 4)", "y = f(x)"];
        assert_eq!(likely(&old, &new), [Some(0), None, Some(1), Some(2)]);
        assert_eq!(likely(&["alpha"], &["beta"]), [None]);
    }

    #[test]
    fn cells_with_other_ids_are_other_cells() {
        let old = ["a=x(1, 2, 3)", "b=stays"];
        assert_eq!(likely(&old, &["c=x(1, 2, 4)", "b=stays"]), [None, Some(1)]);
    }

    #[test]
    fn as_few_cells_as_possible_count_as_moved() {
        let old = ["a=1", "b=2", "c=3", "d=4"];
        let new = ["d=4", "a=1", "n=5", "b=2", "c=3"];
        let matched = Matched::likely(&notebook(&old), &notebook(&new));
        assert_eq!(matched.moved(), [true, false, false, false, false]);
    }
}
