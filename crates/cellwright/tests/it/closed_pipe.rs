//! A closed stdout is success.

use std::io::Read;

use crate::context::Context;

#[test]
fn a_closed_pipe_is_success() {
    let context = Context::new();
    let line = "\"x\\n\",".repeat(400_000);
    context.file(
        "long.ipynb",
        format!(
            "{{\"cells\":[{{\"cell_type\":\"raw\",\"metadata\":{{}},\"source\":[{line}\"y\"]}}],\
             \"nbformat\":4,\"nbformat_minor\":4}}"
        ),
    );
    let mut child = context.command(&["read", "long.ipynb"]).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
