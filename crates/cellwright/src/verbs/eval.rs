//! `eval`: code on a kernel of its own.

mod report;
mod run;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::live::Extent;
use crate::notice::{self, Told};
use crate::screen::Screen;
use crate::settings::Settings;
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
    /// Seconds that each cell may take, the start of the kernel included; 0 for no limit [default: the
    /// setting eval.timeout, which is 30 unless changed]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
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
    let cwd = crate::kernels::working_directory(args.cwd.as_deref())?;
    let settings = engine.settings(&cwd)?;
    if !settings.eval.enabled {
        return Err(Failure::disabled(settings.origin("eval.enabled")));
    }
    let mut notices = Vec::from_iter(notice::tell_ignored(settings.entries()));
    let timeout = timeout(args.timeout, &settings, &mut notices);
    let cells = cells(args)?;
    let extent = match screen {
        _ if screen.json => Extent::Nothing,
        _ if args.full || screen.on_terminal() => Extent::Full,
        _ => Extent::Bounded,
    };
    let job = run::Job {
        cells,
        timeout,
        answers: args.answers.clone(),
        file: script(args)?,
        extent,
        limits: settings.limits(),
        artifacts: engine.artifacts_kept(&settings),
    };
    let spec = crate::kernels::runner(engine, &settings, args.python.as_deref(), cwd)?;
    // A person should know before the code runs.
    screen.notices(&notices);
    let mut answer = run::run(job, &spec, screen)?;
    if screen.json {
        answer.also(notices);
    }
    answer.show(screen, extent)
}

/// How long a cell may take: as the call says, else the settings, but never longer than they allow.
fn timeout(
    given: Option<Duration>,
    settings: &Settings,
    notices: &mut Vec<Told>,
) -> Option<Duration> {
    let asked = given.unwrap_or(settings.eval.timeout);
    let most = settings.eval.max_timeout;
    if most.is_zero() || (!asked.is_zero() && asked <= most) {
        return (!asked.is_zero()).then_some(asked);
    }
    if given.is_some() {
        let origin = settings.origin("eval.max_timeout");
        notices.push(notice::tell_capped(most, origin));
    }
    Some(most)
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
