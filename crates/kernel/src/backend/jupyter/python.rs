//! [`PythonSupport`]: code that runs inside a Python kernel other than the runner. This module builds the silent requests
//! that load the Python files there, which then do the same as the runner, and parses the replies. It sends
//! nothing itself.
//!
//! ```text
//! start        install()                          silent, with an expression; if it fails, the
//!                                                 kernel works without hooks
//! each cell    apply_context(request)?            silent, only if something must be set
//!                                                 → context_applied(request)
//!              cell_code(request)                 with context_check() as `user_expressions`
//!                                                 → update_from_reply(reply)
//!              cleanup_code(request)?             silent
//! query        variables(n), helpers()            silent, with an expression → reply_answer(reply)
//! end          uninstall()                        silent, for an attached kernel, which keeps running
//! ```

mod literal;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::backend::runner::staging;
use crate::execution;
use crate::kernel::{HistoryMode, Request};

/// Python code that finds the package inside the kernel, or loads it.
const LOADER: &str = include_str!("../../../python/injected/loader.py");

/// Python code that makes the package importable from memory.
const MEMORY_PACKAGE: &str = include_str!("../../../python/injected/memory_package.py");

/// The name of the expression in `user_expressions`.
const EXPRESSION: &str = "cellwright";

/// The hooks in one Python kernel, and the context that they have applied.
#[derive(Debug)]
pub(super) struct PythonSupport {
    files: SupportFiles,
    options: SupportOptions,
    /// Environment variables that were set, or removed (`None`).
    env: BTreeMap<String, Option<String>>,
    /// Directories that were put in front of the search path for modules.
    path: Vec<PathBuf>,
    /// Whether variables and search path are known to be unchanged since then.
    context_is_current: bool,
}

/// Where a kernel gets the Python files from.
#[derive(Clone, Debug)]
pub(super) enum SupportFiles {
    /// From a directory of this machine.
    Directory(PathBuf),
    /// With the first request: the kernel is on another machine.
    Inline,
}

impl SupportFiles {
    /// The directory, or the name that stands for it.
    fn directory(&self) -> PathBuf {
        match self {
            Self::Directory(dir) => dir.clone(),
            Self::Inline => PathBuf::from(format!("/cellwright/{}", staging::staged_dir_name())),
        }
    }
}

/// What the hooks install.
#[derive(Clone, Copy, Debug)]
pub(super) struct SupportOptions {
    /// The names of the prelude.
    pub(super) prelude: bool,
    /// The working directory as the first entry of the search path for modules: not for attached kernels.
    pub(super) cwd_first: bool,
}

/// A silent request: code, and optionally an expression that is evaluated after it and outside of any cell.
/// The value of the expression is the answer to a query.
#[derive(Debug)]
pub(super) struct SilentRequest {
    code: String,
    expressions: Map<String, Value>,
}

impl SilentRequest {
    /// The content of the request.
    pub(super) fn content(self) -> Value {
        let mut content = execution::silent_content(&self.code);
        content["user_expressions"] = self.expressions.into();
        content
    }
}

impl From<String> for SilentRequest {
    fn from(code: String) -> Self {
        Self {
            code,
            expressions: Map::new(),
        }
    }
}

impl PythonSupport {
    /// Hooks with these files.
    pub(super) fn new(files: SupportFiles, options: SupportOptions) -> Self {
        Self {
            files,
            options,
            env: BTreeMap::new(),
            path: Vec::new(),
            context_is_current: false,
        }
    }

    /// Installs the hooks. May be sent repeatedly.
    pub(super) fn install(&self) -> SilentRequest {
        let mut code = self.call_code("install", &[]);
        if let SupportFiles::Inline = self.files {
            code = format!("{}\n{code}", self.memory_package_code());
        }
        SilentRequest {
            code,
            expressions: call_expression("install_between_cells", &[]),
        }
    }

    /// Silent code that reverts the installation as far as possible.
    pub(super) fn uninstall(&self) -> String {
        self.call_code("uninstall", &[])
    }

