//! The scan gives the same result however the bytes arrive.

use super::*;

const NOTEBOOK: &str = "{\"cells\": [\n {\"cell_type\": \"code\", \"source\": [\"a = 'é'\\n\", \"b\"], \
    \"outputs\": [{\"text\": \"𝄞 \\u001b[31m \\\\ \\\" x\"}, 1.5e3, null], \"id\": \"one\"},\n \
    {\"id\": 5, \"source\": \"\\ud83d\", \"cell_type\": \"raw\"}, {\"cell_type\": \"markdown\"}\n], \
    \"nbformat\": 4, \"nbformat_minor\": 5}\n";

/// Records each cell that it visits.
#[derive(Debug, Default, PartialEq)]
struct RecordingVisitor(Vec<VisitedCell>);

/// Kind, source, id and hash.
type VisitedCell = (CellKind, Option<Vec<u8>>, Option<Vec<u8>>, Revision);

impl Visitor for RecordingVisitor {
    fn begin_cells(&mut self) {
        self.0.clear();
    }

    fn cell(&mut self, span: &CellSpans, scanned: &ScannedCell<'_>) {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        self.0.push((
            span.kind,
            owned(scanned.source),
            owned(scanned.id),
            scanned.hash,
        ));
    }
}

fn scan_ahead(bytes: &[u8], size: usize) -> (RecordingVisitor, Result<Revision, String>) {
    let mut visitor = RecordingVisitor::default();
    let mut reader = bytes;
    let result = std::thread::scope(|scope| {
        let input = Input::from_read_ahead(ReadAhead::start(scope, &mut reader, size));
        let mut scan = Scan::new(input, &mut visitor, ScanDetail::Sources);
        let result = scan.document().map_err(|stop| scan.scan_error(stop));
        result.map(|_| scan.lexer.input.revision())
    });
    (visitor, result.map_err(|error| format!("{error:?}")))
}

#[test]
fn read_ahead_gives_the_same_result() {
    let mut expected = RecordingVisitor::default();
    let window = scan_stream(
        &mut NOTEBOOK.as_bytes(),
        0,
        &mut expected,
        ScanDetail::Sources,
    );
    assert_eq!(expected.0.len(), 3);
    let (_, revision) = window.ok().unwrap();
    for size in 1..NOTEBOOK.len() + 2 {
        let (visitor, result) = scan_ahead(NOTEBOOK.as_bytes(), size);
        assert_eq!(visitor, expected, "by {size}");
        assert_eq!(result, Ok(revision), "by {size}");
    }
}

#[test]
fn read_ahead_stops_on_a_broken_file() {
    let long = format!("{}{}", &NOTEBOOK[..200], "x".repeat(10_000));
    let not_text = NOTEBOOK.replace("'é'", "'#'").into_bytes();
    let not_text: Vec<u8> = not_text
        .iter()
        .map(|&b| if b == b'#' { 0xe9 } else { b })
        .collect();
    for size in [1, 7, 64, 4096] {
        assert!(scan_ahead(&NOTEBOOK.as_bytes()[..100], size).1.is_err());
        assert!(scan_ahead(long.as_bytes(), size).1.is_err());
        let error = scan_ahead(&not_text, size).1.unwrap_err();
        assert!(error.contains("NotUtf8"), "{error}");
    }
}
