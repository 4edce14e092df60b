//! The same operations in several languages.

use cellwright_jupyter::kernelspec::Kernelspec;

use super::kernelspec;
use crate::support::python;

/// A language and its code snippets.
#[derive(Clone)]
pub(super) struct Language {
    pub(super) kernelspec: Kernelspec,
    /// The name that the kernel reports.
    pub(super) name: &'static str,
    /// Sets x to 5.
    pub(super) set: &'static str,
    /// Prints x.
    pub(super) get: &'static str,
    /// Prints `line 0` to `line 199`, each on its line.
    pub(super) lines: &'static str,
    /// Prints [`UNICODE`].
    pub(super) unicode: &'static str,
    /// Fails.
    pub(super) fail: &'static str,
    /// A part of the error message.
    pub(super) failure: &'static str,
    /// Creates the file `begun`.
    pub(super) begin: &'static str,
    /// Each runs for a minute.
    pub(super) busy: &'static [&'static str],
    /// Whether the kernel survives an interrupt.
    pub(super) interrupts: bool,
    /// Whether output may arrive after `idle`.
    pub(super) idle_before_output: bool,
    /// Runs forever and cannot be interrupted.
    pub(super) ignores_interrupts: &'static str,
    /// Kills the kernel's process with signal 9.
    pub(super) kill: &'static str,
    /// Prints this many lines of 999 characters: ten megabytes, or less for a slow kernel. Several lines per
    /// message: kernels drop messages while a thousand are waiting.
    pub(super) much: (&'static str, usize),
    /// Prints the working directory and the variable PROBE.
    pub(super) context: &'static str,
    /// Code that completes to `zebra`, the name of a variable that `set` defines.
    pub(super) complete: &'static str,
    /// Incomplete code, if the kernel can recognize it.
    pub(super) half: Option<&'static str>,
    /// A name to inspect, and a word of its documentation.
    pub(super) inspect: Option<(&'static str, &'static str)>,
    /// Requests input with the prompt `Who? ` and prints it, if the language supports that.
    pub(super) input: Option<&'static str>,
    /// The output of that code without an answer; `None` if it is interrupted.
    pub(super) unanswered: Option<&'static str>,
}

/// Characters of two, three and four bytes, a combining character, and right-to-left text.
pub(super) const UNICODE: &str = "ä€😀 e\u{301} שלום";

pub(super) fn bash() -> [Language; 1] {
    let python = python().display().to_string();
    let argv = [&python, "-m", "bash_kernel", "-f", "{connection_file}"];
    [Language {
        kernelspec: kernelspec("bash", &argv),
        name: "bash",
        set: "x=5; zebra=1",
        get: "echo $x",
        lines: "for i in {0..199}; do echo line $i; done",
        unicode: "echo 'ä€😀 e\u{301} שלום'",
        fail: "ls /no/such/directory",
        failure: "/no/such/directory",
        begin: "touch begun",
        busy: &[
            "sleep 60",
            "while :; do :; done",
            "for i in {1..600}; do sleep 0.1; echo $i; done",
        ],
        interrupts: true,
        idle_before_output: false,
        ignores_interrupts: "trap '' INT; while :; do :; done",
        kill: "kill -9 $PPID",
        much: (
            "head -c 1998000 /dev/zero | tr '\\0' x | fold -w 999; echo",
            2_000,
        ),
        context: "echo \"$PWD $PROBE\"",
        complete: "echo $zeb",
        half: None,
        inspect: None,
        input: None,
        unanswered: None,
    }]
}

pub(super) fn deno() -> [Language; 1] {
    let deno = python().with_file_name("deno").display().to_string();
    let argv = [&deno, "jupyter", "--kernel", "--conn", "{connection_file}"];
    let mut kernelspec = kernelspec("deno", &argv);
    kernelspec.env = vec![("DENO_NO_UPDATE_CHECK".to_owned(), "1".to_owned())];
    [Language {
        kernelspec,
        name: "typescript",
        set: "let x = 5; const zebra = 1;",
        get: "console.log(x)",
        lines: "for (let i = 0; i < 200; i++) console.log('line', i)",
        unicode: "console.log('ä€😀 e\u{301} שלום')",
        fail: "throw new RangeError('no good')",
        failure: "no good",
        begin: "Deno.writeTextFileSync('begun', '');",
        busy: &[
            "await new Promise(go => setTimeout(go, 60000))",
            "while (true) {}",
        ],
        interrupts: false,
        idle_before_output: true,
        ignores_interrupts: "while (true) { try { while (true) {} } catch {} }",
        kill: "Deno.kill(Deno.pid, 'SIGKILL')",
        much: (
            "for (let i = 0; i < 1000; i++) console.log(Array(10).fill('x'.repeat(999)).join('\\n'))",
            10_000,
        ),
        context: "console.log(Deno.cwd() + ' ' + Deno.env.get('PROBE'))",
        complete: "zeb",
        half: Some("function f() {"),
        inspect: None,
        input: Some("console.log(prompt('Who? '))"),
        unanswered: Some("null\n"),
    }]
}

/// Empty if there is no R with a kernel.
pub(super) fn r() -> Vec<Language> {
    let Some(r) = std::env::var_os("CELLWRIGHT_TEST_R") else {
        cellwright_test_support::skip("r", "CELLWRIGHT_TEST_R is not set");
        return Vec::new();
    };
    let r = r.into_string().unwrap();
    let main = "IRkernel::main()";
    let argv = [&r, "--slave", "-e", main, "--args", "{connection_file}"];
    vec![Language {
        kernelspec: kernelspec("ir", &argv),
        name: "R",
        set: "x <- 5; zebra <- 1",
        get: "cat(x, '\\n', sep = '')",
        lines: "for (i in 0:199) cat('line', i, '\\n', sep = c(' ', '', ''))",
        unicode: "cat('ä€😀 e\u{301} שלום\\n')",
        fail: "stop('no good')",
        failure: "no good",
        begin: "invisible(file.create('begun'))",
        busy: &[
            "Sys.sleep(60)",
            "while (TRUE) {}",
            "repeat tryCatch(stop('x'), error = identity)",
        ],
        interrupts: true,
        idle_before_output: false,
        ignores_interrupts: "suspendInterrupts(while (TRUE) {})",
        kill: "tools::pskill(Sys.getpid(), 9)",
        much: (
            "lines <- strrep(paste0(strrep('x', 999), '\\n'), 10)\nfor (i in 1:1000) cat(lines)",
            10_000,
        ),
        context: "cat(getwd(), Sys.getenv('PROBE'), fill = 1000)",
        complete: "zeb",
        half: Some("f <- function() {"),
        inspect: Some(("read.csv", "data frame")),
        input: Some("cat(readline('Who? '), '\\n', sep = '')"),
        unanswered: None,
    }]
}