    /// Silent code to run before a cell, if something must be set: its working directory, variables,
    /// search path, or script file.
    pub(super) fn apply_context(&self, request: &Request) -> Option<String> {
        let env = request.env.iter();
        let is_set = env
            .clone()
            .all(|(name, value)| self.env.get(name) == Some(value))
            && (request.search_path.is_empty() || request.search_path == self.path);
        let silent = is_plain_silent(request);
        let has_context = !request.env.is_empty()
            || !request.search_path.is_empty()
            || request.script.is_some()
            || request.cwd.is_some()
            || silent;
        if !has_context {
            return None;
        }
        if self.context_is_current
            && is_set
            && request.cwd.is_none()
            && request.script.is_none()
            && !silent
        {
            return None;
        }
        let mut context = Vec::new();
        if !request.env.is_empty() {
            let env =
                env.map(|(name, value)| (name.as_str(), literal::optional_text(value.as_deref())));
            context.push(("env", literal::dict(env)));
        }
        if !request.search_path.is_empty() {
            let path = request.search_path.iter().map(|path| literal::path(path));
            context.push(("path", literal::list(path)));
        }
        if let Some(file) = &request.script {
            context.push(("file", literal::path(file)));
        }
        if let Some(cwd) = &request.cwd {
            context.push(("cwd", literal::path(cwd.path())));
            if let Some(identity) = cwd.identity() {
                let identity = format!("[{}, {}]", identity.device, identity.inode);
                context.push(("cwd_identity", identity));
            }
        }
        if silent {
            context.push(("silent", literal::boolean(true).to_owned()));
        }
        Some(self.call_code("apply_context", &[literal::dict(context)]))
    }

    /// Records that the code of [`PythonSupport::apply_context`] ran.
    pub(super) fn context_applied(&mut self, request: &Request) {
        self.env.extend(request.env.iter().cloned());
        if !request.search_path.is_empty() {
            self.path.clone_from(&request.search_path);
        }
        self.context_is_current = true;
    }

    /// Records that the context may not be applied.
    pub(super) fn invalidate_context(&mut self) {
        self.context_is_current = false;
    }

    /// The code to send for a cell: the cell's own, unless it is a user module.
    pub(super) fn cell_code<'a>(&self, request: &'a Request) -> Cow<'a, str> {
        match &request.module {
            None => Cow::Borrowed(&request.code),
            Some(path) => {
                let arguments = [literal::path(path), literal::text(&request.code)];
                Cow::Owned(self.call_code("run_module", &arguments))
            }
        }
    }

    /// The `user_expressions` of a cell, which check whether the context is still applied.
    pub(super) fn context_check() -> Map<String, Value> {
        call_expression("context_applied", &[])
    }

    /// Reads from the reply to a cell whether the context is still applied.
    pub(super) fn update_from_reply(&mut self, reply: &Value) {
        self.context_is_current = reply_answer(reply) == Ok(Value::Bool(true));
    }

    /// Silent code to run after a cell, if any is needed.
    pub(super) fn cleanup_code(&self, request: &Request) -> Option<String> {
        is_plain_silent(request).then(|| self.call_code("keep_silent_names", &[]))
    }

    /// A query for the variables.
    pub(super) fn variables(&self, limit: usize) -> SilentRequest {
        let request = literal::dict([("limit", limit.to_string())]);
        self.query("variables", request)
    }

    /// A query for the helper functions.
    pub(super) fn helpers(&self) -> SilentRequest {
        self.query("helpers", literal::dict([]))
    }

    fn query(&self, op: &str, request: String) -> SilentRequest {
        SilentRequest {
            code: self.call_code("ensure_installed", &[]),
            expressions: call_expression("query", &[literal::text(op), request]),
        }
    }

    /// Code that contains all Python files.
    fn memory_package_code(&self) -> String {
        let files = staging::files();
        let sources = files.map(|(name, text)| (name, literal::text(text)));
        format!(
            "__import__(\"builtins\").exec({}, {{\"sources\": {}, \"directory\": {}}})",
            literal::text(MEMORY_PACKAGE),
            literal::dict(sources),
            literal::path(&self.files.directory()),
        )
    }

    /// Code that calls a function of `ipykernel_support.py`. It loads that file if it is missing, for example after another client
    /// has restarted the kernel.
    fn call_code(&self, call: &str, arguments: &[String]) -> String {
        format!(
            include_str!("../../../python/injected/request.txt"),
            loader = literal::text(LOADER),
            directory = literal::path(&self.files.directory()),
            options = literal::dict([
                ("prelude", literal::boolean(self.options.prelude).to_owned()),
                ("owned", literal::boolean(self.options.cwd_first).to_owned()),
            ]),
            call = literal::text(call),
            arguments = literal::list(arguments.iter().cloned()),
        )
    }
}

fn call_expression(call: &str, arguments: &[String]) -> Map<String, Value> {
    let source = format!(
        include_str!("../../../python/injected/expression.txt"),
        call = call,
        arguments = literal::list(arguments.iter().cloned()),
    );
    let source = source.trim_end().to_owned();
    Map::from_iter([(EXPRESSION.to_owned(), Value::String(source))])
}

