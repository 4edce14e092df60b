//! `check`: whether a notebook, run anew from top to bottom, puts out what it says it does.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cellwright_notebook::file::{self, Survey};
use cellwright_notebook::{CellKind, Cells};
use cellwright_run::compare::{self, Difference, Disorder, Ran, Rule, Rules};
use cellwright_run::{Listing, MAY_RAISE, Order, Places, Planned, SKIPPED};
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::engine::Engine;
use crate::evaluation::viewer::{Form, View};
use crate::evaluation::{CellWish, EvalAnswer, Failing, Status, Wish, alone};
use crate::failure::{Failure, Kind};
use crate::inside::{Furnishing, SharedBridge};
use crate::kernels::{Backend, Flags, for_notebook};
use crate::live::Extent;
use crate::notice::Told;
use crate::screen::{Mark, Screen};
use crate::settings::Settings;
use crate::verbs::eval::{interpreter, seconds, timeout};

/// The tags of cells whose outputs are not compared.
const IGNORED: [&str; 2] = ["ignore-output", "nbval-ignore-output"];

/// How many differences of a cell are told.
const MOST_TOLD: usize = 5;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Runs a copy of the notebook from top to bottom on a fresh kernel and compares what comes out with what is
stored; the notebook itself is not written. It also tells which cells never ran, or ran out of order. What
changes from run to run although nothing else has (addresses in memory, times, dates, ids, temporary
paths, pixels, stderr, …) is looked over; `--exact` compares it, too.

A cell with the tag `ignore-output` (or `nbval-ignore-output`) runs and is not compared. One with
`skip-execution` does not run.

Rules for --exact: streams, redraws, colours, whitespace, addresses, times, dates, ids, paths, cells,
progress, counts, images, html, stderr, tracebacks, all.

Exit codes: 0 the same; 1 something differs, never ran or ran out of order; 2 bad notebook, or the
kernel died or could not be started; 124 timed out; 130 cancelled.

Examples:
  cellwright check analysis.ipynb
  cellwright check analysis.ipynb --exact stderr --exact images
  cellwright check analysis.ipynb --json | jq '.cells[] | select(.status != \"same\")'")]
pub(crate) struct CheckArgs {
    /// The notebook
    path: PathBuf,
    /// Compare also what this rule looks over; can be repeated
    #[arg(long, value_name = "RULE")]
    exact: Vec<String>,
    /// Seconds that each cell may take; 0 for no limit [default: the setting run.timeout, which is 0 unless
    /// changed]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Seconds that all of it may take, the start of the kernel included
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    total_timeout: Option<Duration>,
    /// Where the cells run [default: the notebook's folder]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The interpreter: a path, an environment's folder, or a command
    #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
    python: Option<PathBuf>,
    /// The kernel, by the name of its kernelspec (see `cellwright kernels specs`)
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// What runs the code
    #[arg(long, value_name = "BACKEND")]
    backend: Option<Backend>,
}

/// The answer, as `--json` prints it.
#[derive(Debug, Serialize)]
struct CheckAnswer {
    path: String,
    revision: String,
    /// Whether nothing was found.
    same: bool,
    /// How the run ended.
    status: Status,
    cells: Vec<CellCheck>,
    order: Vec<Disorder>,
    notices: Vec<Told>,
}

