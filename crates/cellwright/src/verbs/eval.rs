//! `eval`: code on a kernel of its own.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use crate::engine::Engine;
use crate::evaluation::{CellWish, Wish, alone};
use crate::failure::{Failure, Kind};
use crate::launch::RunnerLaunch;
use crate::live::Extent;
use crate::screen::Screen;
use crate::verbs::input;

/// Arguments of `eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
The code runs on a fresh Python (`cellwright doctor` says which) that ends with the command, together
with everything it started. The value of the last expression is shown; magics such as %time, %pip and
!command work without IPython.

On a terminal everything is shown as it comes. Anywhere else the first 20 KiB and the last 30 KiB of
each stream are; all of it is kept as artifact://N (`cellwright read artifact://N`).

Exit codes: 0 done; 1 the code raised; 2 the kernel died or could not be started; 124 timed out;
130 cancelled.

Examples:
  cellwright eval '1 + 1'
  cellwright eval --cell 'import math' --cell 'math.pi'
  cellwright eval -f script.py --cwd project --timeout 600
  echo 'print(input(\"Name? \"))' | cellwright eval - --answer World
  cellwright eval 'open(\"big.csv\").read()' --json")]
pub(crate) struct EvalArgs {
    /// The code, or `-` to read it from stdin
    #[arg(value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    /// Read the code from a file
    #[arg(long, short, value_name = "FILE", conflicts_with = "code")]
    file: Option<String>,
    /// A cell to run after the others, on the same kernel; the first that fails ends the run
    #[arg(long = "cell", value_name = "CODE", allow_hyphen_values = true)]
    cells: Vec<String>,
    /// Seconds that each cell may take, the start of the kernel included; 0 for no limit
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,
    /// Where the code runs
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The interpreter: a path, an environment's folder, or a command
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// What the next `input()` gets; can be repeated. Without an answer it raises at once
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    answers: Vec<String>,
    /// Use a kernel that ends with the call (the default as long as no session is named)
    #[arg(long)]
    per_call: bool,
    /// Begin with a fresh kernel (it always is one as long as no session is named)
    #[arg(long)]
    reset: bool,
    /// Show everything, also where output would be cut
    #[arg(long)]
    full: bool,
}

/// Runs code and shows what comes of it; says the exit code.
pub(crate) fn eval(args: &EvalArgs, engine: &Engine, screen: &Screen) -> Result<u8, Failure> {
    if args.full && screen.json {
        let message = "--full and --json do not go together";
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint("with --json, what is cut from a text is in its artifact"));
    }
    let cells = cells(args)?;
    let extent = match screen {
        _ if screen.json => Extent::Nothing,
        _ if args.full || screen.on_terminal() => Extent::Full,
        _ => Extent::Bounded,
    };
    let timeout = (!args.timeout.is_zero()).then_some(args.timeout);
    let mut wish = Wish {
        answers: args.answers.clone(),
        cells: Vec::new(),
    };
    for code in cells {
        wish.cells.push(CellWish {
            code,
            timeout,
            ..CellWish::default()
        });
    }
    if let (Some(first), Some(file)) = (wish.cells.first_mut(), script(args)?) {
        first.file = Some(file);
    }
    let cwd = crate::kernels::working_directory(args.cwd.as_deref())?;
    let spec = crate::kernels::runner(engine, args.python.as_deref(), cwd)?;
    let launch = Arc::new(RunnerLaunch::new(spec));
    let (answer, unseen) = alone::run(&wish, launch, engine, screen, extent)?;
    let verdict = answer.verdict();
    if screen.json {
        return match screen.document(&answer) {
            Err(failure) if !failure.is_silent() => Err(failure),
            _ => Ok(verdict.status.exit_code()),
        };
    }
    verdict.show(screen, extent, unseen.as_ref())
}

/// The file that is run as a script, absolute: the kernel may be elsewhere.
fn script(args: &EvalArgs) -> Result<Option<PathBuf>, Failure> {
    let Some(file) = args.file.as_deref().filter(|file| *file != "-") else {
        return Ok(None);
    };
    Ok(Some(std::path::absolute(file)?))
}

fn cells(args: &EvalArgs) -> Result<Vec<String>, Failure> {
    let mut cells = Vec::new();
    match (&args.code, &args.file) {
        (Some(code), _) if code == "-" => cells.push(input::text_from("-")?),
        (Some(code), _) => cells.push(code.clone()),
        (None, Some(file)) => cells.push(input::text_from(file)?),
        (None, None) if args.cells.is_empty() => {
            if io::stdin().is_terminal() {
                let failure = Failure::new(Kind::BadArguments, "There is no code to run");
                return Err(failure.hint("give it as an argument, with --file, or with - on stdin"));
            }
            cells.push(input::text_from("-")?);
        }
        (None, None) => {}
    }
    cells.extend(args.cells.iter().cloned());
    Ok(cells)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
