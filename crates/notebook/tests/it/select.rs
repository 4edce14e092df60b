//! Selectors: their spellings and errors.

use cellwright_notebook::select::{IndexRange, Part, Selector, View, split};

fn lines(argument: &str) -> Vec<(usize, Option<usize>)> {
    match split(argument, &|path| path == "a.ipynb") {
        Ok((
            "a.ipynb",
            Selector {
                part: Part::Lines(ranges),
                ..
            },
        )) => ranges
            .iter()
            .map(|range| (range.start, range.end))
            .collect(),
        other => panic!("{argument}: {other:?}"),
    }
}

#[test]
fn line_ranges_are_read_sorted_and_joined() {
    assert_eq!(lines("a.ipynb:5"), [(5, Some(5))]);
    assert_eq!(lines("a.ipynb:5-"), [(5, None)]);
    assert_eq!(lines("a.ipynb:L5-L9"), [(5, Some(9))]);
    assert_eq!(lines("a.ipynb:5..9"), [(5, Some(9))]);
    assert_eq!(lines("a.ipynb:5+3"), [(5, Some(7))]);
    assert_eq!(
        lines("a.ipynb:20-30,5-9,10"),
        [(5, Some(10)), (20, Some(30))]
    );
    assert_eq!(lines("a.ipynb:5-,9-12"), [(5, None)]);
}

#[test]
fn invalid_selectors_name_the_problem() {
    let error = |argument: &str| {
        split(argument, &|path| path == "a.ipynb")
            .map_or_else(|e| e.to_string(), |s| format!("{s:?}"))
    };
    assert_eq!(
        error("a.ipynb:0"),
        "Line selector 0 is invalid; lines are 1-indexed. Use :1."
    );
    assert_eq!(
        error("a.ipynb:9-5"),
        "Invalid range 9-5: end must be >= start."
    );
    assert_eq!(
        error("a.ipynb:9+0"),
        "Invalid range 9+0: count must be >= 1."
    );
    assert!(error("a.ipynb:nonsense").starts_with("Invalid selector ':nonsense'."));
    assert!(error("a.ipynb:cells=x!").starts_with("Invalid selector ':cells=x!'."));
    assert!(error("a.ipynb:1-2-3").starts_with("Invalid selector ':1-2-3'."));
    assert_eq!(
        error("a.ipynb:1-5:cells=2"),
        "Selectors ':1-5' and ':cells=2' cannot be combined."
    );
    assert_eq!(
        error("a.ipynb:raw:cells=2"),
        "Selectors ':raw' and ':cells=2' cannot be combined."
    );
}

#[test]
fn ids_are_accepted_in_every_spelling() {
    let part = |argument: &str| match split(argument, &|path| path == "a.ipynb") {
        Ok(("a.ipynb", selector)) => selector.part,
        other => panic!("{argument}: {other:?}"),
    };
    let ids = Part::Ids(vec!["ab12".to_owned(), "12".to_owned()]);
    assert_eq!(part("a.ipynb:id=ab12,12"), ids);
    assert_eq!(part("a.ipynb:id:ab12,12:ids"), ids);
    let id = Part::Ids(vec!["ab12".to_owned()]);
    assert_eq!(part("a.ipynb:cells=ab12"), id);
    assert_eq!(part("a.ipynb:cells:ab12"), id);
    let cells = Part::Cells(vec![IndexRange {
        start: 3,
        end: Some(5),
    }]);
    assert_eq!(part("a.ipynb:cell:3-5"), cells);
}

#[test]
fn existing_file_name_wins_over_selector() {
    let found = split("a.ipynb:5", &|path| path == "a.ipynb:5");
    assert_eq!(found, Ok(("a.ipynb:5", Selector::default())));
    let raw = split("a.ipynb:5:raw:2-3", &|path| path == "a.ipynb:5");
    let expected = Selector {
        view: View::Raw,
        part: Part::Lines(vec![IndexRange {
            start: 2,
            end: Some(3),
        }]),
        ..Selector::default()
    };
    assert_eq!(raw, Ok(("a.ipynb:5", expected)));
    // No file exists: the colon belongs to the path unless a selector follows it.
    let plain = split("C:stuff", &|_| false);
    assert_eq!(plain, Ok(("C:stuff", Selector::default())));
    assert_eq!(
        split("no.ipynb:raw", &|_| false).map(|(path, _)| path),
        Ok("no.ipynb")
    );
}
