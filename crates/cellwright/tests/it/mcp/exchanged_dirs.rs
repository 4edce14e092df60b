//! A directory inside the root is exchanged with a link that leads outside, again and again, or in the middle of a run. No call may
//! read, run or write anything outside.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::client::{Client, ToolReply};
use crate::context::Context;

/// Time after which a race ends, however many calls it has made.
const RACE_TIMEOUT: Duration = Duration::from_secs(6);

/// Time limit of a state that a test waits for.
const STATE_TIMEOUT: Duration = Duration::from_mins(1);

/// The directory `root/sub`, and the link `root/.other` to the directory `outside`.
struct Exchange {
    context: Context,
    root: PathBuf,
    outside: PathBuf,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        // A server with `--shared` starts a host, which stays.
        self.context.run(&["host", "stop"]);
    }
}

impl Exchange {
    fn new() -> Self {
        let context = Context::new();
        let base = context.dir().canonicalize().unwrap();
        let (root, outside) = (base.join("root"), base.join("outside"));
        for dir in [&root, &outside, &root.join("sub")] {
            fs::create_dir(dir).unwrap();
        }
        fs::write(root.join("a.ipynb"), notebook("1", "")).unwrap();
        fs::write(root.join("sub/b.ipynb"), notebook("print(6 * 7)", "")).unwrap();
        fs::write(root.join("sub/inside.ipynb"), notebook("1", "")).unwrap();
        fs::write(outside.join("b.ipynb"), notebook("print(6 * 7)", "secret")).unwrap();
        fs::write(outside.join("secret.ipynb"), notebook("1", "secret")).unwrap();
        symlink(&outside, root.join(".other")).unwrap();
        Self {
            context,
            root,
            outside,
        }
    }

    fn client(&self) -> Client {
        self.client_with(&[])
    }

    fn client_with(&self, arguments: &[&str]) -> Client {
        let root = self.root.to_str().unwrap();
        let all = [&["mcp", "--root", root], arguments].concat();
        Client::with(&self.context, &all, &json!({}))
    }

    /// Exchanges the directory and the link.
    fn exchange(&self) {
        self.exchange_names(["sub", ".other"]);
    }

    /// Exchanges two names in the root.
    fn exchange_names(&self, names: [&str; 2]) {
        let [one, other] = names.map(|name| self.root.join(name));
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
    }

    /// Makes calls while another thread exchanges directory and link as fast as it can. `call` receives the number of the call.
    fn race(&self, calls: usize, call: impl FnMut(usize)) {
        self.race_names(["sub", ".other"], calls, call);
    }

    /// The same with other names.
    fn race_names(&self, names: [&str; 2], calls: usize, mut call: impl FnMut(usize)) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let exchanges = scope.spawn(|| {
                let mut count = 0;
                while !over.load(Ordering::Relaxed) || count % 2 == 1 {
                    self.exchange_names(names);
                    count += 1;
                }
            });
            let started = Instant::now();
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let in_time = |_: &usize| started.elapsed() < RACE_TIMEOUT;
                (0..calls).take_while(in_time).for_each(&mut call);
            }));
            over.store(true, Ordering::Relaxed);
            exchanges.join().unwrap();
            if let Err(panic) = result {
                std::panic::resume_unwind(panic);
            }
        });
    }

    /// The files outside, with their content.
    fn outside_files(&self) -> BTreeMap<PathBuf, String> {
        let entries = fs::read_dir(&self.outside).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                (path, text)
            })
            .collect()
    }
}

