//! What a Python kernel that is not ours gets inside: the code of the silent requests that bring our own
//! Python files in and let them do what the runner does, and what comes back. No word is sent here.
//!
//! ```text
//! start        enter()                            silent, an expression beside the code; if it fails, the
//!                                                 kernel goes on without a guest
//! each cell    settle(request)?                   silent, only if something is to be set → settled(request)
//!              code(request)                      with expressions() as `user_expressions` → heard(reply)
//!              after(request)?                    silent
//! question     variables(n), helpers()            silent, an expression beside the code → answer(reply)
//! end          leave()                            silent, for a kernel that goes on without us
//! ```

mod literal;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::exchange;
use crate::kernel::{History, Request};

/// Finds our package inside the kernel, or brings it in.
const LOADER: &str = include_str!("../../../python/guest/call.py");

/// The member of `user_expressions` that is ours.
const EXPRESSION: &str = "cellwright";

/// Our part in one Python kernel.
#[derive(Debug)]
pub(super) struct Guest {
    /// Where our Python files are.
    folder: PathBuf,
    options: Options,
    /// Variables that were set or removed.
    env: BTreeMap<String, Option<String>>,
    /// What was put in front of the search path for modules.
    path: Vec<PathBuf>,
    /// Whether all that is known to be still so.
    sure: bool,
}

/// What a guest brings along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// The names of the prelude.
    pub(super) prelude: bool,
    /// The working directory as the first place where modules are looked for: not for kernels of others.
    pub(super) front: bool,
}

/// A silent request: code, and perhaps an expression, which is evaluated after it and outside of any cell.
/// The expression's value is the answer, if it is a question.
#[derive(Debug)]
pub(super) struct Asked {
    code: String,
    expressions: Map<String, Value>,
}

impl Asked {
    /// The content of the request.
    pub(super) fn content(self) -> Value {
        let mut content = exchange::silent(&self.code);
        content["user_expressions"] = self.expressions.into();
        content
    }
}

impl From<String> for Asked {
    fn from(code: String) -> Self {
        Self {
            code,
            expressions: Map::new(),
        }
    }
}

impl Guest {
    /// A guest whose files were staged in `folder`.
    pub(super) fn new(folder: PathBuf, options: Options) -> Self {
        Self {
            folder,
            options,
            env: BTreeMap::new(),
            path: Vec::new(),
            sure: false,
        }
    }

    /// Brings it in. It may be sent again.
    pub(super) fn enter(&self) -> Asked {
        Asked {
            code: self.call("enter", &[]),
            expressions: expressions("between_cells", &[]),
        }
    }

    /// Silent code that takes back what can be taken back.
    pub(super) fn leave(&self) -> String {
        self.call("leave", &[])
    }

    /// Silent code to run before a cell, if there is anything to set: where it runs, its variables, its
    /// search path, the script that it is.
    pub(super) fn settle(&self, request: &Request) -> Option<String> {
        let env = request.env.iter();
        let set = env
            .clone()
            .all(|(name, value)| self.env.get(name) == Some(value))
            && (request.path.is_empty() || request.path == self.path);
        let silent = is_plain_silent(request);
        let wants = !request.env.is_empty()
            || !request.path.is_empty()
            || request.file.is_some()
            || request.cwd.is_some()
            || silent;
        if !wants {
            return None;
        }
        if self.sure && set && request.cwd.is_none() && request.file.is_none() && !silent {
            return None;
        }
        let mut wanted = Vec::new();
        if !request.env.is_empty() {
            let env = env.map(|(name, value)| (name.as_str(), literal::optional(value.as_deref())));
            wanted.push(("env", literal::dict(env)));
        }
        if !request.path.is_empty() {
            let path = request.path.iter().map(|path| literal::path(path));
            wanted.push(("path", literal::list(path)));
        }
        if let Some(file) = &request.file {
            wanted.push(("file", literal::path(file)));
        }
        if let Some(cwd) = &request.cwd {
            wanted.push(("cwd", literal::path(cwd)));
        }
        if silent {
            wanted.push(("silent", literal::truth(true).to_owned()));
        }
        Some(self.call("settle", &[literal::dict(wanted)]))
    }

    /// The code of [`Guest::settle`] ran to its end.
    pub(super) fn settled(&mut self, request: &Request) {
        self.env.extend(request.env.iter().cloned());
        if !request.path.is_empty() {
            self.path.clone_from(&request.path);
        }
        self.sure = true;
    }

