//! `run`: a notebook's cells on its kernel, with what they put out written back.

mod args;
mod plan;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_run::{Order, Places, Planned};

pub(crate) use args::RunArgs;

use self::plan::Plan;
use crate::engine::Engine;
use crate::evaluation::viewer::{Form, View};
use crate::evaluation::{CellWish, EvalAnswer, Wish, alone, events, kept, settled};
use crate::failure::{Failure, Kind};
use crate::host::wanted::{ArtifactsPlace, Attach, EvalWanted, Talk};
use crate::inside::{Furnishing, SharedBridge};
use crate::kernels::{Chosen, KernelChoice, for_notebook};
use crate::live::{Extent, Trouble};
use crate::notice::{self, Told};
use crate::screen::Screen;
use crate::settings::Settings;
use crate::startup::Startup;
use crate::verbs::eval::{canonical, timeout};

/// What a kernel that ends with the call is told about its session.
const PER_CALL: &str = "per-call";

/// Runs a notebook and shows what comes of it; says the exit code.
pub(crate) fn run(args: &RunArgs, engine: &Engine, screen: &Screen) -> Result<u8, Failure> {
    if args.events && screen.json {
        let message = "--events and --json do not go together";
        return Err(Failure::new(Kind::BadArguments, message));
    }
    let ran = perform(args, engine, screen);
    if let Some(failure) = ran.as_ref().err().filter(|_| args.events) {
        events::refused(screen, failure);
    }
    ran
}

/// A notebook that is about to run, or of which nothing is to run.
pub(crate) struct Prepared {
    plan: Plan,
    pub(crate) wish: Wish,
    /// The kernel; none if no cell is to run.
    pub(crate) chosen: Option<Chosen>,
    pub(crate) cwd: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) notices: Vec<Told>,
}

