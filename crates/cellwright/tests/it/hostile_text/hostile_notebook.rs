//! A notebook with hostile text in every place.

use serde_json::{Value, json};

use super::sequences::payload;

fn cells(source: &str) -> Value {
    let all = payload();
    let attached = format!("picture{all}.png");
    json!([
        {
            "attachments": {&attached: {"image/png": "AAAA"}},
            "cell_type": "markdown",
            "id": format!("m{}", "\u{1b}]0;x\u{7}\u{202e}"),
            "metadata": {&all: &all, "tags": [&all, "\u{9b}2J"]},
            "source": format!("# {all}\n![](attachment:{attached})"),
        },
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "c",
            "metadata": {"tags": ["\u{1b}[2J", "parameters"], "name": &all},
            "outputs": [
                {"name": "stdout", "output_type": "stream", "text": &all},
                {"name": format!("n{all}"), "output_type": "stream", "text": [&all, "\n"]},
                {
                    "data": {"text/plain": &all, "text/html": format!("<p>{all}</p>"), "image/png": "AAAA", &all: &all},
                    "execution_count": 1,
                    "metadata": {&all: &all},
                    "output_type": "execute_result",
                },
                {"ename": format!("E{all}"), "evalue": &all, "output_type": "error", "traceback": [&all]},
            ],
            "source": source,
        },
    ])
}

fn notebook(source: &str) -> String {
    let all = payload();
    let metadata = json!({
        "kernelspec": {"display_name": &all, "language": &all, "name": format!("k{all}")},
        "language_info": {"name": &all, "file_extension": &all},
        &all: &all,
    });
    json!({"cells": cells(source), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
        .to_string()
}

/// A notebook whose code cell has `needle` in its source.
pub(super) fn hostile_notebook() -> String {
    notebook(&format!("x = 'a'  # {}\nneedle {}", payload(), payload()))
}

/// The same notebook with another source.
pub(super) fn other_notebook() -> String {
    notebook(&format!("y = 1\n{}", payload()))
}
