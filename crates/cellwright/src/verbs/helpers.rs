//! `helpers`: what code finds in a kernel, besides Python itself.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::{Kernel, KernelQuery, StopSignal};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::bridge::CallContext;
use crate::console::Console;
use crate::engine::Engine;
use crate::failure::{Failure, Kind};
use crate::kernel_setup::KernelContext;
use crate::kernels;
use crate::notice::UserNotice;
use crate::verbs::kernel_args::interpreter;

/// How long the kernel and the user's modules may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Arguments of `helpers`.
#[derive(Debug, Args)]
#[command(after_help = "\
Your own functions come from *.py files in the folder `modules` beside the settings
(~/.config/cellwright/modules), and from .cellwright/modules in a project that you have trusted
(`cellwright trust`).

Examples:
  cellwright helpers
  cellwright helpers read run
  cellwright helpers --json")]
pub(crate) struct HelpersArgs {
    /// Only these, with all that is said about them
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Where the code would run
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The interpreter: a path, an environment's folder, or a command
    #[arg(long, value_name = "PYTHON", value_parser = interpreter)]
    python: Option<PathBuf>,
}

/// What `helpers` answers.
#[derive(Debug, Serialize)]
pub(crate) struct HelpersAnswer {
    helpers: Vec<Function>,
    notices: Vec<UserNotice>,
    #[serde(skip)]
    whole: bool,
}

/// A function that code finds.
#[derive(Debug, Deserialize, Serialize)]
struct Function {
    name: String,
    signature: String,
    doc: String,
    /// The user's file that it is from.
    module: Option<String>,
}

impl HelpersAnswer {
    pub(crate) fn show(&self, screen: &Console) -> Result<(), Failure> {
        if screen.json {
            return screen.print_json(self);
        }
        let mut text = String::new();
        let mut module = None;
        for function in &self.helpers {
            if function.module.as_deref() != module {
                module = function.module.as_deref();
                text.push_str(&format!("\nfrom {}:\n", module.unwrap_or_default()));
            }
            text.push_str(&format!("{}{}\n", function.name, function.signature));
            let lines = function.doc.lines();
            for line in lines.take(if self.whole { usize::MAX } else { 1 }) {
                let line = format!("    {line}");
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        screen.print(&text)?;
        screen.print_notices(&self.notices);
        Ok(())
    }
}

/// Starts a kernel and asks it.
pub(crate) fn helpers(args: &HelpersArgs, engine: &Engine) -> Result<HelpersAnswer, Failure> {
    let cwd = kernels::working_directory(args.cwd.as_deref())?;
    let settings = engine.settings(&cwd)?;
    let spec = kernels::runner_spec(engine, &settings, args.python.as_deref(), cwd)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut answer = runtime.block_on(asked(&spec, engine))?;
    if !args.names.is_empty() {
        answer.whole = true;
        let known: Vec<String> = answer.helpers.iter().map(|one| one.name.clone()).collect();
        if let Some(missing) = args.names.iter().find(|name| !known.contains(name)) {
            let failure = Failure::new(Kind::BadArguments, format!("There is no `{missing}`"));
            return Err(failure.hint(format!("there are {}", known.join(", "))));
        }
        answer.helpers.retain(|one| args.names.contains(&one.name));
    }
    Ok(answer)
}

async fn asked(spec: &RunnerSpec, engine: &Engine) -> Result<HelpersAnswer, Failure> {
    let stop = StopSignal::never().with_timeout(PATIENCE);
    let mut kernel = Runner::start(spec, &stop).await?;
    let inside = KernelContext::new(None, CallContext::new("helpers", &spec.env, &spec.cwd));
    let ready = inside
        .load_modules(&mut kernel, engine, &spec.cwd, &stop)
        .await?;
    let listed = kernel.query(&KernelQuery::Helpers, &stop).await?;
    Box::new(kernel)
        .shutdown(StopSignal::never().with_timeout(Duration::from_secs(1)))
        .await;
    let helpers = serde_json::from_value(listed).map_err(std::io::Error::from)?;
    Ok(HelpersAnswer {
        helpers,
        notices: ready.notices,
        whole: false,
    })
}