    /// It turned out that what was to be set is not.
    pub(super) fn unsettled(&mut self) {
        self.sure = false;
    }

    /// The code to send for a cell: its own, unless it is a module of the user's.
    pub(super) fn code<'a>(&self, request: &'a Request) -> Cow<'a, str> {
        match &request.module {
            None => Cow::Borrowed(&request.code),
            Some(path) => {
                let arguments = [literal::path(path), literal::text(&request.code)];
                Cow::Owned(self.call("run_module", &arguments))
            }
        }
    }

    /// What a cell's request has as `user_expressions`.
    pub(super) fn expressions() -> Map<String, Value> {
        expressions("settled", &[])
    }

    /// The reply to a cell came, which says whether what was set is still so.
    pub(super) fn heard(&mut self, reply: &Value) {
        self.sure = answer(reply) == Ok(Value::Bool(true));
    }

    /// Silent code to run after a cell, if there is anything left to do.
    pub(super) fn after(&self, request: &Request) -> Option<String> {
        is_plain_silent(request).then(|| self.call("keep", &[]))
    }

    /// Asks which variables there are.
    pub(super) fn variables(&self, limit: usize) -> Asked {
        let request = literal::dict([("limit", limit.to_string())]);
        self.ask("variables", request)
    }

    /// Asks which functions the kernel comes with.
    pub(super) fn helpers(&self) -> Asked {
        self.ask("helpers", literal::dict([]))
    }

    fn ask(&self, op: &str, request: String) -> Asked {
        Asked {
            code: self.call("ready", &[]),
            expressions: expressions("answer", &[literal::text(op), request]),
        }
    }

    /// Code that calls a function of `guest.py`; it brings that in where it is missing, as after somebody
    /// has restarted the kernel.
    fn call(&self, call: &str, arguments: &[String]) -> String {
        format!(
            include_str!("../../../python/guest/request.txt"),
            loader = literal::text(LOADER),
            folder = literal::path(&self.folder),
            options = literal::dict([
                ("prelude", literal::truth(self.options.prelude).to_owned()),
                ("front", literal::truth(self.options.front).to_owned()),
            ]),
            call = literal::text(call),
            arguments = literal::list(arguments.iter().cloned()),
        )
    }
}

fn expressions(call: &str, arguments: &[String]) -> Map<String, Value> {
    let source = format!(
        include_str!("../../../python/guest/expression.txt"),
        call = call,
        arguments = literal::list(arguments.iter().cloned()),
    );
    let source = source.trim_end().to_owned();
    Map::from_iter([(EXPRESSION.to_owned(), Value::String(source))])
}

/// A cell of ours that is no module: its names are not the user's.
fn is_plain_silent(request: &Request) -> bool {
    let silent = request.history == History::Silent && request.module.is_none();
    silent && !request.code.trim().is_empty()
}

/// Why the code of a silent request failed, from the content of its reply.
pub(super) fn failure(reply: &Value) -> Option<String> {
    (reply["status"] != "ok").then(|| error(reply))
}

/// The answer to a question, from the content of the reply.
pub(super) fn answer(reply: &Value) -> Result<Value, String> {
    if let Some(why) = failure(reply) {
        return Err(why);
    }
    let said = &reply["user_expressions"][EXPRESSION];
    if let Some(why) = failure(said) {
        return Err(why);
    }
    let Some(text) = said["data"]["text/plain"].as_str() else {
        return Err("the kernel gave no text as an answer".to_owned());
    };
    serde_json::from_str(text).map_err(|error| format!("the kernel's answer is no JSON: {error}"))
}