/// Finds out what a call comes to; nothing has run and nothing is written yet.
pub(crate) fn prepare(
    args: &RunArgs,
    engine: &Engine,
    startup: &mut Startup,
) -> Result<Prepared, Failure> {
    let path = notebook_path(&args.path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let cwd = match &args.cwd {
        Some(given) => crate::kernels::working_directory(Some(given))?,
        None => folder.to_owned(),
    };
    let mut settings = engine.settings(&cwd)?;
    if args.session.is_none() || args.like_jupyter {
        settings.run_like_jupyter();
    }
    startup.step("settings");
    if !settings.eval.enabled {
        return Err(Failure::disabled(settings.origin("eval.enabled")));
    }
    let mut notices = Vec::from_iter(notice::tell_ignored(settings.entries()));
    let plan = Plan::make(args, &path, &cwd, engine)?;
    notices.extend(plan.notices.iter().cloned());
    let usual = settings.run.timeout;
    let limit = timeout(args.timeout, usual, &settings, &mut notices);
    let wish = wish(args, &plan, &path, &settings, limit)?;
    // What needs no kernel gets none.
    let chosen = if plan.cells.is_empty() {
        None
    } else {
        let (chosen, told) = for_notebook(engine, &settings, args.kernel(), &plan.listing, &cwd)?;
        notices.extend(told);
        Some(chosen)
    };
    startup.step("notebook");
    Ok(Prepared {
        plan,
        wish,
        chosen,
        cwd,
        settings,
        notices,
    })
}

/// What a host is asked for.
pub(crate) fn wanted(
    args: &RunArgs,
    wish: Wish,
    chosen: Chosen,
    cwd: PathBuf,
    engine: &Engine,
    settings: &Settings,
    attach: Attach,
) -> Result<EvalWanted, Failure> {
    let owner = args.owner.as_ref().unwrap_or(&settings.eval.owner);
    let artifacts = engine.artifacts.as_ref();
    Ok(EvalWanted {
        wish,
        session: args.session.clone(),
        anywhere: false,
        talk: Talk::Little,
        owner: owner.clone(),
        cwd: canonical(cwd),
        kernel: KernelChoice::new(chosen, settings.into()).map_err(io::Error::from)?,
        reset: args.restart,
        artifacts: artifacts.map(|artifacts| ArtifactsPlace::new(artifacts, &settings.retention())),
        attach,
    })
}

fn perform(args: &RunArgs, engine: &Engine, screen: &Screen) -> Result<u8, Failure> {
    let mut startup = Startup::new();
    let prepared = prepare(args, engine, &mut startup)?;
    let (notices, settings) = (prepared.notices, prepared.settings);
    // A person should know before the code runs.
    screen.notices(&notices);
    let Some(chosen) = prepared.chosen else {
        let answer = settled(&prepared.wish, places(engine, &settings))?;
        return tell(answer, notices, args, screen, None);
    };
    let job = Job {
        view: view(args, &prepared.plan, screen),
        wish: prepared.wish,
        notices,
        startup,
    };
    if args.session.is_some() || args.background || args.wait.is_some() {
        job.kept(args, engine, &settings, screen, chosen, prepared.cwd)
    } else {
        job.alone(args, engine, &settings, screen, chosen)
    }
}

/// A notebook that is about to run.
struct Job {
    wish: Wish,
    view: View,
    notices: Vec<Told>,
    startup: Startup,
}

impl Job {
    /// Runs it on a kernel of its own.
    fn alone(
        self,
        args: &RunArgs,
        engine: &Engine,
        settings: &Settings,
        screen: &Screen,
        chosen: Chosen,
    ) -> Result<u8, Failure> {
        let launch = chosen.launch(Furnishing {
            engine: Arc::new(engine.clone()),
            bridge: SharedBridge::default(),
            session: PER_CALL.to_owned(),
            modules: settings.into(),
        });
        let places = places(engine, settings);
        let extent = self.view.extent;
        let (answer, unseen) = alone::run(&self.wish, launch, places, screen, self.view)?;
        self.startup.tell(answer.ready, settings, screen);
        tell(answer, self.notices, args, screen, Some((extent, unseen)))
    }

    /// Has the host run it.
    fn kept(
        self,
        args: &RunArgs,
        engine: &Engine,
        settings: &Settings,
        screen: &Screen,
        chosen: Chosen,
        cwd: PathBuf,
    ) -> Result<u8, Failure> {
        let attach = match args.wait {
            _ if args.background => Attach::Not,
            wait if screen.json => Attach::Document { wait },
            wait => Attach::Watching {
                wait,
                document: args.events,
            },
        };
        let wanted = wanted(args, self.wish, chosen, cwd, engine, settings, attach)?;
        kept::eval(
            wanted,
            settings,
            screen,
            self.view,
            self.notices,
            self.startup,
        )
    }
}

/// Tells what came of it; says the exit code. `seen` is how much of it was shown, and why not all, if so.
fn tell(
    mut answer: EvalAnswer,
    notices: Vec<Told>,
    args: &RunArgs,
    screen: &Screen,
    seen: Option<(Extent, Option<Trouble>)>,
) -> Result<u8, Failure> {
    let verdict = answer.verdict();
    if screen.json || args.events {
        answer.notices.splice(0..0, notices);
        let printed = if args.events {
            let answer = serde_json::to_value(&answer).map_err(io::Error::from)?;
            events::done(screen, answer)
        } else {
            screen.document(&answer)
        };
        return match printed {
            Err(failure) if !failure.is_silent() => Err(failure),
            _ => Ok(verdict.exit_code()),
        };
    }
    let (extent, unseen) = seen.unwrap_or((Extent::Full, None));
    verdict.show(screen, extent, unseen.as_ref())
}

pub(crate) fn places(engine: &Engine, settings: &Settings) -> Places {
    Places {
        artifacts: engine.artifacts_kept(settings),
        baselines: engine.baselines.clone(),
    }
}

/// The notebook, absolute: a host is somewhere else.
fn notebook_path(given: &Path) -> Result<PathBuf, Failure> {
    Ok(std::path::absolute(given)?)
}

fn view(args: &RunArgs, plan: &Plan, screen: &Screen) -> View {
    if args.events {
        return View {
            extent: Extent::Full,
            form: Form::Events,
        };
    }
    let took = |planned: &Planned| plan.listing.cells()[planned.index].took;
    View {
        extent: match screen {
            _ if screen.json => Extent::Nothing,
            _ if args.full || screen.on_terminal() => Extent::Full,
            _ => Extent::Bounded,
        },
        form: Form::Notebook {
            took: plan.cells.iter().map(took).collect(),
        },
    }
}

fn wish(
    args: &RunArgs,
    plan: &Plan,
    path: &Path,
    settings: &Settings,
    timeout: Option<Duration>,
) -> Result<Wish, Failure> {
    let cells = plan.cells.iter().map(|planned| CellWish {
        code: planned.source.clone(),
        timeout,
        failing: plan.failing(planned.index, args.keep_going),
        ..CellWish::default()
    });
    let most = settings.run.max_outputs;
    Ok(Wish {
        cells: cells.collect(),
        answers: args.answers.clone(),
        shown: (&settings.limits()).into(),
        total: args.total_timeout.filter(|total| !total.is_zero()),
        order: Some(Order {
            path: path.to_owned(),
            output: args
                .output
                .as_deref()
                .map(std::path::absolute)
                .transpose()?,
            revision: plan.revision.clone(),
            edits: plan.edits.clone(),
            cells: plan.cells.clone(),
            timing: settings.run.timing,
            kernel_named: args.kernel().kernel.is_some(),
            largest: (most > 0).then_some(most),
        }),
    })
}
