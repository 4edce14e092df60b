//! `notebook undo` and `notebook redo`.

use crate::context::{Context, THREE_CELLS};

fn edit(context: &Context, cell: &str, source: &str) {
    context
        .run(&["notebook", "edit", "a.ipynb", cell, "--source", source])
        .exits(0);
}

#[test]
fn changes_are_undone_one_by_one_and_redone() {
    let context = Context::with_notebook();
    edit(&context, "1", "first = 1");
    let first = context.content("a.ipynb");
    context
        .run(&["notebook", "delete", "a.ipynb", "0"])
        .exits(0);
    let second = context.content("a.ipynb");
    let undone = context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    assert_eq!(context.content("a.ipynb"), first);
    assert!(
        undone.stdout.contains("cells: 1 added") && undone.stdout.contains("+# A tour\n"),
        "{}",
        undone.stdout
    );
    let report = context
        .run(&["notebook", "undo", "a.ipynb", "--json"])
        .exits(0)
        .json();
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    assert_eq!(
        (&report["undo_left"], &report["redo_left"]),
        (&0.into(), &2.into())
    );
    let nothing = context.run(&["notebook", "undo", "a.ipynb"]).exits(2);
    assert!(
        nothing
            .stderr
            .contains("There is no change of a.ipynb to undo"),
        "{}",
        nothing.stderr
    );
    for content in [&first, &second] {
        context.run(&["notebook", "redo", "a.ipynb"]).exits(0);
        assert_eq!(&context.content("a.ipynb"), content);
    }
    context.run(&["notebook", "redo", "a.ipynb"]).exits(2);
    // A new change after an undo replaces the changes that could be redone.
    context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    edit(&context, "2", "other = 1");
    context.run(&["notebook", "redo", "a.ipynb"]).exits(2);
    context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    assert_eq!(context.content("a.ipynb"), first);
}

#[test]
fn a_return_to_an_earlier_content_is_a_change_of_its_own() {
    let context = Context::with_notebook();
    edit(&context, "2", "x = 1");
    edit(&context, "2", "answer + 1.0");
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    assert!(context.content("a.ipynb").contains("x = 1"));
    context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    context.run(&["notebook", "undo", "a.ipynb"]).exits(2);
}

#[test]
fn a_run_is_one_change() {
    let context = Context::with_notebook();
    edit(&context, "2", "answer + 2");
    let before = context.content("a.ipynb");
    let mut run = context.command(&["run", "a.ipynb", "-q", "--backend", "runner"]);
    if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
        run.arg("--python").arg(python);
    }
    assert!(run.output().unwrap().status.success());
    assert_ne!(context.content("a.ipynb"), before);
    context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    assert_eq!(context.content("a.ipynb"), before);
    context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn changes_of_other_programs_are_not_undone() {
    let context = Context::with_notebook();
    let nothing = context.run(&["notebook", "undo", "a.ipynb"]).exits(2);
    assert!(nothing.stderr.contains("no change"), "{}", nothing.stderr);
    edit(&context, "1", "ours = 1");
    let foreign = context.content("a.ipynb").replace("A tour", "A trip");
    context.file("a.ipynb", &foreign);
    let refused = context.run(&["notebook", "undo", "a.ipynb"]).exits(3);
    assert!(
        refused.stderr.contains("Another program changed a.ipynb"),
        "{}",
        refused.stderr
    );
    assert_eq!(context.content("a.ipynb"), foreign);
    // Changes after it can be undone, up to the content that the other program wrote.
    edit(&context, "1", "ours = 2");
    context.run(&["notebook", "undo", "a.ipynb"]).exits(0);
    assert_eq!(context.content("a.ipynb"), foreign);
    context.run(&["notebook", "undo", "a.ipynb"]).exits(2);
    let stored = context.home().join(".cache/cellwright/history");
    let mode = std::os::unix::fs::PermissionsExt::mode(&stored.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
}
