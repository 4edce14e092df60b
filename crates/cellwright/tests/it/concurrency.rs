//! Several writers of one notebook: every update is in the file, or its writer reports a conflict.

use std::process::Child;

use crate::context::Context;

const CELLS: usize = 6;
const WRITERS: usize = 4;
const ROUNDS: usize = 25;

fn notebook() -> String {
    let cells: Vec<String> = (0..CELLS)
        .map(|n| {
            format!(
                r#"{{"cell_type":"code","execution_count":null,"id":"cell-{n}","metadata":{{}},"outputs":[],"source":["start"]}}"#
            )
        })
        .collect();
    format!(
        "{{\"cells\":[{}],\"metadata\":{{}},\"nbformat\":4,\"nbformat_minor\":5}}",
        cells.join(",")
    )
}

/// A random number generator with a fixed seed, so that every run tries similar interleavings.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }
}

#[test]
fn concurrent_inserts_are_all_written() {
    let context = Context::new();
    context.file("a.ipynb", notebook());
    for round in 0..ROUNDS {
        let sources: Vec<String> = (0..WRITERS)
            .map(|w| format!("round {round} writer {w}"))
            .collect();
        let children: Vec<Child> = sources
            .iter()
            .map(|source| {
                let arguments = ["notebook", "insert", "a.ipynb", "--source", source];
                context.command(&arguments).spawn().unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let text = context.run(&["read", "a.ipynb"]).exits(0).stdout;
        for source in &sources {
            assert_eq!(text.matches(source.as_str()).count(), 1, "{source}\n{text}");
        }
    }
}

#[test]
fn concurrent_edits_are_written_or_reported_as_conflicts() {
    let context = Context::new();
    let mut numbers = RandomNumbers(7);
    let (mut merged, mut refused) = (0, 0);
    for round in 0..ROUNDS {
        context.file("a.ipynb", notebook());
        let revision = context.revision("a.ipynb");
        let plans: Vec<(usize, String)> = (0..WRITERS)
            .map(|writer| {
                (
                    numbers.below(CELLS),
                    format!("round {round} writer {writer}"),
                )
            })
            .collect();
        let children: Vec<Child> = plans
            .iter()
            .map(|(cell, source)| {
                let cell = cell.to_string();
                let arguments = [
                    "notebook", "edit", "a.ipynb", &cell, "--source", source, "--rev", &revision,
                ];
                context.command(&arguments).spawn().unwrap()
            })
            .collect();
        let codes: Vec<Option<i32>> = children
            .into_iter()
            .map(|child| child.wait_with_output().unwrap().status.code())
            .collect();
        let text = context.run(&["read", "a.ipynb"]).exits(0).stdout;
        for ((_, source), code) in plans.iter().zip(&codes) {
            let is_in_file = text.contains(source.as_str());
            match code {
                Some(0) => assert!(is_in_file, "{source} was reported as written\n{text}"),
                Some(3) => assert!(!is_in_file, "{source} was reported as refused\n{text}"),
                other => panic!("unexpected exit code {other:?}"),
            }
        }
        merged += codes.iter().filter(|code| **code == Some(0)).count();
        refused += codes.iter().filter(|code| **code == Some(3)).count();
    }
    // The test needs merges and conflicts.
    assert!(
        merged > ROUNDS && refused > 0,
        "{merged} merged, {refused} refused"
    );
}

#[test]
fn concurrent_inserts_into_a_new_file_are_all_written() {
    for _ in 0..ROUNDS {
        let context = Context::new();
        let children: Vec<Child> = ["one", "two", "three"]
            .iter()
            .map(|source| {
                let arguments = [
                    "notebook",
                    "insert",
                    "new.ipynb",
                    "--create",
                    "--source",
                    source,
                ];
                context.command(&arguments).spawn().unwrap()
            })
            .collect();
        for child in children {
            assert!(child.wait_with_output().unwrap().status.success());
        }
        let text = context.run(&["read", "new.ipynb"]).exits(0).stdout;
        assert_eq!(text.matches("# %% [code]").count(), 3, "{text}");
    }
}
