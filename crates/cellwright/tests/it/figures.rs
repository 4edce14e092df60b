//! Figures: named where they appear, listed and extracted from notebooks.

use std::fs;

use serde_json::{Value, json};

use crate::context::Context;
use crate::host::TestHost;

/// A PNG of 3×2 pixels, 73 bytes.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGNQSFgAQQxwFgBAlAbBmOaO3wAAAABJRU5ErkJggg==";
const PNG_SIZE: usize = 73;

/// A GIF of 5×4 pixels.
const GIF: &str = "R0lGODlhBQAEAAAAADs=";

/// Code that displays an image after a line of text and before another.
fn display_code() -> String {
    format!(
        "class Figure:\n    def _repr_mimebundle_(self, **_): return {{'image/png': '{PNG}', 'text/plain': '<Figure>'}}\n\
         print('before')\ndisplay(Figure())\nprint('after')"
    )
}

fn notebook(cells: &[Value]) -> String {
    json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}).to_string()
}

fn code_cell(source: &str, outputs: &Value) -> Value {
    json!({"cell_type": "code", "execution_count": null, "metadata": {},
        "outputs": outputs, "source": source})
}

/// The artifact in the line of a figure between the two printed lines.
fn named_artifact(text: &str) -> String {
    let (_, rest) = text
        .split_once("before\n[figure 3×2, ")
        .unwrap_or_else(|| panic!("{text}"));
    let (artifact, _) = rest
        .split_once("]\nafter\n")
        .unwrap_or_else(|| panic!("{text}"));
    artifact.to_owned()
}

#[test]
fn a_figure_is_named_where_it_appears_and_its_artifact_is_the_image() {
    let host = TestHost::new();
    let context = &host.context;
    context.file(
        "a.ipynb",
        notebook(&[
            code_cell("1", &json!([])),
            code_cell(&display_code(), &json!([])),
        ]),
    );
    let ran = context
        .run(&["run", "a.ipynb", "--session", "work"])
        .exits(0);
    let from_run = named_artifact(&ran.stdout);
    let evaluated = context.eval(&[&display_code()]).exits(0);
    let from_eval = named_artifact(&evaluated.stdout);
    assert_ne!(from_run, from_eval);
    for artifact in [&from_run, &from_eval] {
        let path = context.run(&["artifact", "path", artifact]).exits(0).stdout;
        let bytes = fs::read(path.trim()).unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() == PNG_SIZE);
    }
    let list = context.run(&["artifact", "list"]).exits(0).stdout;
    let lines: Vec<Vec<&str>> = list
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        lines[0],
        [
            "ARTIFACT", "TYPE", "SIZE", "AGE", "NOTEBOOK", "CELL", "SESSION"
        ]
    );
    assert_eq!(lines[1][0], from_run, "{list}");
    assert_eq!(lines[1][5..], ["a.ipynb", "1", "work"], "{list}");
    assert_eq!(lines[2][5..], ["-", "0", "-"], "{list}");
    // The size is that of the image, in every list.
    let size = format!("{PNG_SIZE} B");
    assert!(list.contains(&size), "{list}");
    let outline = context
        .run(&["notebook", "outline", "a.ipynb"])
        .exits(0)
        .stdout;
    assert!(
        outline.contains(&format!("→ stdout ×2 13 B, image/png {size}")),
        "{outline}"
    );
    let read = context.run(&["read", "a.ipynb:outputs"]).exits(0).stdout;
    assert!(read.contains(&format!("[figure 3×2, {size}]")), "{read}");
    let figures = context
        .run(&["notebook", "figures", "a.ipynb", "--json"])
        .exits(0)
        .json();
    assert_eq!(figures["figures"][0]["bytes"], PNG_SIZE);
}

#[test]
fn figures_of_a_cleared_display_leave_no_artifacts() {
    let context = Context::new();
    let code = format!(
        "from IPython.display import clear_output\nfor _ in range(5):\n    clear_output(wait=True)\n    \
         display({{'image/png': '{PNG}'}}, raw=True)\nh = display({{'image/png': '{PNG}'}}, raw=True, display_id=True)\n\
         for _ in range(5): h.update({{'image/png': '{PNG}'}}, raw=True)"
    );
    context.eval(&[&code]).exits(0);
    let list = context.run(&["artifact", "list", "--json"]).exits(0).json();
    assert_eq!(list["artifacts"].as_array().unwrap().len(), 2, "{list}");
}

