//! Code in a kernel: the prelude, calls of verbs through the bridge, and modules.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::context::Context;

/// Environment variables that name a proxy. The tests set them to a port without a server.
const PROXIES: [&str; 6] = [
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
];

#[test]
fn a_cell_reads_and_changes_a_notebook() {
    let context = Context::with_notebook();
    let code = "\
old = tool.read('a.ipynb:cells=1')
done = tool.edit('a.ipynb', old='42', new='43', all=True)
tool.notebook('insert', 'a.ipynb', source='-x', after=0, type='raw')
tool.write('a.ipynb', tool.read('a.ipynb') + '# %% [code]\\nlast = 1\\n', rev=None)
print(old, read('a.ipynb', 5, 2), [cell['cell_type'] for cell in tool.notebook('outline', 'a.ipynb')['cells']])
done['revision'] != ''";
    let result = context.eval(&[code]).exits(0);
    let expected = "\
# %% [code] cell:1
answer = 42
print(answer)
 # %% [raw] cell:1
-x
 ['markdown', 'raw', 'code', 'code', 'code']
True
";
    assert_eq!(result.stdout, expected, "{}", result.stderr);
    assert!(context.content("a.ipynb").contains("answer = 43"));
}

#[test]
fn a_verb_that_fails_raises_its_error() {
    let context = Context::with_notebook();
    let code = "\
for call in (lambda: tool.edit('a.ipynb', old='nowhere', new=''),
             lambda: tool.read('--help'),
             lambda: tool.read('a.ipynb', colour=1),
             lambda: tool['notebook']('explode', 'a.ipynb')):
    try: call()
    except ToolError as error: print(error.kind, error.exit_code, '|', str(error).split(chr(10))[0])";
    let result = context.eval(&[code]).exits(0);
    let expected = "\
bad_edit 2 | tool.edit: The text to replace occurs 0 times in a.ipynb
bad_file 2 | tool.read: File not found: --help
bad_arguments 2 | tool.read: `read` has no argument `colour`; available: path, full
bad_arguments 2 | tool.notebook: `notebook` has no action `explode`; actions: edit, insert, delete, move, type, clear, tag, meta, outline, parameters, figures, undo, redo, where, upgrade
";
    let without_first_line =
        |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert!(
        result.stdout.starts_with("bad_edit 2 | tool.edit: "),
        "{}",
        result.stdout
    );
    assert_eq!(
        without_first_line(&result.stdout),
        without_first_line(expected),
        "{}",
        result.stderr
    );
}

#[test]
fn large_texts_pass_through_the_bridge() {
    let context = Context::with_notebook();
    let code = "\
big = 'x = 1  # ä\\n' * 60_000
tool.notebook('edit', 'a.ipynb', 1, source=big)
text = tool.read('a.ipynb:cells=1')
write('b.ipynb', '# %% [code]\\n' + big)
text.count('x = 1'), read('b.ipynb').count('x = 1'), len(tool.read('b.ipynb')) > 600_000";
    let result = context.eval(&[code]).exits(0);
    assert_eq!(result.stdout, "(60000, 60000, True)\n", "{}", result.stderr);
}

#[test]
fn verbs_run_in_the_directory_of_the_code_and_ignore_proxies() {
    let context = Context::with_notebook();
    fs::create_dir(context.path("sub")).unwrap();
    fs::rename(context.path("a.ipynb"), context.path("sub/a.ipynb")).unwrap();
    let mut command = context.eval_command(&["%cd -q sub\nprint(tool.read('a.ipynb:1'), end='')"]);
    for name in PROXIES {
        command.env(name, "http://127.0.0.1:9");
    }
    let result = crate::context::CommandOutput::new(&context, &command.output().unwrap()).exits(0);
    assert_eq!(result.stdout, "# %% [markdown] cell:0\n");
}

#[test]
fn many_threads_can_call_verbs_concurrently() {
    let context = Context::with_notebook();
    let code = "\
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(40) as pool:
    texts = list(pool.map(lambda n: tool.read(f'a.ipynb:cells={n % 3}'), range(60)))
sorted({text.split(chr(10))[0] for text in texts}), len(texts)";
    let result = context.eval(&[code]).exits(0);
    assert_eq!(
        result.stdout.replace("\n ", " "),
        "(['# %% [code] cell:1', '# %% [code] cell:2', '# %% [markdown] cell:0'], 60)\n"
    );
}

