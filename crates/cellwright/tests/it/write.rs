//! `write`, and the checks that prevent a loss of content.

use insta::assert_snapshot;

use crate::context::{Context, THREE_CELLS};

#[test]
fn writing_the_text_of_read_changes_nothing() {
    let context = Context::with_notebook();
    for selector in ["", ":ids", ":outputs"] {
        let text = context.run(&["read", &format!("a.ipynb{selector}")]).stdout;
        let result = context.run_with_input(&["write", "a.ipynb"], text).exits(0);
        assert_eq!(context.content("a.ipynb"), THREE_CELLS, "{selector}");
        assert!(result.stderr.contains("nothing written"));
    }
}

#[test]
fn crlf_and_a_byte_order_mark_are_ignored() {
    let context = Context::with_notebook();
    let text = context.run(&["read", "a.ipynb"]).stdout;
    let crlf_text = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    context
        .run_with_input(&["write", "a.ipynb"], crlf_text)
        .exits(0);
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn only_cells_whose_text_differs_are_changed() {
    let context = Context::with_notebook();
    let text = "\
# %% [code] cell:2
answer + 2.0
# %% [markdown] cell:0
# A tour

of three cells
# %% [raw]
new
# %% [code] cell:7
from nowhere
# %% [sql]
";
    let result = context.run_with_input(&["write", "a.ipynb"], text).exits(0);
    assert_snapshot!("rewritten_output", result.output_masked());
    assert_snapshot!("rewritten_file", context.content("a.ipynb"));
}

#[test]
fn text_before_the_first_marker_is_refused() {
    let context = Context::with_notebook();
    let result = context.run_with_input(&["write", "a.ipynb"], "import os\n# %% [code]\n");
    assert_snapshot!(result.exits(2).output_masked());
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn text_without_markers_and_json_are_refused() {
    let context = Context::with_notebook();
    let result = context.run_with_input(&["write", "a.ipynb"], "import os\nprint(1)\n");
    assert_snapshot!("text_without_markers", result.exits(2).output_masked());
    let json = context.run_with_input(&["write", "a.ipynb"], THREE_CELLS);
    assert_snapshot!("text_is_json", json.exits(2).output_masked());
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn percent_format_is_accepted() {
    let context = Context::new();
    let text = "\
# ---
# jupyter:
#   kernelspec:
#     name: python3
# ---

# %% [markdown]
# # Prices
#
# of one year

# %% Load data
import os

# %% tags=[\"fast\"]
# %%time
print(os.name)
";
    let result = context.run_with_input(&["write", "p.ipynb", "--create"], text);
    assert_snapshot!("percent_format", result.exits(0).output_masked());
    let expected = "\
# %% [markdown] cell:0
# Prices

of one year
# %% [code] cell:1
import os
# %% [code] cell:2
# %%time
print(os.name)
";
    assert_eq!(context.run(&["read", "p.ipynb"]).stdout, expected);
}

#[test]
fn source_lines_that_look_like_markers_of_other_tools_are_kept() {
    let context = Context::new();
    let content = r##"{"cells": [{"cell_type": "raw", "metadata": {}, "source": "# %%\n#%%\n# %% title\n # %%\n# %%%\n#%%%"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}"##;
    context.file("a.ipynb", content);
    let text = context.run(&["read", "a.ipynb"]).stdout;
    assert_eq!(
        text,
        "# %% [raw] cell:0\n# %%%\n#%%%\n# %%% title\n # %%\n# %%%%\n#%%%%\n"
    );
    context.run_with_input(&["write", "a.ipynb"], text).exits(0);
    assert_eq!(context.content("a.ipynb"), content);
}

#[test]
fn an_empty_pipe_does_not_empty_the_notebook() {
    let context = Context::with_notebook();
    assert_snapshot!(
        context
            .run_with_input(&["write", "a.ipynb"], "")
            .exits(2)
            .output_masked()
    );
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
    // `read` prints one line break for a notebook without cells.
    context.run_with_input(&["write", "a.ipynb"], "\n").exits(0);
    assert!(context.content("a.ipynb").contains("\"cells\": [],"));
    assert_eq!(context.run(&["read", "a.ipynb"]).stdout, "\n");
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let context = Context::with_notebook();
    let result = context.run_with_input(&["write", "a.ipynb"], b"# %% [code]\ncaf\xe9\n");
    assert_snapshot!(result.exits(2).output_masked());
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn a_missing_file_is_created_only_with_the_flag() {
    let context = Context::new();
    let text = "# %% [code]\nprint(1)\n# %% [markdown]\n# Hé\n";
    let refused = context.run_with_input(&["write", "new.ipynb"], text);
    assert_snapshot!("missing_without_create", refused.exits(2).output_masked());
    assert!(!context.path("new.ipynb").exists());
    let result = context.run_with_input(&["write", "new.ipynb", "--create"], text);
    assert_snapshot!("missing_with_create", result.exits(0).output_masked());
    assert_snapshot!("created_file", context.content("new.ipynb"));
    // The same text produces the same file.
    context
        .run_with_input(&["write", "again.ipynb", "--create"], text)
        .exits(0);
    assert_eq!(context.content("again.ipynb"), context.content("new.ipynb"));
}

#[test]
fn the_text_can_be_read_from_a_file() {
    let context = Context::with_notebook();
    context.file("text.txt", "# %% [code] cell:2\nonly this\n");
    context.run(&["write", "a.ipynb", "text.txt"]).exits(0);
    let text = context.run(&["read", "a.ipynb"]).stdout;
    assert_eq!(text, "# %% [code] cell:0\nonly this\n");
}

#[test]
fn a_write_to_an_old_revision_is_merged_or_refused() {
    let context = Context::with_notebook();
    let revision = context.revision("a.ipynb");
    context
        .run(&[
            "notebook",
            "edit",
            "a.ipynb",
            "0",
            "--source",
            "# Other title",
        ])
        .exits(0);
    context
        .run(&["notebook", "insert", "a.ipynb", "1", "--source", "inserted"])
        .exits(0);
    let ours = "\
# %% [markdown] cell:0
# A tour

of three cells
# %% [code] cell:1
answer = 42
print(answer)
# %% [code] cell:2
answer + 2.0
";
    let merged = context.run_with_input(&["write", "a.ipynb", "--rev", &revision], ours);
    assert_snapshot!("merged", merged.exits(0).output_masked());
    assert_snapshot!("merged_text", context.run(&["read", "a.ipynb"]).stdout);
    let before = context.content("a.ipynb");
    let conflicting = ours.replace("# A tour", "# My title");
    let refused = context.run_with_input(&["write", "a.ipynb", "--rev", &revision], conflicting);
    assert_snapshot!("refused", refused.exits(3).output_masked());
    assert_eq!(context.content("a.ipynb"), before);
    let unknown = context.run_with_input(&["write", "a.ipynb", "--rev", "0123456789"], ours);
    assert_snapshot!("unknown_revision", unknown.exits(3).output_masked());
    assert_eq!(context.content("a.ipynb"), before);
}

#[test]
fn a_new_modification_time_is_no_conflict() {
    let context = Context::with_notebook();
    let revision = context.revision("a.ipynb");
    let file = std::fs::File::options()
        .append(true)
        .open(context.path("a.ipynb"))
        .unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    let arguments = [
        "notebook",
        "edit",
        "a.ipynb",
        "2",
        "--source",
        "x",
        "--rev",
        &revision[..10],
    ];
    let result = context.run(&arguments).exits(0);
    assert!(!result.stderr.contains("merged"), "{}", result.stderr);
}

/// A notebook of raw cells without ids.
fn notebook_without_ids(sources: &[&str]) -> String {
    let cells: Vec<String> = sources
        .iter()
        .map(|source| format!(r#"{{"cell_type":"raw","metadata":{{}},"source":"{source}"}}"#))
        .collect();
    format!(
        r#"{{"cells":[{}],"metadata":{{}},"nbformat":4,"nbformat_minor":4}}"#,
        cells.join(",")
    )
}

#[test]
fn a_changed_cell_without_an_id_is_a_conflict() {
    let theirs = notebook_without_ids(&["a=1", "b=2 # colleague", "n", "c=3"]);
    for ours in [
        &["notebook", "delete", "n.ipynb", "1"][..],
        &["notebook", "move", "n.ipynb", "1", "--to", "0"],
        &["notebook", "edit", "n.ipynb", "1", "--source", "x"],
        &[
            "notebook", "insert", "n.ipynb", "--after", "1", "--source", "x",
        ],
    ] {
        let context = Context::new();
        context.file("n.ipynb", notebook_without_ids(&["a=1", "b=2", "c=3"]));
        let revision = context.revision("n.ipynb");
        context.file("n.ipynb", &theirs);
        let mut arguments = ours.to_vec();
        arguments.extend(["--rev", &revision]);
        context.run(&arguments).exits(3);
        assert_eq!(context.content("n.ipynb"), theirs, "{ours:?}");
    }
}

#[test]
fn a_revision_of_another_notebook_is_a_conflict() {
    let context = Context::with_notebook();
    context.file("n.ipynb", notebook_without_ids(&["a=1", "b=2", "c=3"]));
    let revision = context.revision("n.ipynb");
    let arguments = ["notebook", "delete", "a.ipynb", "1", "--rev", &revision];
    let result = context.run(&arguments).exits(3);
    assert!(
        result.stderr.contains("shares no cell"),
        "{}",
        result.stderr
    );
    assert_eq!(context.content("a.ipynb"), THREE_CELLS);
}

#[test]
fn an_invalid_revision_is_a_usage_error() {
    let context = Context::with_notebook();
    for revision in ["", "1234567", "zzzzzzzz", "HEAD"] {
        let arguments = ["notebook", "delete", "a.ipynb", "1", "--rev", revision];
        context.run(&arguments).exits(2);
    }
    let arguments = ["write", "new.ipynb", "--create", "--rev", "deadbeef00"];
    context.run_with_input(&arguments, "# %% [code]\n").exits(2);
    assert!(!context.path("new.ipynb").exists());
}

#[test]
fn a_damaged_baseline_is_removed_and_causes_a_conflict() {
    let context = Context::with_notebook();
    let revision = context.revision("a.ipynb");
    let baseline = context
        .home()
        .join(".cache/cellwright/revisions")
        .join(&revision);
    assert!(baseline.exists());
    context
        .run(&["notebook", "edit", "a.ipynb", "2", "--source", "theirs"])
        .exits(0);
    for damage in [
        "",
        "cellwright baseline 1\ncode h - \"a\\\nend 1\n",
        "noise",
    ] {
        std::fs::write(&baseline, damage).unwrap();
        let arguments = [
            "notebook", "edit", "a.ipynb", "0", "--source", "x", "--rev", &revision,
        ];
        context.run(&arguments).exits(3);
        assert!(!baseline.exists(), "{damage:?} was not removed");
    }
}
