//! `parse`: the blocks of an edited text.

use cellwright_notebook::{CellKind, EditError, MarkerText, Notice, UnmarkedText, parse};

fn sources(text: &str) -> Vec<String> {
    parse(text)
        .map(|parsed| {
            parsed
                .blocks
                .into_iter()
                .map(|block| block.source)
                .collect()
        })
        .unwrap_or_default()
}

#[test]
fn sources_end_where_the_next_marker_begins() {
    let m = "# %% [code]";
    assert_eq!(sources(m), [""]);
    assert_eq!(sources(&format!("{m}\n{m}")), ["", ""]);
    assert_eq!(sources(&format!("{m}\nx\n{m}\n")), ["x", ""]);
    assert_eq!(sources(&format!("{m}\n\n\n{m}\ny")), ["\n", "y"]);
    assert_eq!(sources(&format!("{m}\nx\n\n{m}")), ["x\n", ""]);
    assert_eq!(sources(&format!("\u{feff}{m}\r\nx\r\n{m}\r\n")), ["x", ""]);
    assert_eq!(sources(&format!("{m}\nx\r\n{m}")), ["x\r", ""]);
    assert_eq!(sources(""), [""; 0]);
}

#[test]
fn text_before_the_first_marker_is_rejected() {
    use UnmarkedText::{BeforeMarker, NoMarker, NotebookJson};
    for (text, line, expected) in [
        ("\n# %% [code]", 1, BeforeMarker),
        ("import os", 1, NoMarker),
        (" ", 1, NoMarker),
        ("# %% [sql]", 1, NoMarker),
        ("{\n \"cells\": []\n}", 1, NotebookJson),
        ("{}", 1, NoMarker),
        ("# ---\n# ---", 1, NoMarker),
        ("# ---\n# a\n# ---\n\nimport os\n# %%", 5, BeforeMarker),
    ] {
        let Err(EditError::NoFirstMarker {
            line: at, content, ..
        }) = parse(text)
        else {
            panic!("{text:?} was accepted");
        };
        assert_eq!((at, content), (line, expected), "{text:?}");
    }
}

#[test]
fn percent_format_is_read_as_its_cells() {
    let text = "\
# ---
# jupyter:
#   kernelspec: x
# ---

# %% [markdown]
# # Title
#
# text

# %% Load data tags=[\"x\"]
import os


# %% [md]
\"\"\"
quoted
\"\"\"

#%%
# not Markdown

";
    let parsed = parse(text).unwrap();
    let cells: Vec<(CellKind, &str)> = parsed
        .blocks
        .iter()
        .map(|block| (block.kind, block.source.as_str()))
        .collect();
    assert_eq!(
        cells,
        [
            (CellKind::Markdown, "# Title\n\ntext"),
            (CellKind::Code, "import os"),
            (CellKind::Markdown, "quoted"),
            (CellKind::Code, "# not Markdown"),
        ]
    );
    let dropped = MarkerText {
        line: 11,
        text: "Load data tags=[\"x\"]".to_owned(),
    };
    assert_eq!(
        parsed.notices,
        [
            Notice::PercentFormat {
                header_lines: 5,
                uncommented: 1,
                unquoted: 1
            },
            Notice::MarkerTextDropped {
                markers: vec![dropped]
            },
        ]
    );
}

#[test]
fn text_of_the_view_is_not_converted() {
    // A heading, and blocks with addresses.
    for text in [
        "# %% [markdown]\n# Prices\n\n# %% [code]\nx\n",
        "# %% [markdown] cell:0\n# a\n# b\n",
        "# %% [markdown] id:a\n\"\"\"\na\n\"\"\"\n",
    ] {
        let parsed = parse(text).unwrap();
        assert_eq!(parsed.notices, [], "{text:?}");
        let kept: Vec<&str> = text.split("# %% [code]").collect();
        assert!(kept[0].contains(&parsed.blocks[0].source), "{text:?}");
    }
    let mixed = "# %% [markdown] cell:0\n# a\n\n# %%\nx\n\n# %% [markdown]\n# b\n";
    assert_eq!(sources(mixed), ["# a\n", "x", "b"]);
    assert_eq!(
        sources("# %% [code]\nx\n\n# %% [code]\ny\n"),
        ["x\n", "y\n"]
    );
}

#[test]
fn fenced_outputs_are_ignored_and_must_be_closed() {
    let opening = "# %%--- outputs of cell:0 (not part of the source) ---";
    let closing = "# %%--- end of outputs ---";
    let fence = |text: &str| format!("# %% [code]\nx\n{opening}\n{text}\n{closing}\n# %% [raw]");
    assert_eq!(sources(&fence("out\n# %% [code]\nput")), ["x", ""]);
    let open = format!("# %% [code]\n{opening}\nout");
    assert_eq!(parse(&open), Err(EditError::OpenFence { line: 2 }));
}