/// An error in one line.
fn error(content: &Value) -> String {
    match (content["ename"].as_str(), content["evalue"].as_str()) {
        (Some(name), Some("") | None) => name.to_owned(),
        (Some(name), Some(value)) => format!("{name}: {value}"),
        (None, _) => match content["status"].as_str() {
            Some(status) => format!("the kernel answered `{status}`"),
            None => "the kernel gave no answer".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use serde_json::json;

    use super::*;

    /// What the Python of the tests prints for this.
    #[expect(
        clippy::disallowed_methods,
        reason = "which one it is, is told by whoever runs the tests"
    )]
    pub(super) fn python(arguments: &[&str], input: &str) -> String {
        let python = std::env::var_os("CELLWRIGHT_TEST_PYTHON").unwrap_or_else(|| "python3".into());
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new(python)
            .args(arguments)
            .env("IPYTHONDIR", folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn guest() -> Guest {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let options = Options {
            prelude: true,
            front: true,
        };
        Guest::new(folder, options)
    }

    fn with_env(env: &[(&str, Option<&str>)]) -> Request {
        let env = env.iter();
        Request {
            env: env
                .map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned)))
                .collect(),
            ..Request::new("1")
        }
    }

    fn reply(settled: bool) -> Value {
        let said =
            json!({"status": "ok", "data": {"text/plain": settled.to_string()}, "metadata": {}});
        json!({"status": "ok", "user_expressions": {"cellwright": said}})
    }

    #[test]
    fn a_cell_that_brings_nothing_new_needs_no_second_message() {
        let mut guest = guest();
        let request = with_env(&[("A", Some("1")), ("B", None)]);
        assert!(guest.settle(&request).is_some(), "nothing is known yet");
        guest.settled(&request);
        assert_eq!(guest.settle(&request), None);
        assert_eq!(guest.settle(&with_env(&[("B", None)])), None);
        assert_eq!(guest.settle(&Request::new("1")), None);
        assert_eq!(guest.after(&request), None);
        assert_eq!(guest.code(&request), "1");

        assert!(guest.settle(&with_env(&[("A", Some("2"))])).is_some());
        assert!(guest.settle(&with_env(&[("A", None)])).is_some());
        assert!(guest.settle(&with_env(&[("C", None)])).is_some());
        let path = |names: &[&str]| Request {
            path: names.iter().map(PathBuf::from).collect(),
            ..Request::new("1")
        };
        assert!(guest.settle(&path(&["/a"])).is_some());
        guest.settled(&path(&["/a", "/b"]));
        assert_eq!(guest.settle(&path(&["/a", "/b"])), None);
        assert!(guest.settle(&path(&["/b", "/a"])).is_some());
    }

    #[test]
    fn what_a_cell_has_changed_is_set_again() {
        let mut guest = guest();
        let request = with_env(&[("A", Some("1"))]);
        guest.settled(&request);
        guest.heard(&reply(true));
        assert_eq!(guest.settle(&request), None);
        guest.heard(&reply(false));
        assert!(guest.settle(&request).is_some());
        guest.settled(&request);
        // A cell that failed says nothing about it.
        guest
            .heard(&json!({"status": "error", "ename": "E", "evalue": "", "user_expressions": {}}));
        assert!(guest.settle(&request).is_some());
    }

    #[test]
    fn folders_and_scripts_are_set_each_time() {
        let mut guest = guest();
        let moved = Request {
            cwd: Some("/".into()),
            ..Request::default()
        };
        let script = Request {
            file: Some("/a.py".into()),
            ..Request::new("1")
        };
        for request in [&moved, &script] {
            guest.settled(request);
            assert!(guest.settle(request).is_some());
            assert_eq!(guest.after(request), None);
        }
        let silent = Request {
            history: History::Silent,
            ..Request::new("def f(): pass")
        };
        assert!(
            guest
                .settle(&silent)
                .is_some_and(|code| code.contains("'silent': True"))
        );
        assert!(guest.after(&silent).is_some());
    }

    #[test]
    fn answers_and_failures_are_told_apart() {
        assert_eq!(answer(&reply(true)), Ok(json!(true)));
        let expression =
            |said: Value| json!({"status": "ok", "user_expressions": {"cellwright": said}});
        let failed = expression(
            json!({"status": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}),
        );
        assert_eq!(answer(&failed), Err("KeyError: 'x'".to_owned()));
        let raised =
            json!({"status": "error", "ename": "RuntimeError", "evalue": "no", "traceback": []});
        assert_eq!(answer(&raised), Err("RuntimeError: no".to_owned()));
        assert_eq!(failure(&raised), Some("RuntimeError: no".to_owned()));
        let nameless = json!({"status": "error", "ename": "E", "evalue": ""});
        assert_eq!(failure(&nameless), Some("E".to_owned()));
        assert_eq!(failure(&json!({"status": "ok"})), None);
        for odd in [
            json!({}),
            json!(null),
            json!([]),
            json!({"status": "aborted"}),
            json!({"status": "ok"}),
            json!({"status": "ok", "user_expressions": 1}),
            expression(json!({"status": "ok", "data": {"text/plain": ["[]"]}})),
            expression(json!({"status": "ok", "data": {"text/plain": "<Answer>"}})),
        ] {
            assert!(answer(&odd).is_err(), "{odd}");
        }
    }

    /// `IPython` itself runs the code that is made here: names with every sort of character in them come
    /// through, and nothing is left behind.
    #[test]
    fn ipython_does_what_the_code_says() {
        if python(
            &[
                "-c",
                "import importlib.util as u; print(u.find_spec('IPython') is not None)",
            ],
            "",
        ) != "True\n"
        {
            return;
        }
        let odd = Path::new(OsStr::from_bytes(
            b"/tmp/it's \"odd\"\\\n\xff\xf0\x9f\x98\x80",
        ));
        let value = "a'b\"c\\d\n{}%s\u{2028}é😀";
        let request = Request {
            env: vec![
                ("ODD".to_owned(), Some(value.to_owned())),
                ("HOME".to_owned(), None),
            ],
            path: vec![odd.to_owned()],
            file: Some(odd.join("script.py")),
            ..Request::new("1")
        };
        let module = Request {
            history: History::Silent,
            module: Some(odd.join("module.py")),
            ..Request::new("def twice(x):\n    'Two.'\n    return 2 * x  # é\n")
        };
        let guest = guest();
        let variables = guest.variables(10).expressions[EXPRESSION].clone();
        let codes = json!({
            "enter": guest.enter().code,
            "between": guest.enter().expressions[EXPRESSION],
            "ready": guest.helpers().code,
            "settle": guest.settle(&request),
            "module": guest.code(&module),
            "variables": variables,
            "helpers": guest.helpers().expressions[EXPRESSION],
            "settled": Guest::expressions()[EXPRESSION],
            "leave": guest.leave(),
        });
        let program = "import json, os, sys\nfrom IPython.core.interactiveshell import InteractiveShell\n\
            codes = json.load(sys.stdin)\nshell = InteractiveShell.instance()\n\
            before = set(shell.user_ns)\n\
            def run(name):\n    \
                result = shell.run_cell(codes[name], store_history=False, silent=True)\n    result.raise_error()\n\
            def ask(name):\n    return json.loads(repr(eval(codes[name], shell.user_ns)))\n\
            run('enter'); eval(codes['between']); run('settle'); run('module'); run('ready')\nshell.run_cell('x = 1', silent=True)\n\
            told = {'env': os.environ['ODD'], 'home': 'HOME' in os.environ, 'settled': ask('settled'),\n    \
                'path': list(map(ord, sys.path[0])), 'file': list(map(ord, shell.user_ns['__file__'])),\n    \
                'new': sorted(set(shell.user_ns) - before), 'variables': ask('variables'),\n    \
                'helpers': [h['name'] for h in ask('helpers') if h['module']]}\n\
            run('leave')\ntold['left'] = sorted(set(shell.user_ns) - before)\njson.dump(told, sys.stdout)";
        let said = python(&["-c", program], &codes.to_string());
        let told: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(told["env"], value);
        assert_eq!(told["home"], false);
        assert_eq!(told["settled"], true);
        let points: Vec<u32> = "/tmp/it's \"odd\"\\\n"
            .chars()
            .chain(['\u{fffd}', '😀'])
            .map(|one| {
                if one == '\u{fffd}' {
                    0xdcff
                } else {
                    u32::from(one)
                }
            })
            .collect();
        assert_eq!(told["path"], json!(points));
        assert_eq!(
            told["file"].as_array().unwrap()[..points.len()],
            json!(points).as_array().unwrap()[..]
        );
        let names = [
            "ToolError",
            "__file__",
            "env",
            "log",
            "output",
            "phase",
            "read",
            "run",
            "tool",
            "twice",
            "write",
            "x",
        ];
        assert_eq!(told["new"], json!(names));
        assert_eq!(told["variables"][0]["name"], "x");
        assert_eq!(told["variables"].as_array().unwrap().len(), 1);
        assert_eq!(told["helpers"], json!(["twice"]));
        assert_eq!(told["left"], json!(["__file__", "x"]));
    }
}
