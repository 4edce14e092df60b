//! An edited text over a fixed notebook: the first byte chooses the notebook, the rest is the text.
//! An accepted text must give a notebook with exactly its cells.

#![no_main]

use cellwright_fuzz::{apply, notebook};
use cellwright_notebook::{Cells, MarkerStyle, edit, parse, render, rewrite};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, text)) = data.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let old = notebook(choice);
    // As printed, with a newline at the end, and without.
    if let Ok(draft) = edit::replace_all(&old, text) {
        apply(&old, &draft.plan);
    }
    let Ok(parsed) = parse(text) else {
        return;
    };
    let blocks = parsed.blocks.clone();
    let crlf = parsed.crlf;
    let (plan, _) = rewrite(&old, parsed);
    assert_eq!(plan.slots.len(), blocks.len());
    let new = apply(&old, &plan);
    // Check against the text itself, not only against the plan.
    for (index, block) in blocks.iter().enumerate() {
        assert_eq!(new.kind(index), block.kind);
        let source = new.source(index);
        if crlf {
            // Line endings may follow the old cell; nothing else may differ.
            let unix = |text: &str| text.replace("\r\n", "\n");
            assert_eq!(unix(&source), unix(&block.source));
        } else {
            assert_eq!(source, block.source);
        }
    }
    // The view of the result changes nothing.
    let view = render(&new, MarkerStyle::Ids);
    let (again, _) = rewrite(&new, parse(&view).expect("a rendered view parses"));
    assert!(again.changes_nothing(&new), "{view}");
});