#[test]
fn a_call_after_the_end_of_the_cell_is_rejected() {
    let context = Context::with_notebook();
    let code = "\
import threading, time
def late():
    time.sleep(1)
    try: tool.read('a.ipynb')
    except ToolError as error: print(error)
threading.Thread(target=late).start()";
    let result = context.eval(&[code]).exits(0);
    assert_eq!(
        result.stdout,
        "tool.read: no cell of this session is running\n"
    );
}

/// Creates `slow`, an interpreter that never becomes ready and writes its process id into the file `pid`.
fn create_slow_python(context: &Context) {
    use std::os::unix::fs::PermissionsExt;
    let path = context.file("slow", "#!/bin/sh\necho $$ > pid\nexec sleep 60\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_timeout_of_a_cell_stops_the_verb_that_it_calls() {
    for code in [
        "tool.doctor(python='./slow')",
        "import threading, time\ndef f():\n    try: tool.doctor(python='./slow')\n    except ToolError as e: print(e, e.exit_code)\nthreading.Thread(target=f).start(); time.sleep(60)",
    ] {
        let context = Context::new();
        create_slow_python(&context);
        let started = Instant::now();
        let result = context.eval(&["--timeout", "2", code]).exits(124);
        assert!(
            result.stderr.contains("was interrupted"),
            "{}",
            result.stderr
        );
        assert!(started.elapsed() < Duration::from_secs(20));
        if code.contains("thread") {
            assert_eq!(result.stdout, "tool.doctor: the cell was stopped 130\n");
        }
        let pid = context.content("pid").trim().to_owned();
        let has_ended = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            !std::path::Path::new("/proc").join(&pid).exists()
        });
        assert!(has_ended, "{pid} still runs");
    }
}

#[test]
fn a_bridge_token_is_valid_for_one_run_only() {
    let context = Context::with_notebook();
    let code = "\
import os, time
open('door', 'w').write(env('CELLWRIGHT_BRIDGE_URL') + ' ' + env('CELLWRIGHT_BRIDGE_TOKEN'))
os.rename('door', 'door.txt')
while not os.path.exists('done'): time.sleep(0.05)
len(tool.read('a.ipynb')) > 0";
    let first = context.eval_command(&[code]).spawn().unwrap();
    let code = "\
import os, time
while not os.path.exists('door.txt'): time.sleep(0.05)
url, token = open('door.txt').read().split()
mine = env('CELLWRIGHT_BRIDGE_URL'), env('CELLWRIGHT_BRIDGE_TOKEN')
for door in ((url, mine[1]), (mine[0], token), mine):
    env('CELLWRIGHT_BRIDGE_URL', door[0]); env('CELLWRIGHT_BRIDGE_TOKEN', door[1])
    try: print(len(tool.read('a.ipynb')) > 0)
    except ToolError as error: print(error)
write('done', '')";
    let result = context.eval(&[code]).exits(0);
    let first = first.wait_with_output().unwrap();
    assert_eq!(
        result.stdout,
        "tool.read: unknown token\ntool.read: unknown token\nTrue\n'done'\n"
    );
    assert_eq!(String::from_utf8_lossy(&first.stdout), "True\n");
}

#[test]
fn cells_read_artifacts_and_send_events() {
    let context = Context::new();
    context
        .eval(&["for i in range(100_000): print('line', i)"])
        .exits(0);
    let code = "phase('Look'); log('at it')\nprint(output(1, offset=50_001, limit=1), len(output(1)), read('artifact://1', 2, 1))";
    let result = context.eval(&[code, "--json"]).exits(0);
    let cell = &result.json()["cells"][0];
    assert_eq!(cell["text"], "line 50000\n 1088890 line 1\n\n");
    assert_eq!(
        cell["events"].as_array().unwrap()[..2],
        [
            json!({"op": "phase", "title": "Look"}),
            json!({"op": "log", "message": "at it"})
        ]
    );
    assert_eq!(cell["outputs"].as_array().unwrap().len(), 1);
}

