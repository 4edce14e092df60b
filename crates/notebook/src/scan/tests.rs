//! The scan gives the same whatever way the bytes come.

use super::*;

const NOTEBOOK: &str = "{\"cells\": [\n {\"cell_type\": \"code\", \"source\": [\"a = 'é'\\n\", \"b\"], \
    \"outputs\": [{\"text\": \"𝄞 \\u001b[31m \\\\ \\\" x\"}, 1.5e3, null], \"id\": \"one\"},\n \
    {\"id\": 5, \"source\": \"\\ud83d\", \"cell_type\": \"raw\"}, {\"cell_type\": \"markdown\"}\n], \
    \"nbformat\": 4, \"nbformat_minor\": 5}\n";

/// What a visitor sees of each cell.
#[derive(Debug, Default, PartialEq)]
struct Seen(Vec<SeenCell>);

/// Kind, source, id and hash.
type SeenCell = (CellKind, Option<Vec<u8>>, Option<Vec<u8>>, Revision);

impl Visitor for Seen {
    fn begin(&mut self) {
        self.0.clear();
    }

    fn cell(&mut self, span: &CellSpan, found: &Found<'_>) {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        self.0
            .push((span.kind, owned(found.source), owned(found.id), found.hash));
    }
}

fn ahead(bytes: &[u8], size: usize) -> (Seen, Result<Revision, String>) {
    let mut seen = Seen::default();
    let mut reader = bytes;
    let result = std::thread::scope(|scope| {
        let input = Input::ahead(Ahead::start(scope, &mut reader, size));
        let mut scan = Scan::new(input, &mut seen, Contents::Shown);
        let result = scan.document().map_err(|stop| scan.report(stop));
        result.map(|_| scan.lexer.input.revision())
    });
    (seen, result.map_err(|error| format!("{error:?}")))
}

#[test]
fn a_thread_that_reads_ahead_changes_nothing() {
    let mut expected = Seen::default();
    let window = window(&mut NOTEBOOK.as_bytes(), 0, &mut expected, Contents::Shown);
    assert_eq!(expected.0.len(), 3);
    let (_, revision) = window.ok().unwrap();
    for size in 1..NOTEBOOK.len() + 2 {
        let (seen, result) = ahead(NOTEBOOK.as_bytes(), size);
        assert_eq!(seen, expected, "by {size}");
        assert_eq!(result, Ok(revision), "by {size}");
    }
}

#[test]
fn a_thread_that_reads_ahead_ends_with_a_broken_file() {
    let long = format!("{}{}", &NOTEBOOK[..200], "x".repeat(10_000));
    let not_text = NOTEBOOK.replace("'é'", "'#'").into_bytes();
    let not_text: Vec<u8> = not_text
        .iter()
        .map(|&b| if b == b'#' { 0xe9 } else { b })
        .collect();
    for size in [1, 7, 64, 4096] {
        assert!(ahead(&NOTEBOOK.as_bytes()[..100], size).1.is_err());
        assert!(ahead(long.as_bytes(), size).1.is_err());
        let error = ahead(&not_text, size).1.unwrap_err();
        assert!(error.contains("NotUtf8"), "{error}");
    }
}
