//! Replies as a host receives them by default: complete text and images, nothing twice.

use serde_json::{Value, json};

use super::client::{Client, STRUCTURED, ToolReply};
use crate::context::Context;

/// Displays a PNG of this size between two lines of text, without any package.
fn figure(width: u32, height: u32) -> String {
    format!(
        r"
import struct, zlib, base64
def chunk(kind, data):
    body = kind + data
    return struct.pack('>I', len(data)) + body + struct.pack('>I', zlib.crc32(body))
rows = zlib.compress((b'\0' + b'\x20\x60\xa0' * {width}) * {height})
head = struct.pack('>IIBBBBB', {width}, {height}, 8, 2, 0, 0, 0)
data = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', rows) + chunk(b'IEND', b'')
class Figure:
    def _repr_mimebundle_(self, **_):
        return {{'image/png': base64.b64encode(data).decode(), 'text/plain': '<Figure size {width}x{height} with 1 Axes>'}}
from IPython.display import display
print('before')
display(Figure())
print('after')
"
    )
}

/// A client with the default settings, in a session of a protocol revision.
fn client(context: &Context) -> Client {
    let mut command = context.command(&["mcp"]);
    command.env(STRUCTURED, "false");
    let mut client = Client::of(command);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    client.request("initialize", params).unwrap();
    client
}

/// Whether the reply has only text and images.
fn assert_content_only(reply: &ToolReply) {
    let members: Vec<&String> = reply.result.as_object().unwrap().keys().collect();
    assert!(
        !members.iter().any(|name| *name == "structuredContent"),
        "{members:?}"
    );
    let blocks = reply.result["content"].as_array().unwrap();
    let kinds: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["type"].as_str())
        .collect();
    assert_eq!(kinds[0], "text");
    assert!(kinds[1..].iter().all(|kind| *kind == "image"), "{kinds:?}");
    assert!(!reply.text().contains("iVBORw0KGgo"), "base64 in the text");
}

#[test]
fn tools_have_output_schemas_only_if_the_setting_requests_them() {
    let context = Context::new();
    let mut plain = client(&context);
    let listed = plain.request("tools/list", json!({})).unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool.get("outputSchema").is_none()));
    let bytes = serde_json::to_string(&listed).unwrap().len();
    assert!(bytes < 14_000, "{bytes}");
    let mut structured = Client::older(&context);
    let listed = structured.request("tools/list", json!({})).unwrap();
    let tools = listed["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .all(|tool| tool["outputSchema"]["type"] == "object")
    );
}

#[test]
fn a_prefix_distinguishes_the_tools_from_those_of_the_host() {
    let context = Context::with_notebook();
    let mut command = context.command(&["mcp"]);
    command.env("CELLWRIGHT_MCP_TOOL_PREFIX", "notebook_");
    let mut client = Client::of(command);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    client.request("initialize", params).unwrap();
    let listed = client.request("tools/list", json!({})).unwrap();
    let names = listed["tools"].as_array().unwrap().iter();
    assert!(
        names
            .map(|tool| &tool["name"])
            .all(|name| name.as_str().unwrap().starts_with("notebook_"))
    );
    client
        .call("notebook_read", json!({"path": "a.ipynb"}))
        .ok();
}

#[test]
fn a_selection_without_the_cells_before_it_is_reported() {
    let context = Context::new();
    let mut client = client(&context);
    let text = "# %% [code]\nx = 1\n# %% [code]\nx + 1.25\n# %% [code]\ny = 1\n";
    let create = json!({"path": "f.ipynb", "text": text, "create": true});
    client.call("write", create).ok();
    let reply = client.call(
        "run",
        json!({"path": "f.ipynb", "cells": 1, "start_timeout": 60}),
    );
    let text = reply.ok().text();
    let notice = "cell 0 has not run on the kernel of session f.ipynb; `to: CELL` also runs the cells before a cell";
    assert!(text.contains(notice), "{text}");
    let hint = "next: cell 0 did not run on this kernel; `to: 1` runs all cells up to this one";
    assert!(text.contains(hint), "{text}");
    let arguments = json!({"path": "f.ipynb", "params": {"y": 2}});
    let text = client.call("run", arguments).ok().text();
    assert!(text.contains("assigns y and overrides the value"), "{text}");
    let arguments = json!({"path": "f.ipynb", "check": true, "tolerance": 0.5});
    let text = client.call("run", arguments).ok().text();
    assert!(text.starts_with("same: 4 cells ran"), "{text}");
    let late = json!({"path": "f.ipynb", "start_timeout": 0.001, "session": "other"});
    let text = client.call("run", late).error_text();
    assert!(
        text.contains("`start_timeout: SECONDS` sets the limit"),
        "{text}"
    );
}

