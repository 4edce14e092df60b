//! Cells and notebooks in the editor of the user.

use crate::context::{CommandOutput, Context, THREE_CELLS};
use crate::on_terminal::run_on_terminal;

/// Runs a command on a terminal with an editor that is a shell script; `$1` is the file with the text.
fn edit(context: &Context, arguments: &[&str], script: &str) -> CommandOutput {
    context.file("editor.sh", script);
    let editor = "sh editor.sh";
    run_on_terminal(context, arguments, &[("EDITOR", editor)], "")
}

/// The path of the kept text, which an error names.
fn kept_text(result: &CommandOutput) -> String {
    let (_, rest) = result.stdout.split_once("your text is in ").unwrap();
    let path = rest.split(['\r', '\n']).next().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let dir = std::path::Path::new(path).parent().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    text
}

#[test]
fn a_cell_is_edited_and_the_rest_of_the_file_stays() {
    let context = Context::with_notebook();
    let script = "cp \"$1\" seen; echo \"$1\" > name; sed -i 's/42/43/' \"$1\"";
    let result = edit(&context, &["notebook", "edit", "a.ipynb", "1"], script).exits(0);
    assert!(
        result.stdout.contains("Replaced cell 1 (code)"),
        "{}",
        result.stdout
    );
    assert_eq!(context.content("seen"), "answer = 42\nprint(answer)\n");
    assert!(context.content("name").ends_with("/a-cell-1.py\n"));
    assert!(!std::path::Path::new(context.content("name").trim()).exists());
    assert_eq!(
        context.content("a.ipynb"),
        THREE_CELLS.replace("answer = 42", "answer = 43")
    );
    // Only a line break at the end of the file is added and removed again.
    let script = "printf 'x = 1\\n\\n' > \"$1\"; echo \"$1\" > name";
    edit(&context, &["notebook", "edit", "a.ipynb", "title"], script).exits(0);
    assert!(context.content("name").ends_with("/a-cell-0.md\n"));
    let cell = context
        .run(&["read", "a.ipynb:cells=0", "--json"])
        .exits(0)
        .json();
    assert_eq!(cell["text"], "# %% [markdown] cell:0\nx = 1\n\n");
}

#[test]
fn an_unchanged_text_and_a_failed_editor_write_nothing() {
    let context = Context::with_notebook();
    let arguments = ["notebook", "edit", "a.ipynb", "1"];
    let result = edit(&context, &arguments, "touch \"$1\"").exits(0);
    assert!(
        result.stdout.contains("nothing was written"),
        "{}",
        result.stdout
    );
    let result = edit(&context, &arguments, "echo lost > \"$1\"; exit 3").exits(2);
    assert!(
        result.stdout.contains("The editor `sh editor.sh` failed"),
        "{}",
        result.stdout
    );
    assert_eq!(kept_text(&result), "lost\n");
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    // Without a terminal there is no editor.
    let result = context.run(&arguments).exits(2);
    assert!(
        result
            .stderr
            .contains("Content is required for edit action"),
        "{}",
        result.stderr
    );
    let result = context.run(&["edit", "a.ipynb"]).exits(2);
    assert!(
        result.stderr.contains("The text to replace is missing"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_change_during_the_edit_is_merged_or_the_text_is_kept() {
    let context = Context::with_notebook();
    let binary = env!("CARGO_BIN_EXE_cellwright");
    let arguments = ["notebook", "edit", "a.ipynb", "1"];
    let other = format!(
        "{binary} notebook edit a.ipynb 2 --source 'other = 1' -q >/dev/null\nsed -i 's/42/43/' \"$1\""
    );
    let result = edit(&context, &arguments, &other).exits(0);
    assert!(
        result.stdout.contains("both changes are in the file now"),
        "{}",
        result.stdout
    );
    let content = context.content("a.ipynb");
    assert!(content.contains("other = 1") && content.contains("answer = 43"));
    let same = format!(
        "{binary} notebook edit a.ipynb 1 --source 'theirs = 1' -q >/dev/null\necho 'mine = 1' > \"$1\""
    );
    let result = edit(&context, &arguments, &same).exits(3);
    assert_eq!(kept_text(&result), "mine = 1\n");
    assert!(context.content("a.ipynb").contains("theirs = 1"));
}

#[test]
fn a_notebook_is_edited_as_text() {
    let context = Context::with_notebook();
    let script = "cp \"$1\" seen; sed -i 's/42/43/' \"$1\"";
    edit(&context, &["edit", "a.ipynb"], script).exits(0);
    let before = context.content("seen");
    assert!(
        before.starts_with("# %% [markdown] cell:0\n# A tour\n")
            && before.ends_with("# %% [code] cell:2\nanswer + 1.0\n"),
        "{before}"
    );
    assert_eq!(
        context.content("a.ipynb"),
        THREE_CELLS.replace("answer = 42", "answer = 43")
    );
    let result = edit(&context, &["edit", "a.ipynb"], "echo 'no marker' > \"$1\"").exits(2);
    assert_eq!(kept_text(&result), "no marker\n");
    let result = edit(&context, &["edit", "a.ipynb"], ": > \"$1\"").exits(2);
    assert!(
        result.stdout.contains("The edited text is empty"),
        "{}",
        result.stdout
    );
    assert!(context.content("a.ipynb").contains("answer = 43"));
}
