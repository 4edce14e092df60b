//! What code finds inside a kernel: the prelude, the way back to the verbs, modules.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::context::Context;

/// Variables by which a proxy would be used; nobody listens there.
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
    let ran = context.eval(&[code]).exits(0);
    let expected = "\
# %% [code] cell:1
answer = 42
print(answer)
 # %% [raw] cell:1
-x
 ['markdown', 'raw', 'code', 'code', 'code']
True
";
    assert_eq!(ran.stdout, expected, "{}", ran.stderr);
    assert!(context.content("a.ipynb").contains("answer = 43"));
}

#[test]
fn a_verb_that_fails_raises_its_words() {
    let context = Context::with_notebook();
    let code = "\
for call in (lambda: tool.edit('a.ipynb', old='nowhere', new=''),
             lambda: tool.read('--help'),
             lambda: tool.read('a.ipynb', colour=1),
             lambda: tool['notebook']('explode', 'a.ipynb')):
    try: call()
    except ToolError as error: print(error.kind, error.exit_code, '|', str(error).split(chr(10))[0])";
    let ran = context.eval(&[code]).exits(0);
    let expected = "\
bad_edit 2 | tool.edit: The text to replace occurs 0 times in a.ipynb
bad_file 2 | tool.read: File not found: --help
bad_arguments 2 | tool.read: `read` has no argument `colour`; available: path
bad_arguments 2 | tool.notebook: `notebook` has no action `explode`; actions: edit, insert, delete, move, type, clear, outline, upgrade
";
    let second = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert!(
        ran.stdout.starts_with("bad_edit 2 | tool.edit: "),
        "{}",
        ran.stdout
    );
    assert_eq!(second(&ran.stdout), second(expected), "{}", ran.stderr);
}

#[test]
fn texts_of_any_size_go_through() {
    let context = Context::with_notebook();
    let code = "\
big = 'x = 1  # ä\\n' * 60_000
tool.notebook('edit', 'a.ipynb', 1, source=big)
text = tool.read('a.ipynb:cells=1')
write('b.ipynb', '# %% [code]\\n' + big)
text.count('x = 1'), read('b.ipynb').count('x = 1'), len(tool.read('b.ipynb')) > 600_000";
    let ran = context.eval(&[code]).exits(0);
    assert_eq!(ran.stdout, "(60000, 60000, True)\n", "{}", ran.stderr);
}

#[test]
fn verbs_run_where_the_code_is_and_proxies_are_not_asked() {
    let context = Context::with_notebook();
    fs::create_dir(context.path("sub")).unwrap();
    fs::rename(context.path("a.ipynb"), context.path("sub/a.ipynb")).unwrap();
    let mut command = context.eval_command(&["%cd -q sub\nprint(tool.read('a.ipynb:1'), end='')"]);
    for name in PROXIES {
        command.env(name, "http://127.0.0.1:9");
    }
    let ran = crate::context::CommandOutput::new(&context, &command.output().unwrap()).exits(0);
    assert_eq!(ran.stdout, "# %% [markdown] cell:0\n");
}

#[test]
fn many_threads_call_at_once() {
    let context = Context::with_notebook();
    let code = "\
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(40) as pool:
    texts = list(pool.map(lambda n: tool.read(f'a.ipynb:cells={n % 3}'), range(60)))
sorted({text.split(chr(10))[0] for text in texts}), len(texts)";
    let ran = context.eval(&[code]).exits(0);
    assert_eq!(
        ran.stdout.replace("\n ", " "),
        "(['# %% [code] cell:1', '# %% [code] cell:2', '# %% [markdown] cell:0'], 60)\n"
    );
}

#[test]
fn a_call_after_the_cell_is_not_answered() {
    let context = Context::with_notebook();
    let code = "\
import threading, time
def late():
    time.sleep(1)
    try: tool.read('a.ipynb')
    except ToolError as error: print(error)
threading.Thread(target=late).start()";
    let ran = context.eval(&[code]).exits(0);
    assert_eq!(
        ran.stdout,
        "tool.read: no cell of this session is running\n"
    );
}

/// A Python that never gets ready, and says which process it is.
fn slow_python(context: &Context) {
    use std::os::unix::fs::PermissionsExt;
    let path = context.file("slow", "#!/bin/sh\necho $$ > pid\nexec sleep 60\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_call_ends_with_its_cell_and_so_does_the_verb() {
    for code in [
        "tool.doctor(python='./slow')",
        "import threading, time\ndef f():\n    try: tool.doctor(python='./slow')\n    except ToolError as e: print(e, e.exit_code)\nthreading.Thread(target=f).start(); time.sleep(60)",
    ] {
        let context = Context::new();
        slow_python(&context);
        let begin = Instant::now();
        let ran = context.eval(&["--timeout", "2", code]).exits(124);
        assert!(ran.stderr.contains("was interrupted"), "{}", ran.stderr);
        assert!(begin.elapsed() < Duration::from_secs(20));
        if code.contains("thread") {
            assert_eq!(ran.stdout, "tool.doctor: the cell was stopped 130\n");
        }
        let pid = context.content("pid").trim().to_owned();
        let gone = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            !std::path::Path::new("/proc").join(&pid).exists()
        });
        assert!(gone, "{pid} is still there");
    }
}