/// Whether this is internal code that is not a module: its names are not the user's.
fn is_plain_silent(request: &Request) -> bool {
    let silent = request.history == HistoryMode::Silent && request.module.is_none();
    silent && !request.code.trim().is_empty()
}

/// Why the code of a silent request failed, from the content of its reply.
pub(super) fn reply_failure(reply: &Value) -> Option<String> {
    (reply["status"] != "ok").then(|| error_line(reply))
}

/// The answer to a query, from the content of the reply.
pub(super) fn reply_answer(reply: &Value) -> Result<Value, String> {
    if let Some(failure) = reply_failure(reply) {
        return Err(failure);
    }
    let value = &reply["user_expressions"][EXPRESSION];
    if let Some(failure) = reply_failure(value) {
        return Err(failure);
    }
    let Some(text) = value["data"]["text/plain"].as_str() else {
        return Err("the kernel's answer contains no text".to_owned());
    };
    serde_json::from_str(text).map_err(|error| format!("the kernel's answer is not JSON: {error}"))
}

/// An error in one line.
fn error_line(content: &Value) -> String {
    match (content["ename"].as_str(), content["evalue"].as_str()) {
        (Some(name), Some("") | None) => name.to_owned(),
        (Some(name), Some(value)) => format!("{name}: {value}"),
        (None, _) => match content["status"].as_str() {
            Some(status) => format!("the kernel replied with status `{status}`"),
            None => "the kernel's reply has no status".to_owned(),
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

    /// Runs the Python interpreter of the tests. Returns its output.
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment of the tests names the interpreter"
    )]
    pub(super) fn python(arguments: &[&str], input: &str) -> String {
        let python = std::env::var_os("CELLWRIGHT_TEST_PYTHON").unwrap_or_else(|| "python3".into());
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new(python)
            .args(arguments)
            .env("IPYTHONDIR", dir.path())
            .current_dir(dir.path())
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

    fn hooks() -> PythonSupport {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let options = SupportOptions {
            prelude: true,
            cwd_first: true,
        };
        PythonSupport::new(SupportFiles::Directory(dir), options)
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

    fn reply_with(is_applied: bool) -> Value {
        let value =
            json!({"status": "ok", "data": {"text/plain": is_applied.to_string()}, "metadata": {}});
        json!({"status": "ok", "user_expressions": {"cellwright": value}})
    }

    #[test]
    fn an_unchanged_context_is_not_sent_again() {
        let mut hooks = hooks();
        let request = with_env(&[("A", Some("1")), ("B", None)]);
        assert!(
            hooks.apply_context(&request).is_some(),
            "no context is applied yet"
        );
        hooks.context_applied(&request);
        assert_eq!(hooks.apply_context(&request), None);
        assert_eq!(hooks.apply_context(&with_env(&[("B", None)])), None);
        assert_eq!(hooks.apply_context(&Request::new("1")), None);
        assert_eq!(hooks.cleanup_code(&request), None);
        assert_eq!(hooks.cell_code(&request), "1");

        assert!(
            hooks
                .apply_context(&with_env(&[("A", Some("2"))]))
                .is_some()
        );
        assert!(hooks.apply_context(&with_env(&[("A", None)])).is_some());
        assert!(hooks.apply_context(&with_env(&[("C", None)])).is_some());
        let path = |names: &[&str]| Request {
            search_path: names.iter().map(PathBuf::from).collect(),
            ..Request::new("1")
        };
        assert!(hooks.apply_context(&path(&["/a"])).is_some());
        hooks.context_applied(&path(&["/a", "/b"]));
        assert_eq!(hooks.apply_context(&path(&["/a", "/b"])), None);
        assert!(hooks.apply_context(&path(&["/b", "/a"])).is_some());
    }

    #[test]
    fn a_changed_context_is_applied_again() {
        let mut hooks = hooks();
        let request = with_env(&[("A", Some("1"))]);
        hooks.context_applied(&request);
        hooks.update_from_reply(&reply_with(true));
        assert_eq!(hooks.apply_context(&request), None);
        hooks.update_from_reply(&reply_with(false));
        assert!(hooks.apply_context(&request).is_some());
        hooks.context_applied(&request);
        // The reply of a failed cell contains no expressions.
        hooks.update_from_reply(
            &json!({"status": "error", "ename": "E", "evalue": "", "user_expressions": {}}),
        );
        assert!(hooks.apply_context(&request).is_some());
    }

    #[test]
    fn working_directory_and_script_are_applied_each_time() {
        let mut hooks = hooks();
        let moved = Request {
            cwd: Some("/".into()),
            ..Request::default()
        };
        let script = Request {
            script: Some("/a.py".into()),
            ..Request::new("1")
        };
        for request in [&moved, &script] {
            hooks.context_applied(request);
            assert!(hooks.apply_context(request).is_some());
            assert_eq!(hooks.cleanup_code(request), None);
        }
        let silent = Request {
            history: HistoryMode::Silent,
            ..Request::new("def f(): pass")
        };
        assert!(
            hooks
                .apply_context(&silent)
                .is_some_and(|code| code.contains("'silent': True"))
        );
        assert!(hooks.cleanup_code(&silent).is_some());
    }

    #[test]
    fn answers_and_failures_are_distinguished() {
        assert_eq!(reply_answer(&reply_with(true)), Ok(json!(true)));
        let expression =
            |value: Value| json!({"status": "ok", "user_expressions": {"cellwright": value}});
        let failed = expression(
            json!({"status": "error", "ename": "KeyError", "evalue": "'x'", "traceback": []}),
        );
        assert_eq!(reply_answer(&failed), Err("KeyError: 'x'".to_owned()));
        let raised =
            json!({"status": "error", "ename": "RuntimeError", "evalue": "no", "traceback": []});
        assert_eq!(reply_answer(&raised), Err("RuntimeError: no".to_owned()));
        assert_eq!(reply_failure(&raised), Some("RuntimeError: no".to_owned()));
        let without_value = json!({"status": "error", "ename": "E", "evalue": ""});
        assert_eq!(reply_failure(&without_value), Some("E".to_owned()));
        assert_eq!(reply_failure(&json!({"status": "ok"})), None);
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
            assert!(reply_answer(&odd).is_err(), "{odd}");
        }
    }

    /// `IPython` runs the generated code: values with any characters arrive, and no names are left over.
    #[test]
    fn generated_code_works_in_ipython() {
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
            search_path: vec![odd.to_owned()],
            script: Some(odd.join("script.py")),
            ..Request::new("1")
        };
        let module = Request {
            history: HistoryMode::Silent,
            module: Some(odd.join("module.py")),
            ..Request::new("def twice(x):\n    'Two.'\n    return 2 * x  # é\n")
        };
        let hooks = hooks();
        let variables = hooks.variables(10).expressions[EXPRESSION].clone();
        let codes = json!({
            "enter": hooks.install().code,
            "between": hooks.install().expressions[EXPRESSION],
            "ready": hooks.helpers().code,
            "settle": hooks.apply_context(&request),
            "module": hooks.cell_code(&module),
            "variables": variables,
            "helpers": hooks.helpers().expressions[EXPRESSION],
            "settled": PythonSupport::context_check()[EXPRESSION],
            "leave": hooks.uninstall(),
        });
        let program = "import json, os, sys\nfrom IPython.core.interactiveshell import InteractiveShell\n\
            codes = json.load(sys.stdin)\nshell = InteractiveShell.instance()\n\
            before = set(shell.user_ns)\n\
            def run(name):\n    \
                result = shell.run_cell(codes[name], store_history=False, silent=True)\n    result.raise_error()\n\
            def ask(name):\n    return json.loads(repr(eval(codes[name], shell.user_ns)))\n\
            run('enter'); eval(codes['between']); run('settle'); run('module'); run('ready')\nshell.run_cell('x = 1', silent=True)\n\
            report = {'env': os.environ['ODD'], 'home': 'HOME' in os.environ, 'settled': ask('settled'),\n    \
                'path': list(map(ord, sys.path[0])), 'file': list(map(ord, shell.user_ns['__file__'])),\n    \
                'new': sorted(set(shell.user_ns) - before), 'variables': ask('variables'),\n    \
                'helpers': [h['name'] for h in ask('helpers') if h['module']]}\n\
            run('leave')\nreport['left'] = sorted(set(shell.user_ns) - before)\njson.dump(report, sys.stdout)";
        let output = python(&["-c", program], &codes.to_string());
        let report: Value = serde_json::from_str(&output).unwrap();
        assert_eq!(report["env"], value);
        assert_eq!(report["home"], false);
        assert_eq!(report["settled"], true);
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
        assert_eq!(report["path"], json!(points));
        assert_eq!(
            report["file"].as_array().unwrap()[..points.len()],
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
        assert_eq!(report["new"], json!(names));
        assert_eq!(report["variables"][0]["name"], "x");
        assert_eq!(report["variables"].as_array().unwrap().len(), 1);
        assert_eq!(report["helpers"], json!(["twice"]));
        assert_eq!(report["left"], json!(["__file__", "x"]));
    }
}
