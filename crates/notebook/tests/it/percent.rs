//! A text in the percent format gives the cells that its writer means.

use cellwright_notebook::{
    CellKind, Cells, MarkerStyle, Notebook, Notice, compose, edit, parse, render,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::generate::{Generated, notebook};
use crate::support::{cases, lossy};

/// A cell for a text in the percent format.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PercentCell {
    kind: CellKind,
    source: String,
}

/// How a writer of the percent format writes cells.
#[derive(Clone, Copy, Debug)]
struct Writer {
    has_header: bool,
    has_quotes: bool,
    sign: &'static str,
    markdown: &'static str,
    title: &'static str,
    newline: &'static str,
}

fn writer() -> impl Strategy<Value = Writer> {
    (
        any::<bool>(),
        any::<bool>(),
        select(vec!["#", "# "]),
        select(vec![" [markdown]", " [md]"]),
        select(vec!["", " Title", " tags=[\"a\"]"]),
        select(vec!["\n", "\r\n"]),
    )
        .prop_map(
            |(has_header, has_quotes, sign, markdown, title, newline)| Writer {
                has_header,
                has_quotes,
                sign,
                markdown,
                title,
                newline,
            },
        )
}

/// Cells whose first is a code cell, so that the text has a bare marker, and whose sources do not
/// end in blank lines, which the format cannot express.
fn percent_cells() -> impl Strategy<Value = Vec<PercentCell>> {
    let line = select(vec![
        "# Title",
        "## Part",
        "#",
        "text",
        "",
        "    x = 1",
        "# # a",
        "%%time",
        "# %%time",
        "é",
    ]);
    let source = vec(line, 0..4).prop_map(|lines| lines.join("\n").trim_end().to_owned());
    let kind = select(vec![CellKind::Code, CellKind::Markdown, CellKind::Raw]);
    vec((kind, source), 1..5).prop_map(|cells| {
        let mut cells: Vec<PercentCell> = cells
            .into_iter()
            .map(|(kind, source)| PercentCell { kind, source })
            .collect();
        cells[0].kind = CellKind::Code;
        cells
    })
}

impl Writer {
    fn write(self, cells: &[PercentCell]) -> String {
        let header = "# ---\n# jupyter:\n#   a: 1\n# ---";
        let mut parts: Vec<String> = self
            .has_header
            .then(|| header.to_owned())
            .into_iter()
            .collect();
        parts.extend(cells.iter().map(|cell| self.cell(cell)));
        let text = parts.join("\n\n") + "\n";
        text.replace('\n', self.newline)
    }

    fn cell(self, cell: &PercentCell) -> String {
        let kind = match cell.kind {
            CellKind::Code => "",
            CellKind::Markdown => self.markdown,
            CellKind::Raw => " [raw]",
        };
        let marker = format!("{}%%{kind}{}", self.sign, self.title);
        if cell.source.is_empty() {
            return marker;
        }
        let comment = |line: &str| format!("# {line}").trim_end().to_owned();
        let text = if cell.kind == CellKind::Code {
            cell.source.clone()
        } else if self.has_quotes {
            format!("\"\"\"\n{}\n\"\"\"", cell.source)
        } else {
            let lines: Vec<String> = cell.source.split('\n').map(comment).collect();
            lines.join("\n")
        };
        format!("{marker}\n{text}")
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn percent_format_gives_the_cells_of_its_writer(
        cells in percent_cells(),
        writer in writer(),
    ) {
        let text = writer.write(&cells);
        let draft = edit::replace_all(&Notebook::empty(), &text).unwrap();
        let found: Vec<PercentCell> = draft
            .plan
            .slots
            .into_iter()
            .map(|slot| PercentCell { kind: slot.kind, source: slot.source.unwrap_or_default() })
            .collect();
        prop_assert_eq!(found, cells, "{}", text);
        let dropped = draft.notices.iter().any(|notice| matches!(notice, Notice::MarkerTextDropped { .. }));
        prop_assert_eq!(dropped, !writer.title.is_empty());
    }

    /// A bare marker anywhere in a view changes no cell with an address.
    #[test]
    fn cells_of_a_view_are_kept_beside_percent_cells(Generated(bytes) in notebook()) {
        let notebook = Notebook::parse(&bytes[..]).unwrap();
        let mut text = render(&notebook, MarkerStyle::Indexes);
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("# %%\nx\n\n# %% [markdown]\n# y\n");
        let draft = edit::replace_all(&notebook, &text).unwrap();
        prop_assert_eq!(draft.plan.slots.len(), notebook.count() + 2);
        let kept = draft.plan.slots[..notebook.count()]
            .iter()
            .enumerate()
            .all(|(index, slot)| slot.origin == Some(index) && slot.source.is_none());
        prop_assert!(kept, "{}", text);
        let new = Notebook::parse(compose(&notebook, &draft.plan).to_bytes()).unwrap();
        prop_assert_eq!(lossy(new.source(notebook.count()).as_bytes()), "x");
        prop_assert_eq!(lossy(new.source(notebook.count() + 1).as_bytes()), "y");
    }
}

#[test]
fn source_lines_that_look_like_percent_markers_are_escaped() {
    for line in [
        "# %%",
        "#%%",
        "# %% title",
        " # %%",
        "# %%%",
        "#%%%",
        "# %% [md] x",
        "# %%time",
    ] {
        let json =
            format!(r#"{{"cells":[{{"cell_type":"raw","source":"a\n{line}\nb"}}],"nbformat":4}}"#);
        let notebook = Notebook::parse(json).unwrap();
        let text = render(&notebook, MarkerStyle::Indexes);
        let parsed = parse(&text).unwrap();
        assert_eq!(parsed.blocks.len(), 1, "{text}");
        assert_eq!(parsed.blocks[0].source, format!("a\n{line}\nb"));
    }
}
