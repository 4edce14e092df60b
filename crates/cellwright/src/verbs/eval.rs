//! `eval`: code on a kernel of its own, or on one that stays.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cellwright_run::Places;
use clap::Args;

use crate::engine::Engine;
use crate::evaluation::{CellWish, Wish, alone, kept};
use crate::failure::{Failure, Kind};
use crate::host::wanted::{ArtifactsPlace, Attach, EvalWanted, Talk};
use crate::inside::{Furnishing, SharedBridge};
use crate::kernels::{Backend, Chosen, Flags, KernelChoice};
use crate::live::Extent;
use crate::notice::{self, Told};
use crate::screen::Screen;
use crate::settings::Settings;
use crate::startup::Startup;
use crate::verbs::input;

/// What a kernel that ends with the call is told about its session.
const PER_CALL: &str = "per-call";

/// Arguments of `eval`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
The code runs on a fresh Python (`cellwright doctor` says which) that ends with the command, together
with everything it started. With --session NAME it runs on one that stays: variables are there for
the next command, also from another terminal (see `cellwright kernels`). The value of the last
expression is shown; magics such as %time, %pip and !command work without IPython.

--kernel NAME runs it on a kernel of Jupyter's instead, in any language (`cellwright kernels specs`
lists them); --backend jupyter on ipykernel in the same Python; --existing FILE on a kernel that
somebody else has started, which is left running.

On a terminal everything is shown as it comes. Anywhere else the first 20 KiB and the last 30 KiB of
each stream are; all of it is kept as artifact://N (`cellwright read artifact://N`).

Exit codes: 0 done; 1 the code raised; 2 the kernel died or could not be started; 124 timed out;
130 cancelled.

Examples:
  cellwright eval '1 + 1'
  cellwright eval --cell 'import math' --cell 'math.pi'
  cellwright eval -f script.py --cwd project --timeout 600
  cellwright eval --session work 'x = 1'; cellwright eval --session work 'x + 1'
  cellwright eval --session work --background --timeout 0 'train()'
  cellwright eval --kernel bash 'echo $SHELL'
  cellwright eval --existing kernel-4711.json 'df.shape'
  echo 'print(input(\"Name? \"))' | cellwright eval - --answer World
  cellwright eval 'open(\"big.csv\").read()' --json")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command")]
pub(crate) struct EvalArgs {
    /// The code, or `-` to read it from stdin
    #[arg(value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) code: Option<String>,
    /// Read the code from a file
    #[arg(long, short, value_name = "FILE", conflicts_with = "code")]
    pub(crate) file: Option<String>,
    /// A cell to run after the others, on the same kernel; the first that fails ends the run
    #[arg(long = "cell", value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) cells: Vec<String>,
    /// Seconds that each cell may take, the start of the kernel included; 0 for no limit [default: the
    /// setting eval.timeout, which is 30 unless changed]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Where the code runs
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// The interpreter: a path, an environment's folder, or a command
    #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
    pub(crate) python: Option<PathBuf>,
    /// The kernel, by the name of its kernelspec (see `cellwright kernels specs`)
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// What runs the code [default: jupyter with --kernel, else the setting kernel.backend, which is runner
    /// unless changed]
    #[arg(long, value_name = "BACKEND")]
    pub(crate) backend: Option<Backend>,
    /// Run it on a kernel that runs already: its connection file, or the name of that in Jupyter's runtime
    /// folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "python", "reset"])]
    pub(crate) existing: Option<PathBuf>,
    /// What the next `input()` gets; can be repeated. Without an answer it raises at once
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) answers: Vec<String>,
    /// Run it on a kernel that stays, and that other commands in this folder can use by this name
    #[arg(long, short, value_name = "NAME", conflicts_with = "per_call")]
    pub(crate) session: Option<String>,
    /// Use a kernel that ends with the call, also if the settings name a session
    #[arg(long)]
    pub(crate) per_call: bool,
    /// Begin with a fresh kernel; others who share the session keep theirs
    #[arg(long)]
    pub(crate) reset: bool,
    /// On whose behalf: owners share a session until one of them resets it [default: the setting
    /// eval.owner]
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Do not wait: print the name of the run (see `cellwright runs`)
    #[arg(long, conflicts_with_all = ["wait", "full"])]
    pub(crate) background: bool,
    /// Wait so long at the most; the run goes on after that (see `cellwright runs`)
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) wait: Option<Duration>,
    /// Show everything, also where output would be cut
    #[arg(long)]
    pub(crate) full: bool,
}