#[test]
fn a_failing_run_is_a_result_with_its_figures() {
    let context = Context::new();
    let mut client = client(&context);
    let text = format!("# %% [code]\n{}\n# %% [code]\n1 / 0\n", figure(64, 48));
    let create = json!({"path": "f.ipynb", "text": text, "create": true});
    client.call("write", create).ok();
    let reply = client.call("run", json!({"path": "f.ipynb"})).ok();
    assert_content_only(&reply);
    assert_eq!(reply.blocks("image").len(), 1);
    let text = reply.text();
    assert!(text.starts_with("error: cell 1 (id "), "{text}");
    assert!(
        text.contains("raised ZeroDivisionError: division by zero\n"),
        "{text}"
    );
    // Session, kernel, interpreter, notebook, revision, next step.
    for part in [
        "session f.ipynb (new kernel), ",
        " python3, python 3.",
        "ran 2 of 2 cells",
        "f.ipynb\nrevision: ",
        "next: correct the cell",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The figure is named where it was displayed.
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("output "))
        .collect();
    let at = lines.iter().position(|line| *line == "before").unwrap();
    assert!(
        lines[at + 1].starts_with("[figure 64×48, artifact://")
            && lines[at + 1].ends_with(", image 1]"),
        "{text}"
    );
    assert_eq!(lines[at + 2], "after", "{text}");
}

#[test]
fn a_figure_can_be_read_again() {
    let context = Context::new();
    let mut client = client(&context);
    let text = format!("# %% [code]\n{}\n", figure(64, 48));
    let create = json!({"path": "f.ipynb", "text": text, "create": true});
    client.call("write", create).ok();
    let reply = client.call("run", json!({"path": "f.ipynb"})).ok();
    let shown = reply.blocks("image")[0].clone();
    let text = reply.text();
    let artifact = text
        .split("artifact://")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    for path in [
        format!("artifact://{artifact}"),
        "f.ipynb:outputs".to_owned(),
        "f.ipynb:cells=0:outputs".to_owned(),
        "f.ipynb:cells=0:images".to_owned(),
        "f.ipynb:images".to_owned(),
    ] {
        let read = client.call("read", json!({"path": path})).ok();
        assert_content_only(&read);
        assert_eq!(*read.blocks("image")[0], shown, "{path}");
        assert!(
            read.text().contains("[figure 64×48, ") && read.text().contains(", image 1]"),
            "{}",
            read.text()
        );
    }
}

#[test]
fn a_kernel_that_dies_is_an_error_without_images() {
    let context = Context::new();
    let mut client = client(&context);
    let code = format!("{}\nimport os\nos.kill(os.getpid(), 9)", figure(64, 48));
    let reply = client.call("eval", json!({"code": code}));
    assert_content_only(&reply);
    assert!(reply.blocks("image").is_empty());
    let text = reply.error_text();
    assert!(text.starts_with("died: The kernel died"), "{text}");
    assert!(
        text.contains("[figure 64×48, artifact://") && text.contains(", not sent: "),
        "{text}"
    );
}

/// The lines and bytes that the marks of a text count.
fn elided_lines(text: &str) -> Vec<u64> {
    let marks = text.lines().filter(|line| line.starts_with("[… "));
    let count = |mark: &str| mark.split(' ').nth(1).unwrap().parse().unwrap();
    marks.map(count).collect()
}