#[test]
fn modules_of_the_user_run_before_the_first_cell() {
    let context = Context::new();
    let dir = context.home().join(".config/cellwright/modules");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("a.py"),
        "def twice(x: int) -> int:\n    \"Two of it.\"\n    return 2 * x\n",
    )
    .unwrap();
    fs::write(
        dir.join("b.py"),
        "print('hello from b')\nx = twice(2)\nx / 0\n",
    )
    .unwrap();
    let result = context
        .eval(&["--cell", "twice(21)", "--cell", "x, Out"])
        .exits(0);
    assert_eq!(result.stdout, "42\n(4, {1: 42})\n");
    let module = dir.join("b.py").display().to_string();
    assert_eq!(
        result.stderr,
        format!(
            "notice: the module {module}:3 failed: ZeroDivisionError: division by zero\n\
             notice: the module {module} printed: hello from b\n"
        )
    );
    // Output of a thread still belongs to the cell that started it.
    let late = "import threading, time\ndef f():\n    time.sleep(0.3); print('late')\nthreading.Thread(target=f).start()";
    let result = context
        .eval(&["--json", "--cell", late, "--cell", "1"])
        .exits(0);
    assert_eq!(result.json()["cells"][0]["text"], "late\n");
    let mut helpers = context.command(&["helpers", "twice", "log"]);
    if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
        helpers.arg("--python").arg(python);
    }
    let result = crate::context::CommandOutput::new(&context, &helpers.output().unwrap()).exits(0);
    let module = dir.join("a.py").display().to_string();
    assert_eq!(
        result.stdout,
        format!(
            "log(message: object) -> None\n    Send a progress message to the clients that follow the run.\n\n\
             from {module}:\ntwice(x: int) -> int\n    Two of it.\n"
        )
    );
}

#[test]
fn a_module_that_does_not_end_exceeds_the_limit_of_the_start() {
    let context = Context::new();
    let dir = context.home().join(".config/cellwright/modules");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("a.py"), "while True: pass\n").unwrap();
    let result = context.eval(&["--start-timeout", "1", "1"]).exits(2);
    let expected = "The kernel was not ready after 1 s\n\nhint: `--start-timeout SECONDS` sets";
    assert!(result.stderr.contains(expected), "{}", result.stderr);
}

#[test]
fn modules_of_a_project_run_only_while_they_are_trusted_and_unchanged() {
    let context = Context::new();
    let modules = context.path(".cellwright/modules");
    fs::create_dir_all(&modules).unwrap();
    fs::create_dir_all(context.path(".git")).unwrap();
    fs::create_dir_all(context.path("deep/below")).unwrap();
    fs::write(modules.join("a.py"), "where = 'project'\n").unwrap();
    let user = context.home().join(".config/cellwright/modules");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("a.py"), "where = 'user'\n").unwrap();
    let check_value = |expected: &str, notice: &str| {
        let result = context.eval(&["--cwd", "deep/below", "where"]).exits(0);
        assert_eq!(
            result.stdout,
            format!("'{expected}'\n"),
            "{}",
            result.stderr
        );
        assert!(result.stderr.contains(notice), "{}", result.stderr);
        assert_eq!(
            result.stderr.is_empty(),
            notice.is_empty(),
            "{}",
            result.stderr
        );
    };
    check_value("user", "skipped untrusted module");
    let path = modules.join("a.py").canonicalize().unwrap();
    let result = context.run(&["trust"]).exits(0);
    assert_eq!(
        result.stdout,
        format!("trusted  18 B  {}\n", path.display())
    );
    check_value("project", "");
    fs::write(modules.join("a.py"), "where = 'changed'\n").unwrap();
    check_value("user", "skipped changed module");
    let listed = context.run(&["trust", "--list", "--json"]).exits(0).json();
    assert_eq!(listed["files"][0]["state"], "changed");
    context.run(&["trust", "deep"]).exits(0);
    check_value("changed", "");
    let result = context.run(&["trust", "--remove"]).exits(0);
    assert!(result.stdout.starts_with("removed"), "{}", result.stdout);
    check_value("user", "skipped untrusted module");
}

#[test]
fn a_path_that_cannot_be_trusted_is_an_error() {
    let context = Context::new();
    let result = context.run(&["trust"]).exits(2);
    assert!(
        result.stderr.contains(".cellwright/modules"),
        "{}",
        result.stderr
    );
    context.run(&["trust", "missing"]).exits(2);
    let state = context.home().join(".local/state/cellwright");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("trust.json"), "nonsense").unwrap();
    let result = context.run(&["trust", "--list"]).exits(2);
    assert!(
        result
            .stderr
            .contains("if it is removed, no file is trusted"),
        "{}",
        result.stderr
    );
}