/// A notebook with one cell, which has this stored output.
fn notebook(source: &str, output: &str) -> String {
    let mut outputs = Vec::new();
    if !output.is_empty() {
        outputs.push(json!({"output_type": "stream", "name": "stdout", "text": output}));
    }
    let cell = json!({
        "cell_type": "code", "id": "one", "metadata": {}, "source": source, "outputs": outputs,
        "execution_count": if outputs.is_empty() { Value::Null } else { json!(1) },
    });
    json!({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string()
}

fn assert_no_secret(reply: &ToolReply) {
    let reply = reply.result.to_string();
    assert!(!reply.contains("secret"), "{reply}");
}

/// Waits for a file.
fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < STATE_TIMEOUT, "{}", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn lists_of_directories_stay_inside() {
    let exchange = Exchange::new();
    let mut client = exchange.client();
    let mut answered = 0;
    exchange.race(1500, |_| {
        let reply = client.call("read", json!({"path": "sub"}));
        assert_no_secret(&reply);
        answered += usize::from(!reply.is_error());
    });
    assert!(answered > 0);
    // An error about a missing notebook lists those next to it.
    for path in ["sub/none.ipynb", "sub"] {
        for tool in ["read", "run"] {
            exchange.race(300, |_| {
                assert_no_secret(&client.call(tool, json!({"path": path})));
            });
        }
    }
    let reply = client.call("read", json!({"path": "sub/none.ipynb"}));
    assert!(reply.error_text().contains("notebooks there: b.ipynb"));
}

#[test]
fn lists_of_resources_stay_inside() {
    let exchange = Exchange::new();
    let mut client = exchange.client();
    exchange.race(3000, |_| {
        let listed = client.request("resources/list", json!({})).unwrap();
        assert!(!listed.to_string().contains("secret"), "{listed}");
    });
}

#[test]
fn notebooks_that_are_read_and_compared_are_inside() {
    let exchange = Exchange::new();
    let mut client = exchange.client();
    for arguments in [
        json!({"path": "sub/b.ipynb:outputs"}),
        json!({"path": "sub/b.ipynb:outputs", "diff": "a.ipynb"}),
        json!({"path": "a.ipynb:outputs", "diff": "sub/b.ipynb"}),
    ] {
        exchange.race(400, |_| {
            assert_no_secret(&client.call("read", arguments.clone()));
        });
    }
}

#[test]
fn revisions_that_are_compared_are_inside() {
    let exchange = Exchange::new();
    for dir in [&exchange.root.join("sub"), &exchange.outside] {
        for arguments in [
            &["init", "--quiet"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "commit",
                "--quiet",
                "-m",
                "one",
            ],
        ] {
            let mut git = Command::new("git");
            let done = git.arg("-C").arg(dir).args(arguments).status().unwrap();
            assert!(done.success());
        }
    }
    let mut client = exchange.client();
    let arguments = json!({"path": "sub/b.ipynb:outputs", "diff": "HEAD"});
    exchange.race(200, |_| {
        assert_no_secret(&client.call("read", arguments.clone()));
    });
}

#[test]
fn notebooks_that_are_checked_are_inside() {
    let exchange = Exchange::new();
    let mut client = exchange.client();
    exchange.race(100, |_| {
        let reply = client.call("run", json!({"path": "sub/b.ipynb", "check": true}));
        assert_no_secret(&reply);
    });
}

#[test]
fn text_files_that_are_read_are_inside() {
    let exchange = Exchange::new();
    fs::write(exchange.root.join("notes.txt"), "inside").unwrap();
    let target = exchange.context.path("secret.txt");
    fs::write(&target, "secret").unwrap();
    symlink(&target, exchange.root.join(".notes")).unwrap();
    let mut client = exchange.client();
    exchange.race_names(["notes.txt", ".notes"], 3000, |_| {
        let reply = client.call("read", json!({"path": "notes.txt"}));
        // The path in an error may be that of the file outside.
        assert!(
            reply.is_error() || !reply.text().contains("secret"),
            "{}",
            reply.text()
        );
    });
}

/// Starts kernels in the directory.
fn start_kernels(target: &Value) {
    let exchange = Exchange::new();
    let mut client = exchange.client();
    let mut started = 0;
    exchange.race(200, |_| {
        let code = "import os\nprint(sorted(os.listdir('.')))";
        let mut arguments = json!({"code": code, "cwd": "sub"});
        let target = target.as_object().unwrap().clone();
        arguments.as_object_mut().unwrap().extend(target);
        let reply = client.call("eval", arguments);
        assert_no_secret(&reply);
        started += usize::from(!reply.is_error());
    });
    assert!(started > 0);
}

#[test]
fn kernels_of_one_call_start_inside() {
    start_kernels(&json!({"per_call": true}));
}

#[test]
fn kernels_of_sessions_start_inside() {
    start_kernels(&json!({"session": "s", "reset": true}));
}

/// Makes calls that write, and fails the test if anything outside changes.
fn write_files(calls: usize, arguments: impl Fn(usize) -> (&'static str, Value)) {
    let exchange = Exchange::new();
    let before = exchange.outside_files();
    let mut client = exchange.client();
    client
        .call("eval", json!({"code": "1", "session": "s"}))
        .ok();
    exchange.race(calls, |at| {
        let (tool, arguments) = arguments(at);
        client.call(tool, arguments);
    });
    assert_eq!(exchange.outside_files(), before);
}

#[test]
fn runs_in_place_write_inside() {
    write_files(200, |_| ("run", json!({"path": "sub/b.ipynb"})));
}

#[test]
fn runs_with_an_output_write_inside() {
    write_files(200, |at| {
        let output = format!("sub/o{at}.ipynb");
        ("run", json!({"path": "a.ipynb", "output": output}))
    });
}

#[test]
fn exported_sessions_are_written_inside() {
    write_files(1000, |at| {
        let path = format!("sub/e{at}.ipynb");
        (
            "notebook",
            json!({"action": "export", "session": "s", "path": path}),
        )
    });
}

/// The source of a cell that waits in the middle.
fn waiting_cell(context: &Context) -> String {
    let [begun, go] = ["begun", "go"].map(|name| context.path(name).display().to_string());
    format!(
        "import os, time\nopen({begun:?}, 'w').close()\nwhile not os.path.exists({go:?}):\n    time.sleep(0.01)\nprint(6 * 7)"
    )
}

/// Runs a waiting cell of `sub/b.ipynb` and changes the directory while it waits. Outside is a notebook with the same cell, which
/// must not change.
fn run_while(
    exchange: &Exchange,
    arguments: &Value,
    server: &[&str],
    change: impl FnOnce(),
) -> (Client, ToolReply) {
    let cell = waiting_cell(&exchange.context);
    for dir in [&exchange.root.join("sub"), &exchange.outside] {
        fs::write(dir.join("b.ipynb"), notebook(&cell, "")).unwrap();
    }
    let before = exchange.outside_files();
    let mut client = exchange.client_with(server);
    let call = client.start_call("run", arguments.clone(), "t");
    wait_for(&exchange.context.path("begun"));
    change();
    fs::write(exchange.context.path("go"), "").unwrap();
    let result = client.end(call).unwrap();
    assert_eq!(exchange.outside_files(), before);
    (client, ToolReply { result })
}

/// Fails the test unless the run wrote this file, which is now in the directory with the hidden name.
fn assert_moved(exchange: &Exchange, reply: ToolReply, name: &str) {
    let reply = reply.ok();
    let written = exchange.root.join(".other").join(name);
    let text = fs::read_to_string(&written).unwrap();
    assert!(text.contains("42\\n"), "{text}");
    let report = &reply.structured()["notebook"];
    assert_eq!(report["path"], written.to_str().unwrap(), "{report}");
    assert!(
        reply.notices().contains(&"notebook_moved"),
        "{}",
        reply.text()
    );
}

#[test]
fn a_run_in_place_follows_its_directory() {
    for server in [&[][..], &["--shared"]] {
        let exchange = Exchange::new();
        let arguments = json!({"path": "sub/b.ipynb"});
        let (_, reply) = run_while(&exchange, &arguments, server, || exchange.exchange());
        assert_moved(&exchange, reply, "b.ipynb");
    }
}

#[test]
fn a_run_with_an_output_follows_its_directory() {
    for server in [&[][..], &["--shared"]] {
        let exchange = Exchange::new();
        let arguments = json!({"path": "sub/b.ipynb", "output": "sub/out.ipynb"});
        let (_, reply) = run_while(&exchange, &arguments, server, || exchange.exchange());
        assert_moved(&exchange, reply, "out.ipynb");
    }
}

#[test]
fn outputs_of_a_run_whose_directory_was_deleted_are_in_an_artifact() {
    let exchange = Exchange::new();
    let arguments = json!({"path": "sub/b.ipynb"});
    let (mut client, reply) = run_while(&exchange, &arguments, &[], || {
        exchange.exchange();
        fs::remove_dir_all(exchange.root.join(".other")).unwrap();
    });
    let text = reply.text();
    assert!(text.contains("Could not save the outputs in"), "{text}");
    assert!(!text.contains("/proc/"), "{text}");
    let artifact = reply.structured()["notebook"]["artifact"].as_str().unwrap();
    let stored = client.call("read", json!({"path": artifact})).ok();
    assert!(stored.text().contains("42"), "{}", stored.text());
}

#[test]
fn a_kernel_that_starts_later_starts_in_the_same_directory() {
    let exchange = Exchange::new();
    let mut client = exchange.client();
    let cells = json!([
        {"code": waiting_cell(&exchange.context)},
        {"code": "import os\nprint(sorted(os.listdir('.')))", "reset": true},
    ]);
    let arguments = json!({"cells": cells, "cwd": "sub", "session": "s"});
    let call = client.start_call("eval", arguments, "t");
    wait_for(&exchange.context.path("begun"));
    exchange.exchange();
    fs::write(exchange.context.path("go"), "").unwrap();
    let result = client.end(call).unwrap();
    let reply = ToolReply { result }.ok();
    assert_no_secret(&reply);
    assert!(reply.text().contains("inside.ipynb"), "{}", reply.text());
    // The path of the session leads outside now: a new kernel is refused.
    let code = "import os\nprint(os.listdir('.'))";
    let reply = client.call("eval", json!({"code": code, "session": "s", "reset": true}));
    let text = reply.error_text();
    assert!(text.contains("leads out of the roots"), "{text}");
}