#[test]
fn a_truncation_is_counted_once_and_has_an_artifact() {
    let context = Context::new();
    let mut client = client(&context);
    // Just below the limit, just above it, far above it.
    for count in [600_u64, 1_120, 1_200, 2_000, 100_000] {
        let code = format!("for i in range({count}): print('line', i)");
        let reply = client.call("eval", json!({"code": code})).ok();
        assert_content_only(&reply);
        let text = reply.text();
        assert!(text.chars().count() < 10_500, "{}", text.chars().count());
        let shown = text
            .lines()
            .filter(|line| line.starts_with("line "))
            .count() as u64;
        let elided = elided_lines(&text);
        assert_eq!(shown + elided.iter().sum::<u64>(), count, "{text}");
        if shown < count {
            assert_eq!(elided.len(), 1, "{text}");
            let artifact = reply.artifact();
            let last = format!("{artifact}:{count}");
            let read = client.call("read", json!({"path": last})).ok();
            assert!(read.text().contains(&format!("line {}\n", count - 1)));
        }
    }
    // Many cells share the limit; each has its own mark and its own artifact.
    let mut text = String::new();
    for cell in 0..10 {
        text.push_str(&format!(
            "# %% [code]\nfor i in range({}): print('line', i)\n",
            50 + 100 * cell
        ));
    }
    client
        .call(
            "write",
            json!({"path": "m.ipynb", "text": text, "create": true}),
        )
        .ok();
    let text = client.call("run", json!({"path": "m.ipynb"})).ok().text();
    assert!(text.chars().count() < 12_000, "{}", text.chars().count());
    let cells: Vec<&str> = text.split("\ncell ").skip(1).collect();
    assert_eq!(cells.len(), 10, "{text}");
    for (cell, part) in cells.iter().enumerate() {
        let shown = part
            .lines()
            .filter(|line| line.starts_with("line "))
            .count() as u64;
        let elided = elided_lines(part);
        assert_eq!(
            shown + elided.iter().sum::<u64>(),
            50 + 100 * cell as u64,
            "{part}"
        );
        assert_eq!(part.contains("artifact://"), !elided.is_empty(), "{part}");
    }
}

#[test]
fn a_call_that_continues_has_its_position_and_its_output() {
    let context = Context::new();
    let mut client = client(&context);
    let code = "import time\nprint('started', flush=True)\ntime.sleep(30)";
    let cells = json!([{"code": "1"}, {"code": code}, {"code": "3"}]);
    let reply = client
        .call("eval", json!({"cells": cells, "wait": 2, "timeout": 60}))
        .ok();
    let text = reply.text();
    assert!(
        text.starts_with("running: the code continues as run r1, cell 2 of 3"),
        "{text}"
    );
    assert!(text.contains("\nstarted\n"), "{text}");
    client
        .call("stop", json!({"action": "cancel", "run": "r1"}))
        .ok();
    let ended = client
        .call("runs", json!({"action": "wait", "run": "r1"}))
        .error_text();
    assert!(ended.starts_with("cancelled: "), "{ended}");
}

#[test]
fn a_name_of_another_session_is_pointed_out() {
    let context = Context::with_notebook();
    let mut client = client(&context);
    client.call("run", json!({"path": "a.ipynb"})).ok();
    let text = client.call("eval", json!({"code": "answer"})).raised_text();
    assert!(text.contains("session main (new kernel)"), "{text}");
    let hint = "next: `answer` exists in session a.ipynb: pass `session: a.ipynb`\n";
    assert!(text.contains(hint.trim_end()), "{text}");
    let text = client
        .call("eval", json!({"code": "import no_such_module"}))
        .raised_text();
    assert!(
        text.contains("`no_such_module` is not installed for /"),
        "{text}"
    );
    assert!(!text.contains("new kernel"), "{text}");
}

#[test]
fn an_exception_about_a_withheld_variable_names_the_setting() {
    let context = Context::new();
    let mut command = context.command(&["mcp"]);
    command.env("STAGE", "prod").env("HTTPS_PROXY", "proxy");
    let mut client = Client::of(command);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    });
    client.request("initialize", params).unwrap();
    let code = "import os\nprint(os.environ['HTTPS_PROXY'])\nos.environ['STAGE']";
    let text = client.call("eval", json!({"code": code})).raised_text();
    assert!(text.contains("proxy"), "{text}");
    let hint = "next: the environment variable `STAGE` is set, but withheld from the kernel; the setting `env.pass` (CELLWRIGHT_ENV_PASS) passes it";
    assert!(text.contains(hint), "{text}");
}