#[derive(Debug, Serialize)]
struct CellCheck {
    index: usize,
    id: Option<String>,
    status: Finding,
    differences: Vec<Difference>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Finding {
    Same,
    Different,
    /// Its outputs do not matter.
    Ignored,
    /// It did not come to its end, or did not run.
    Unfinished,
}

/// Checks a notebook and tells what was found; says the exit code.
pub(crate) fn check(args: &CheckArgs, engine: &Engine, screen: &Screen) -> Result<u8, Failure> {
    let rules = rules(&args.exact)?;
    let path = std::path::absolute(&args.path)?;
    let cwd = match &args.cwd {
        Some(given) => crate::kernels::working_directory(Some(given))?,
        None => path.parent().unwrap_or(Path::new("/")).to_owned(),
    };
    let mut settings = engine.settings(&cwd)?;
    settings.run_like_jupyter();
    if !settings.eval.enabled {
        return Err(Failure::disabled(settings.origin("eval.enabled")));
    }
    let stored = file::survey(&path)?;
    let listing = Listing::of_survey(&stored);
    let flags = Flags {
        python: args.python.as_deref(),
        backend: args.backend,
        kernel: args.kernel.as_deref(),
        existing: None,
    };
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("checked.ipynb");
    let mut notices = Vec::new();
    let limit = timeout(args.timeout, settings.run.timeout, &settings, &mut notices);
    let wish = wish(args, &settings, &listing, &stored, (&path, &copy), limit);
    if wish.cells.is_empty() {
        let answer = CheckAnswer {
            path: path.display().to_string(),
            revision: stored.revision().to_string(),
            same: true,
            status: Status::Ok,
            cells: Vec::new(),
            order: order(&listing, &stored),
            notices: Vec::new(),
        };
        return answer.show(screen);
    }
    let (chosen, told) = for_notebook(engine, &settings, flags, &listing, &cwd)?;
    let launch = chosen.launch(Furnishing {
        engine: Arc::new(engine.clone()),
        bridge: SharedBridge::default(),
        session: "check".to_owned(),
        modules: (&settings).into(),
    });
    let view = View {
        // Whether it is as it was is what one wants to know, not what it says.
        extent: if screen.json {
            Extent::Nothing
        } else {
            Extent::Bounded
        },
        form: Form::Silent,
    };
    let places = Places::default();
    let (answer, _) = alone::run(&wish, launch, places, screen, view)?;
    let fresh = file::survey(&copy)?;
    let answer = CheckAnswer {
        path: path.display().to_string(),
        revision: stored.revision().to_string(),
        same: false,
        status: answer.status,
        cells: compared(&wish, &answer, &listing, &stored, &fresh, rules)?,
        order: order(&listing, &stored),
        notices: notices
            .into_iter()
            .chain(told)
            .chain(answer.notices)
            .collect(),
    };
    answer.show(screen)
}

impl CheckAnswer {
    fn show(mut self, screen: &Screen) -> Result<u8, Failure> {
        let ran = matches!(self.status, Status::Ok | Status::Error);
        let fine = |cell: &CellCheck| matches!(cell.status, Finding::Same | Finding::Ignored);
        self.same = ran && self.order.is_empty() && self.cells.iter().all(fine);
        let exit = match self.status {
            _ if self.same => 0,
            Status::Ok | Status::Error => 1,
            other => other.exit_code(),
        };
        if screen.json {
            screen.document(&self)?;
            return Ok(exit);
        }
        screen.notices(&self.notices);
        for disorder in &self.order {
            screen.finding(Mark::Warning, "order", &disorder.to_string(), None)?;
        }
        for cell in self.cells.iter().filter(|cell| !fine(cell)) {
            let name = match &cell.id {
                Some(id) => format!("cell {} id:{id}", cell.index),
                None => format!("cell {}", cell.index),
            };
            if cell.status == Finding::Unfinished {
                screen.finding(Mark::Bad, &name, "did not come to its end", None)?;
            }
            for difference in cell.differences.iter().take(MOST_TOLD) {
                screen.finding(Mark::Bad, &name, &difference.to_string(), None)?;
            }
            let more = cell.differences.len().saturating_sub(MOST_TOLD);
            if more > 0 {
                let text = format!("{more} more differences");
                screen.finding(Mark::Bad, &name, &text, None)?;
            }
        }
        let differ = self.cells.iter().filter(|cell| !fine(cell)).count();
        let count = self.cells.len();
        let plural = if count == 1 { "" } else { "s" };
        let line = if self.same {
            format!("{count} cell{plural} ran in order and put out the same\n")
        } else {
            format!(
                "of {count} cell{plural} {differ} differ; {} ran out of order or never\n",
                self.order.len()
            )
        };
        screen.data(&line)?;
        Ok(exit)
    }
}

fn rules(exact: &[String]) -> Result<Rules, Failure> {
    let mut rules = Rules::default();
    for name in exact {
        rules = match Rule::named(name) {
            Some(rule) => rules.without(rule),
            None if name == "all" => Rules::NONE,
            None => {
                let message = format!("There is no rule `{name}`");
                let names: Vec<&str> = Rule::ALL.into_iter().map(Rule::name).collect();
                let failure = Failure::new(Kind::BadArguments, message);
                return Err(failure.hint(format!("there are {} and all", names.join(", "))));
            }
        };
    }
    Ok(rules)
}

fn wish(
    args: &CheckArgs,
    settings: &Settings,
    listing: &Listing,
    stored: &Survey,
    (path, copy): (&Path, &Path),
    timeout: Option<Duration>,
) -> Wish {
    let runs = |index: &usize| {
        listing.kind(*index) == CellKind::Code
            && !listing.source(*index).trim().is_empty()
            && !listing.has_tag(*index, SKIPPED)
    };
    let cells: Vec<Planned> = (0..listing.count())
        .filter(runs)
        .map(|index| Planned::of(listing, index))
        .collect();
    let wished = cells.iter().map(|planned| CellWish {
        code: planned.source.clone(),
        timeout,
        // What it raised before it may raise again; what is new is a difference.
        failing: if listing.has_tag(planned.index, MAY_RAISE) {
            Failing::Expected
        } else {
            Failing::Counts
        },
        ..CellWish::default()
    });
    Wish {
        cells: wished.collect(),
        shown: (&settings.limits()).into(),
        total: args.total_timeout.filter(|total| !total.is_zero()),
        order: Some(Order {
            path: path.to_owned(),
            output: Some(copy.to_owned()),
            revision: stored.revision().to_string(),
            cells,
            ..Order::default()
        }),
        ..Wish::default()
    }
}

fn compared(
    wish: &Wish,
    answer: &EvalAnswer,
    listing: &Listing,
    stored: &Survey,
    fresh: &Survey,
    rules: Rules,
) -> Result<Vec<CellCheck>, Failure> {
    let planned = wish.order.iter().flat_map(|order| &order.cells);
    let mut checks = Vec::new();
    for (planned, report) in planned.zip(&answer.cells) {
        let index = planned.index;
        let ignored = IGNORED.iter().any(|tag| listing.has_tag(index, tag));
        let finished = matches!(report.status, Status::Ok | Status::Error);
        let differences = if finished && !ignored {
            compare::compare(&outputs(stored, index)?, &outputs(fresh, index)?, rules)
        } else {
            Vec::new()
        };
        checks.push(CellCheck {
            index,
            id: planned.id.clone(),
            status: match differences.is_empty() {
                _ if !finished => Finding::Unfinished,
                _ if ignored => Finding::Ignored,
                true => Finding::Same,
                false => Finding::Different,
            },
            differences,
        });
    }
    Ok(checks)
}

fn outputs(survey: &Survey, index: usize) -> Result<Vec<Value>, Failure> {
    let bytes = survey.outputs(index)?;
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    Ok(serde_json::from_slice(&bytes).map_err(std::io::Error::from)?)
}

fn order(listing: &Listing, stored: &Survey) -> Vec<Disorder> {
    let code = |index: &usize| listing.kind(*index) == CellKind::Code;
    let ran = |index: usize| Ran {
        cell: index,
        is_empty: listing.source(index).trim().is_empty() || listing.has_tag(index, SKIPPED),
        count: stored.count_of(index),
    };
    let cells: Vec<Ran> = (0..listing.count()).filter(code).map(ran).collect();
    compare::order(&cells)
}