#[test]
fn a_token_of_one_run_is_worth_nothing_to_another() {
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
    let ran = context.eval(&[code]).exits(0);
    let first = first.wait_with_output().unwrap();
    assert_eq!(
        ran.stdout,
        "tool.read: unknown token\ntool.read: unknown token\nTrue\n'done'\n"
    );
    assert_eq!(String::from_utf8_lossy(&first.stdout), "True\n");
}

#[test]
fn kept_outputs_are_read_and_events_are_told() {
    let context = Context::new();
    context
        .eval(&["for i in range(100_000): print('line', i)"])
        .exits(0);
    let code = "phase('Look'); log('at it')\nprint(output(1, offset=50_001, limit=1), len(output(1)), read('artifact://1', 2, 1))";
    let ran = context.eval(&[code, "--json"]).exits(0);
    let cell = &ran.json()["cells"][0];
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
    let folder = context.home().join(".config/cellwright/modules");
    fs::create_dir_all(&folder).unwrap();
    fs::write(
        folder.join("a.py"),
        "def twice(x: int) -> int:\n    \"Two of it.\"\n    return 2 * x\n",
    )
    .unwrap();
    fs::write(
        folder.join("b.py"),
        "print('hello from b')\nx = twice(2)\nx / 0\n",
    )
    .unwrap();
    let ran = context
        .eval(&["--cell", "twice(21)", "--cell", "x, Out"])
        .exits(0);
    assert_eq!(ran.stdout, "42\n(4, {1: 42})\n");
    let module = folder.join("b.py").display().to_string();
    assert_eq!(
        ran.stderr,
        format!(
            "notice: the module {module}:3 failed: ZeroDivisionError: division by zero\n\
             notice: the module {module} printed: hello from b\n"
        )
    );
    // Text of a thread still goes to the cell that started it.
    let late = "import threading, time\ndef f():\n    time.sleep(0.3); print('late')\nthreading.Thread(target=f).start()";
    let ran = context
        .eval(&["--json", "--cell", late, "--cell", "1"])
        .exits(0);
    assert_eq!(ran.json()["cells"][0]["text"], "late\n");
    let mut helpers = context.command(&["helpers", "twice", "log"]);
    if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
        helpers.arg("--python").arg(python);
    }
    let ran = crate::context::CommandOutput::new(&context, &helpers.output().unwrap()).exits(0);
    let module = folder.join("a.py").display().to_string();
    assert_eq!(
        ran.stdout,
        format!(
            "log(message: object) -> None\n    Send a progress message to the clients that follow the run.\n\n\
             from {module}:\ntwice(x: int) -> int\n    Two of it.\n"
        )
    );
}

#[test]
fn a_module_that_does_not_end_is_a_timeout() {
    let context = Context::new();
    let folder = context.home().join(".config/cellwright/modules");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.py"), "while True: pass\n").unwrap();
    let ran = context.eval(&["--timeout", "1", "1"]).exits(124);
    assert!(
        ran.stderr.contains("before the code started"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_projects_modules_run_once_they_are_trusted_and_until_they_change() {
    let context = Context::new();
    let modules = context.path(".cellwright/modules");
    fs::create_dir_all(&modules).unwrap();
    fs::create_dir_all(context.path(".git")).unwrap();
    fs::create_dir_all(context.path("deep/below")).unwrap();
    fs::write(modules.join("a.py"), "where = 'project'\n").unwrap();
    let user = context.home().join(".config/cellwright/modules");
    fs::create_dir_all(&user).unwrap();
    fs::write(user.join("a.py"), "where = 'user'\n").unwrap();
    let asked = |expected: &str, notice: &str| {
        let ran = context.eval(&["--cwd", "deep/below", "where"]).exits(0);
        assert_eq!(ran.stdout, format!("'{expected}'\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains(notice), "{}", ran.stderr);
        assert_eq!(ran.stderr.is_empty(), notice.is_empty(), "{}", ran.stderr);
    };
    asked("user", "skipped untrusted module");
    let path = modules.join("a.py").canonicalize().unwrap();
    let ran = context.run(&["trust"]).exits(0);
    assert_eq!(
        ran.stdout,
        format!("trusted       18 B  {}\n", path.display())
    );
    asked("project", "");
    fs::write(modules.join("a.py"), "where = 'changed'\n").unwrap();
    asked("user", "skipped changed module");
    let listed = context.run(&["trust", "--list", "--json"]).exits(0).json();
    assert_eq!(listed["files"][0]["standing"], "changed");
    context.run(&["trust", "deep"]).exits(0);
    asked("changed", "");
    let ran = context.run(&["trust", "--remove"]).exits(0);
    assert!(ran.stdout.starts_with("removed"), "{}", ran.stdout);
    asked("user", "skipped untrusted module");
}

#[test]
fn what_cannot_be_trusted_is_an_error_that_says_so() {
    let context = Context::new();
    let ran = context.run(&["trust"]).exits(2);
    assert!(ran.stderr.contains(".cellwright/modules"), "{}", ran.stderr);
    context.run(&["trust", "missing"]).exits(2);
    let state = context.home().join(".local/state/cellwright");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("trust.json"), "nonsense").unwrap();
    let ran = context.run(&["trust", "--list"]).exits(2);
    assert!(
        ran.stderr.contains("if it is removed, no file is trusted"),
        "{}",
        ran.stderr
    );
}