#[test]
fn notebooks_of_the_same_name_have_separate_sessions() {
    let context = Context::new();
    let mut client = client(&context);
    std::fs::create_dir_all(context.path("one")).unwrap();
    std::fs::create_dir_all(context.path("two")).unwrap();
    for dir in ["one", "two"] {
        let path = format!("{dir}/n.ipynb");
        let text = format!("# %% [code]\nwhere = '{dir}'\n");
        client
            .call("write", json!({"path": path, "text": text, "create": true}))
            .ok();
        client.call("run", json!({"path": path})).ok();
    }
    let mut eval =
        |session: &str| client.call("eval", json!({"code": "where", "session": session}));
    for (session, expected) in [
        ("one/n.ipynb", "'one'"),
        ("two/n.ipynb", "'two'"),
        ("./two/n.ipynb", "'two'"),
        ("@1", "'one'"),
    ] {
        let text = eval(session).ok().text();
        assert!(text.contains(expected), "{session}: {text}");
    }
    let absolute = context.path("two/n.ipynb").canonicalize().unwrap();
    assert!(
        eval(absolute.to_str().unwrap())
            .ok()
            .text()
            .contains("'two'")
    );
    // A bare file name means both, so it is rejected with both.
    let text = eval("n.ipynb").error_text();
    assert!(text.contains("`n.ipynb` names 2 sessions"), "{text}");
    assert!(
        text.contains("@1: one/n.ipynb") && text.contains("@2: two/n.ipynb"),
        "{text}"
    );
    // The same addresses select the session in other tools.
    let arguments = json!({"action": "variables", "session": "two/n.ipynb"});
    assert!(
        client
            .call("kernels", arguments)
            .ok()
            .text()
            .contains("where")
    );
}

#[test]
fn operations_of_the_command_line_are_available() {
    let context = Context::with_notebook();
    let mut client = client(&context);
    client.call("run", json!({"path": "a.ipynb"})).ok();
    let text = client
        .call("run", json!({"path": "a.ipynb", "check": true}))
        .ok()
        .text();
    assert!(text.starts_with("same: "), "{text}");
    let arguments = json!({"action": "history", "session": "a.ipynb"});
    let text = client.call("kernels", arguments).ok().text();
    assert!(text.contains("answer = 42"), "{text}");
    let arguments = json!({"action": "export", "path": "out.ipynb", "session": "a.ipynb"});
    let text = client.call("notebook", arguments.clone()).ok().text();
    assert!(text.contains("out.ipynb"), "{text}");
    let exported: Value = serde_json::from_str(&context.content("out.ipynb")).unwrap();
    assert_eq!(exported["nbformat"], 4);
    client.call("notebook", arguments).error_text();
    let arguments = json!({"path": "out.ipynb", "diff": "a.ipynb"});
    let text = client.call("read", arguments).ok().text();
    assert!(text.contains("@@ "), "{text}");
    let text = client
        .call("kernels", json!({"action": "doctor"}))
        .ok()
        .text();
    assert!(text.starts_with("code can run\n"), "{text}");
    let text = client
        .call("run", json!({"path": "a.ipynb", "changed": true}))
        .ok()
        .text();
    assert!(text.contains("no cell is selected to run"), "{text}");
}

#[test]
fn every_uri_that_is_listed_can_be_read() {
    let context = Context::with_notebook();
    let mut client = client(&context);
    client
        .call("eval", json!({"code": "for i in range(10_000): print(i)"}))
        .ok();
    let listed = client.request("resources/list", json!({})).unwrap();
    let uris: Vec<String> = listed["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(uris.len(), 3, "{uris:?}");
    for uri in uris {
        client.call("read", json!({"path": uri})).ok();
    }
}

#[test]
fn long_stored_outputs_are_complete_on_request() {
    let context = Context::new();
    let lines: Vec<String> = (0..400).map(|line| format!("printed {line}\n")).collect();
    let output = json!({"output_type": "stream", "name": "stdout", "text": lines});
    let cell = json!({"cell_type": "code", "execution_count": 1, "id": "one", "metadata": {},
        "outputs": [output], "source": "work()"});
    let notebook = json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
    context.file("a.ipynb", notebook.to_string());
    let mut client = client(&context);
    let short = client.call("read", json!({"path": "a.ipynb:outputs"})).ok();
    let text = short.text();
    assert!(
        text.contains("printed 0\n") && text.contains("printed 399\n"),
        "{text}"
    );
    assert!(
        text.contains("is shortened; `full` shows all of it"),
        "{text}"
    );
    let full = client
        .call("read", json!({"path": "a.ipynb:outputs", "full": true}))
        .ok();
    let text = full.text();
    assert!(
        text.contains(&lines.concat()) && !text.contains("shortened"),
        "{text}"
    );
}
