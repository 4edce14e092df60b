//! Notebooks with very many cells: memory is in proportion to the file, and bookkeeping is not the time of a cell.

use std::process::{Command, Stdio};

use crate::context::Context;

fn notebook(count: usize) -> String {
    let cells: Vec<String> = (0..count)
        .map(|n| {
            format!(
                r#"{{"cell_type":"code","execution_count":null,"id":"c{n}","metadata":{{}},"outputs":[],"source":["x = {n}"]}}"#
            )
        })
        .collect();
    format!(
        r#"{{"cells":[{}],"metadata":{{}},"nbformat":4,"nbformat_minor":5}}"#,
        cells.join(",\n")
    )
}

/// Exit code and peak memory in kilobytes of the largest process of a command.
fn measure(context: &Context, arguments: &[&str]) -> (i32, u64) {
    const MEASURE: &str = "import resource, subprocess, sys\nran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\nprint(ran.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let mut command = context.command(arguments);
    command.args(["--backend", "runner"]);
    if let Some(python) = std::env::var_os("CELLWRIGHT_TEST_PYTHON") {
        command.arg("--python").arg(python);
    }
    let output = Command::new("python3")
        .args(["-c", MEASURE])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(context.dir())
        .env("HOME", context.home())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let (code, kilobytes) = report.trim().split_once(' ').unwrap();
    (code.parse().unwrap(), kilobytes.parse().unwrap())
}

/// Kilobytes that a process may use without any cell.
const BASE_LIMIT: u64 = 24 * 1024;

#[test]
fn memory_for_many_cells_is_in_proportion_to_them() {
    const COUNT: usize = 20_000;
    let context = Context::new();
    context.file("a.ipynb", notebook(COUNT));
    // Kilobytes for each cell.
    for (arguments, exit_code, limit) in [
        (
            &["run", "a.ipynb", "--cells", "5", "-o", "b.ipynb"][..],
            0,
            0.2,
        ),
        (&["run", "a.ipynb", "--json"], 0, 0.42),
        (&["run", "a.ipynb"], 0, 0.42),
        (&["check", "a.ipynb"], 0, 0.42),
    ] {
        let (code, kilobytes) = measure(&context, arguments);
        assert_eq!(code, exit_code, "{arguments:?}");
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small number"
        )]
        let limit = BASE_LIMIT + (COUNT as f64 * limit) as u64;
        assert!(
            kilobytes < limit,
            "{arguments:?}: {kilobytes} of {limit} kB"
        );
    }
}