/// A notebook with images of every type, one of them attached.
fn with_images() -> Context {
    let context = Context::new();
    let display =
        |data: Value| json!({"output_type": "display_data", "metadata": {}, "data": data});
    let jpeg = "/9j/4AAQSkZJRgABAQAAAQABAAD/2Q==";
    let cells = [
        json!({"cell_type": "markdown", "metadata": {}, "source": "![](attachment:../x.png)",
            "attachments": {"../x.png": {"image/png": PNG}}}),
        code_cell(
            "plot()",
            &json!([
                display(
                    json!({"image/png": [&PNG[..10], "\n", &PNG[10..]], "text/plain": "<Figure>"})
                ),
                display(json!({"text/plain": "no image"})),
                display(json!({"image/svg+xml": ["<svg width='7' ", "height='6'/>"]})),
            ]),
        ),
        code_cell(
            "more()",
            &json!([
                display(json!({"image/gif": GIF})),
                display(json!({"image/jpeg": jpeg}))
            ]),
        ),
    ];
    context.file("a.ipynb", notebook(&cells));
    context
}

#[test]
fn images_of_a_notebook_are_listed_and_extracted() {
    let context = with_images();
    insta::assert_snapshot!(
        context
            .run(&["notebook", "figures", "a.ipynb"])
            .output_masked()
    );
    let before = context.content("a.ipynb");
    let written = context
        .run(&["notebook", "figures", "a.ipynb", "-o", "out/figures"])
        .exits(0);
    assert!(
        written.stdout.contains("out/figures/cell-0-1.png\n"),
        "{}",
        written.stdout
    );
    assert_eq!(
        fs::read(context.path("out/figures/cell-0-1.png"))
            .unwrap()
            .len(),
        PNG_SIZE
    );
    assert_eq!(
        fs::read(context.path("out/figures/cell-0-1.png")).unwrap(),
        fs::read(context.path("out/figures/cell-1-1.png")).unwrap()
    );
    assert_eq!(
        context.content("out/figures/cell-1-2.svg"),
        "<svg width='7' height='6'/>"
    );
    assert!(
        fs::read(context.path("out/figures/cell-2-1.gif"))
            .unwrap()
            .starts_with(b"GIF89a")
    );
    assert!(
        fs::read(context.path("out/figures/cell-2-2.jpg"))
            .unwrap()
            .starts_with(b"\xff\xd8")
    );
    assert_eq!(
        fs::read_dir(context.path("out/figures")).unwrap().count(),
        5
    );
    // Existing files stay unless the user replaces them.
    context.file("out/figures/cell-2-1.gif", "mine");
    fs::remove_file(context.path("out/figures/cell-0-1.png")).unwrap();
    let refused = context
        .run(&["notebook", "figures", "a.ipynb", "-o", "out/figures"])
        .exits(3);
    assert!(
        refused.stderr.contains("`--force` replaces files"),
        "{}",
        refused.stderr
    );
    assert_eq!(context.content("out/figures/cell-2-1.gif"), "mine");
    assert!(!context.path("out/figures/cell-0-1.png").exists());
    context
        .run(&[
            "notebook",
            "figures",
            "a.ipynb",
            "-o",
            "out/figures",
            "--force",
        ])
        .exits(0);
    assert_ne!(
        fs::read(context.path("out/figures/cell-2-1.gif")).unwrap(),
        b"mine"
    );
    assert_eq!(context.content("a.ipynb"), before);
}

#[test]
fn a_selector_stores_the_images_of_cells() {
    let context = with_images();
    let read = context
        .run(&["read", "a.ipynb:cells=1:images"])
        .exits(0)
        .stdout;
    let lines: Vec<&str> = read.lines().collect();
    assert_eq!(lines.len(), 3, "{read}");
    let artifact = lines[1].split_whitespace().last().unwrap();
    let path = context.run(&["artifact", "path", artifact]).exits(0).stdout;
    assert_eq!(fs::read(path.trim()).unwrap().len(), PNG_SIZE);
    let all = context
        .run(&["read", "a.ipynb:images", "--json"])
        .exits(0)
        .json();
    assert_eq!(all["figures"].as_array().unwrap().len(), 5);
    assert_eq!(all["figures"][0]["attachment"], "../x.png");
    context.run(&["read", "a.ipynb:1-3:images"]).exits(2);
}
