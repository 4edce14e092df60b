//! Any notebook, any of its cells.

use cellwright_notebook::Cells;
use cellwright_notebook::file::Entry;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Place, entry, record_with, said};
use crate::generate::{Generated, notebook_with_cells};
use crate::support::json::{Document, Node};
use crate::support::{cases, shown};

/// What a value of a cell is to be.
type Wanted<'w> = (&'w str, &'w str);

/// The parts of `after` that are not values which were replaced are those of `before`. Members that
/// were missing stand behind the others.
fn only_these_changed(
    before: (&Node, &[u8]),
    after: (&Node, &[u8]),
    wanted: &[Wanted<'_>],
) -> Result<(), TestCaseError> {
    let ((old, old_bytes), (new, new_bytes)) = (before, after);
    let mut at = (old.span.start, new.span.start);
    for (place, member) in old.members().iter().enumerate() {
        let twin = new.members().get(place);
        prop_assert!(twin.is_some(), "{} is gone", member.name);
        let twin = twin.unwrap();
        // What stands before the value: white space, name, colon.
        let lead = &old_bytes[at.0..member.node.span.start];
        let twin_lead = &new_bytes[at.1..twin.node.span.start];
        prop_assert_eq!(shown(twin_lead), shown(lead));
        let last = old.members()[place + 1..]
            .iter()
            .all(|later| later.name != member.name);
        let value = wanted.iter().find(|(name, _)| last && *name == member.name);
        let expected = match value {
            Some((_, value)) => value.as_bytes(),
            None => member.node.raw(old_bytes),
        };
        prop_assert_eq!(shown(twin.node.raw(new_bytes)), shown(expected));
        at = (member.node.span.end, twin.node.span.end);
    }
    let count = old.members().len();
    let missing: Vec<&Wanted<'_>> = wanted
        .iter()
        .filter(|(name, _)| old.get(name).is_none())
        .collect();
    let added = &new.members()[count..];
    prop_assert_eq!(added.len(), missing.len());
    for (name, value) in missing {
        let found = added.iter().find(|member| member.name == *name);
        prop_assert!(found.is_some(), "{name} is missing");
        prop_assert_eq!(shown(found.unwrap().node.raw(new_bytes)), *value);
    }
    at.1 = new.members().last().map_or(at.1, |last| last.node.span.end);
    let rest = (
        &old_bytes[at.0..old.span.end],
        &new_bytes[at.1..new.span.end],
    );
    prop_assert_eq!(shown(rest.1), shown(rest.0));
    Ok(())
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn outputs_and_counts_are_replaced_and_nothing_else(
        Generated(before) in notebook_with_cells(),
        chosen in vec(any::<bool>(), 6),
        count in 0..2_000_u64,
    ) {
        let place = Place::with(&before);
        let survey = place.survey();
        let document = Document::read(&before);
        let is_code = |cell: &usize| document.kind(*cell) == "code" && chosen[*cell];
        let cells: Vec<usize> = (0..survey.count()).filter(is_code).collect();
        let words = said("ä \u{1b}[1m \"\n");
        let entries: Vec<Entry> = cells.iter().map(|&cell| entry(cell, count, &words)).collect();
        let recorded = record_with(&place.path, &survey, &entries, &[]).unwrap();
        prop_assert_eq!(recorded.conflicts, []);
        let places: Vec<Option<usize>> = cells.iter().map(|&cell| Some(cell)).collect();
        prop_assert_eq!(recorded.places, places);

        let after = place.content();
        let now = Document::read(&after);
        prop_assert_eq!(now.cells().len(), document.cells().len());
        let (old_around, new_around) = (document.around(), now.around());
        prop_assert_eq!(shown(new_around.0), shown(old_around.0));
        prop_assert_eq!(shown(new_around.1), shown(old_around.1));
        let mut ends = (document.array().span.start, now.array().span.start);
        let count = count.to_string();
        for cell in 0..now.cells().len() {
            let (old, new) = (&document.cells()[cell], &now.cells()[cell]);
            // What stands between two cells.
            prop_assert_eq!(
                shown(&after[ends.1..new.span.start]),
                shown(&before[ends.0..old.span.start])
            );
            let wanted: &[Wanted<'_>] = if cells.contains(&cell) {
                &[("execution_count", &count), ("outputs", &words)]
            } else {
                &[]
            };
            only_these_changed((old, &before), (new, &after), wanted)?;
            ends = (old.span.end, new.span.end);
        }
        // The same again writes the same.
        let again = place.survey();
        record_with(&place.path, &again, &entries, &[]).unwrap();
        prop_assert_eq!(shown(&place.content()), shown(&after));
    }

    #[test]
    fn what_is_said_about_cells_and_notebook_is_added_to_what_there_was(
        Generated(before) in notebook_with_cells(),
        which in any::<prop::sample::Index>(),
    ) {
        let document = Document::read(&before);
        let cell = which.index(document.cells().len());
        prop_assume!(document.kind(cell) == "code");
        let place = Place::with(&before);
        let mut timed = entry(cell, 1, "[]");
        timed.metadata = Some(("execution", r#"{"a":["b"]}"#.to_owned()));
        let set = [("kernelspec", r#"{"name":"k"}"#.to_owned())];
        record_with(&place.path, &place.survey(), &[timed], &set).unwrap();
        let after = place.content();
        let now = Document::read(&after);
        let pairs = [
            (document.cells()[cell].get("metadata"), now.cells()[cell].get("metadata"), "execution"),
            (document.top.get("metadata"), now.top.get("metadata"), "kernelspec"),
        ];
        for (old, new, name) in pairs {
            let (old, new) = (old.unwrap(), new.unwrap());
            let set = new.get(name);
            prop_assert!(set.is_some(), "{name} is missing");
            // Without what was set, the same members with the same values in the same order.
            let rest = |node: &Node, bytes: &[u8]| -> Vec<(String, String)> {
                let others = node.members().iter().filter(|member| member.name != name);
                let pair = |member: &crate::support::json::Member| {
                    (shown(&bytes[member.key.clone()]), shown(member.node.raw(bytes)))
                };
                others.map(pair).collect()
            };
            prop_assert_eq!(rest(new, &after), rest(old, &before));
        }
        // The other cells are as they were.
        for other in (0..now.cells().len()).filter(|other| *other != cell) {
            prop_assert_eq!(shown(now.raw(other)), shown(document.raw(other)));
        }
    }
}