impl EvalArgs {
    /// What is said about the kernel.
    fn kernel(&self) -> Flags<'_> {
        Flags {
            python: self.python.as_deref(),
            backend: self.backend,
            kernel: self.kernel.as_deref(),
            existing: self.existing.as_deref(),
        }
    }
}

/// Code that is about to run.
pub(crate) struct Prepared {
    pub(crate) wish: Wish,
    pub(crate) chosen: Chosen,
    /// The session that it runs on, if it is one that stays.
    pub(crate) session: Option<String>,
    pub(crate) cwd: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) notices: Vec<Told>,
}

/// Finds out what a call comes to; nothing has run yet.
pub(crate) fn prepare(
    args: &EvalArgs,
    engine: &Engine,
    startup: &mut Startup,
) -> Result<Prepared, Failure> {
    let cwd = crate::kernels::working_directory(args.cwd.as_deref())?;
    let settings = engine.settings(&cwd)?;
    startup.step("settings");
    if !settings.eval.enabled {
        return Err(Failure::disabled(settings.origin("eval.enabled")));
    }
    let mut notices = Vec::from_iter(notice::tell_ignored(settings.entries()));
    let timeout = timeout(args.timeout, settings.eval.timeout, &settings, &mut notices);
    let mut wish = Wish {
        answers: args.answers.clone(),
        shown: (&settings.limits()).into(),
        ..Wish::default()
    };
    for code in cells(args)? {
        wish.cells.push(CellWish {
            code,
            timeout,
            ..CellWish::default()
        });
    }
    if let (Some(first), Some(file)) = (wish.cells.first_mut(), script(args)?) {
        first.file = Some(file);
    }
    let chosen = Chosen::new(engine, &settings, args.kernel(), &cwd)?;
    startup.step("interpreter");
    Ok(Prepared {
        wish,
        chosen,
        session: session(args, &settings)?,
        cwd,
        settings,
        notices,
    })
}

impl Prepared {
    /// What a host is asked for; also gives what is still needed here.
    pub(crate) fn wanted(
        self,
        args: &EvalArgs,
        engine: &Engine,
        attach: Attach,
    ) -> Result<(EvalWanted, Settings, Vec<Told>), Failure> {
        let settings = self.settings;
        let owner = args.owner.as_ref().unwrap_or(&settings.eval.owner);
        let artifacts = engine.artifacts.as_ref();
        let wanted = EvalWanted {
            wish: self.wish,
            session: self.session,
            anywhere: false,
            talk: Talk::Little,
            owner: owner.clone(),
            cwd: canonical(self.cwd),
            kernel: KernelChoice::new(self.chosen, (&settings).into()).map_err(io::Error::from)?,
            reset: args.reset,
            artifacts: artifacts
                .map(|artifacts| ArtifactsPlace::new(artifacts, &settings.retention())),
            attach,
        };
        Ok((wanted, settings, self.notices))
    }
}

