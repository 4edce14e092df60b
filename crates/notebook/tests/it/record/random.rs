//! Recording into random notebooks.

use cellwright_notebook::Cells;
use cellwright_notebook::file::CellUpdate;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{NotebookFixture, record_with, stream_output, update};
use crate::generate::{Generated, notebook_with_cells};
use crate::support::json::{Document, Node};
use crate::support::{cases, lossy};

/// Name and expected value of a member.
type ExpectedMember<'w> = (&'w str, &'w str);

/// Asserts that `after` differs from `before` only in the expected values. Members that were
/// missing come last.
fn assert_only_changed_members(
    before: (&Node, &[u8]),
    after: (&Node, &[u8]),
    expected_members: &[ExpectedMember<'_>],
) -> Result<(), TestCaseError> {
    let ((old, old_bytes), (new, new_bytes)) = (before, after);
    let mut at = (old.span.start, new.span.start);
    for (index, member) in old.members().iter().enumerate() {
        let other = new.members().get(index);
        prop_assert!(other.is_some(), "{} is gone", member.name);
        let other = other.unwrap();
        // The text before the value: white space, name, colon.
        let lead = &old_bytes[at.0..member.node.span.start];
        let other_lead = &new_bytes[at.1..other.node.span.start];
        prop_assert_eq!(lossy(other_lead), lossy(lead));
        let last = old.members()[index + 1..]
            .iter()
            .all(|later| later.name != member.name);
        let value = expected_members
            .iter()
            .find(|(name, _)| last && *name == member.name);
        let expected = match value {
            Some((_, value)) => value.as_bytes(),
            None => member.node.raw(old_bytes),
        };
        prop_assert_eq!(lossy(other.node.raw(new_bytes)), lossy(expected));
        at = (member.node.span.end, other.node.span.end);
    }
    let count = old.members().len();
    let missing: Vec<&ExpectedMember<'_>> = expected_members
        .iter()
        .filter(|(name, _)| old.get(name).is_none())
        .collect();
    let added = &new.members()[count..];
    prop_assert_eq!(added.len(), missing.len());
    for (name, value) in missing {
        let found = added.iter().find(|member| member.name == *name);
        prop_assert!(found.is_some(), "{name} is missing");
        prop_assert_eq!(lossy(found.unwrap().node.raw(new_bytes)), *value);
    }
    at.1 = new.members().last().map_or(at.1, |last| last.node.span.end);
    let rest = (
        &old_bytes[at.0..old.span.end],
        &new_bytes[at.1..new.span.end],
    );
    prop_assert_eq!(lossy(rest.1), lossy(rest.0));
    Ok(())
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn record_replaces_only_outputs_and_counts(
        Generated(before) in notebook_with_cells(),
        chosen in vec(any::<bool>(), 6),
        count in 0..2_000_u64,
    ) {
        let fixture = NotebookFixture::with(&before);
        let survey = fixture.survey();
        let document = Document::read(&before);
        let is_code = |cell: &usize| document.kind(*cell) == "code" && chosen[*cell];
        let cells: Vec<usize> = (0..survey.count()).filter(is_code).collect();
        let outputs = stream_output("ä \u{1b}[1m \"\n");
        let updates: Vec<CellUpdate> = cells.iter().map(|&cell| update(cell, count, &outputs)).collect();
        let report = record_with(&fixture.path, &survey, &updates, &[]).unwrap();
        prop_assert_eq!(report.conflicts, []);
        let indexes: Vec<Option<usize>> = cells.iter().map(|&cell| Some(cell)).collect();
        prop_assert_eq!(report.cell_indexes, indexes);

        let after = fixture.content();
        let now = Document::read(&after);
        prop_assert_eq!(now.cells().len(), document.cells().len());
        let (old_around, new_around) = (document.around(), now.around());
        prop_assert_eq!(lossy(new_around.0), lossy(old_around.0));
        prop_assert_eq!(lossy(new_around.1), lossy(old_around.1));
        let mut ends = (document.array().span.start, now.array().span.start);
        let count = count.to_string();
        for cell in 0..now.cells().len() {
            let (old, new) = (&document.cells()[cell], &now.cells()[cell]);
            // The text between two cells.
            prop_assert_eq!(
                lossy(&after[ends.1..new.span.start]),
                lossy(&before[ends.0..old.span.start])
            );
            let expected_members: &[ExpectedMember<'_>] = if cells.contains(&cell) {
                &[("execution_count", &count), ("outputs", &outputs)]
            } else {
                &[]
            };
            assert_only_changed_members((old, &before), (new, &after), expected_members)?;
            ends = (old.span.end, new.span.end);
        }
        // Recording again writes the same bytes.
        let again = fixture.survey();
        record_with(&fixture.path, &again, &updates, &[]).unwrap();
        prop_assert_eq!(lossy(&fixture.content()), lossy(&after));
    }

    #[test]
    fn metadata_is_added_to_existing_metadata(
        Generated(before) in notebook_with_cells(),
        which in any::<prop::sample::Index>(),
    ) {
        let document = Document::read(&before);
        let cell = which.index(document.cells().len());
        prop_assume!(document.kind(cell) == "code");
        let fixture = NotebookFixture::with(&before);
        let mut with_times = update(cell, 1, "[]");
        with_times.metadata = Some(("execution", r#"{"a":["b"]}"#.to_owned()));
        let set = [("kernelspec", r#"{"name":"k"}"#.to_owned())];
        record_with(&fixture.path, &fixture.survey(), &[with_times], &set).unwrap();
        let after = fixture.content();
        let now = Document::read(&after);
        let pairs = [
            (document.cells()[cell].get("metadata"), now.cells()[cell].get("metadata"), "execution"),
            (document.top.get("metadata"), now.top.get("metadata"), "kernelspec"),
        ];
        for (old, new, name) in pairs {
            let (old, new) = (old.unwrap(), new.unwrap());
            let set = new.get(name);
            prop_assert!(set.is_some(), "{name} is missing");
            // All other members have the same values in the same order.
            let rest = |node: &Node, bytes: &[u8]| -> Vec<(String, String)> {
                let others = node.members().iter().filter(|member| member.name != name);
                let pair = |member: &crate::support::json::Member| {
                    (lossy(&bytes[member.key.clone()]), lossy(member.node.raw(bytes)))
                };
                others.map(pair).collect()
            };
            prop_assert_eq!(rest(new, &after), rest(old, &before));
        }
        // The other cells are unchanged.
        for other in (0..now.cells().len()).filter(|other| *other != cell) {
            prop_assert_eq!(lossy(now.raw(other)), lossy(document.raw(other)));
        }
    }
}