/// Runs code and shows what comes of it; says the exit code.
pub(crate) fn eval(args: &EvalArgs, engine: &Engine, screen: &Screen) -> Result<u8, Failure> {
    if args.full && screen.json {
        let message = "--full and --json do not go together";
        let failure = Failure::new(Kind::BadArguments, message);
        return Err(failure.hint("with --json, what is cut from a text is in its artifact"));
    }
    let mut startup = Startup::new();
    let prepared = prepare(args, engine, &mut startup)?;
    let extent = match screen {
        _ if screen.json => Extent::Nothing,
        _ if args.full || screen.on_terminal() => Extent::Full,
        _ => Extent::Bounded,
    };
    // A person should know before the code runs.
    screen.notices(&prepared.notices);
    if prepared.session.is_some() || args.background || args.wait.is_some() {
        let attach = match args.wait {
            _ if args.background => Attach::Not,
            wait if screen.json => Attach::Document { wait },
            wait => Attach::Watching {
                wait,
                document: false,
            },
        };
        let (wanted, settings, notices) = prepared.wanted(args, engine, attach)?;
        return kept::eval(wanted, &settings, screen, extent.into(), notices, startup);
    }
    let settings = prepared.settings;
    let furnishing = Furnishing {
        engine: Arc::new(engine.clone()),
        bridge: SharedBridge::default(),
        session: PER_CALL.to_owned(),
        modules: (&settings).into(),
    };
    let launch = prepared.chosen.launch(furnishing);
    let places = Places {
        artifacts: engine.artifacts_kept(&settings),
        baselines: None,
    };
    let wish = prepared.wish;
    let (mut answer, unseen) = alone::run(&wish, launch, places, screen, extent.into())?;
    let verdict = answer.verdict();
    startup.tell(verdict.ready, &settings, screen);
    if screen.json {
        answer.notices.splice(0..0, prepared.notices);
        return match screen.document(&answer) {
            Err(failure) if !failure.is_silent() => Err(failure),
            _ => Ok(verdict.exit_code()),
        };
    }
    verdict.show(screen, extent, unseen.as_ref())
}

/// The session that the code runs on, if it is one that stays.
fn session(args: &EvalArgs, settings: &Settings) -> Result<Option<String>, Failure> {
    let named = args.session.clone();
    let session = if args.per_call {
        None
    } else {
        named.or_else(|| settings.eval.session.clone())
    };
    if let Some(owner) = &args.owner {
        check_name("owner", owner)?;
    }
    match &session {
        Some(name) => check_name("session", name).map(|()| session),
        None => Ok(None),
    }
}

/// Names are typed again and stand in tables.
fn check_name(what: &str, name: &str) -> Result<(), Failure> {
    const LONGEST: usize = 100;
    let wrong = if name.is_empty() {
        "is empty"
    } else if name.chars().count() > LONGEST {
        "is longer than 100 characters"
    } else if name.chars().any(|c| c.is_control() || c.is_whitespace()) {
        "has blanks or control characters in it"
    } else if name.starts_with(['@', '-']) {
        "begins with a sign that means something else"
    } else {
        return Ok(());
    };
    let failure = Failure::new(
        Kind::BadArguments,
        format!("The name of the {what} {wrong}"),
    );
    Err(failure.hint("use letters, digits and dashes"))
}

/// The same folder by whatever way one came to it.
pub(crate) fn canonical(cwd: PathBuf) -> PathBuf {
    // One that is not there is told by whoever starts the kernel.
    cwd.canonicalize().unwrap_or(cwd)
}

/// How long a cell may take: as the call says, else as usual, but never longer than the settings allow.
pub(crate) fn timeout(
    given: Option<Duration>,
    usual: Duration,
    settings: &Settings,
    notices: &mut Vec<Told>,
) -> Option<Duration> {
    let asked = given.unwrap_or(usual);
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

/// An interpreter named on the command line. What is there is meant from here, not from the folder that the
/// kernel will work in; anything else is a command, or not to be found.
pub(crate) fn interpreter(text: &str) -> std::io::Result<PathBuf> {
    let path = PathBuf::from(text);
    let is_place = path.components().count() > 1 && !path.starts_with("~");
    if is_place || path.exists() {
        return std::path::absolute(path);
    }
    Ok(path)
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "expected a number of seconds, 0 or more".to_owned();
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    let time = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
    // Something is not nothing, which means no limit.
    if time.is_zero() && seconds > 0.0 {
        return Ok(Duration::from_nanos(1));
    }
    Ok(time)
}
