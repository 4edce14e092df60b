//! Lists the functions that code in a kernel can use: the prelude and the user's modules.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_engine::bridge::CallContext;
use cellwright_engine::engine::Engine;
use cellwright_engine::kernel_setup::KernelContext;
use cellwright_engine::kernels;
use cellwright_engine::project_interpreter::ProjectInterpreter;
use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::{Kernel, KernelQuery, LaunchContext, StopSignal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time limit for the kernel and the user's modules.
const QUERY_TIMEOUT: Duration = Duration::from_mins(1);

/// Time limit for the kernel to exit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A request to list functions.
#[derive(Debug)]
pub struct HelpersRequest {
    /// The functions to return; empty for all.
    pub names: Vec<String>,
    /// The directory in which code would run; the current directory if `None`.
    pub cwd: Option<PathBuf>,
    /// The interpreter to use instead of the selected one.
    pub python: Option<PathBuf>,
}

/// The functions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HelpersReport {
    /// The functions.
    pub helpers: Vec<HelperFunction>,
    /// What the caller should know although nothing failed.
    pub notices: Vec<UserNotice>,
}

/// A function that code can use.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct HelperFunction {
    /// Name of the function.
    pub name: String,
    /// Its signature.
    pub signature: String,
    /// Its documentation.
    pub doc: String,
    /// The user's file that defines it; `None` for the prelude.
    pub module: Option<String>,
}

/// Starts a kernel and lists its functions.
pub fn list_helpers(request: &HelpersRequest, engine: &Engine) -> Result<HelpersReport, Failure> {
    let cwd = kernels::working_directory(request.cwd.as_deref())?;
    let settings = engine.settings(&cwd)?;
    let python = request.python.as_deref();
    let interpreter = kernels::resolve_interpreter(engine, &settings, python, &cwd)?;
    if let Some(unknown) = ProjectInterpreter::unknown(engine, Some(&interpreter)) {
        return Err(unknown.not_started_failure());
    }
    let spec = kernels::runner_spec(engine, &settings, interpreter);
    let launch = kernels::launch_context(engine, cwd);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = runtime.block_on(query_kernel(&spec, &launch, engine))?;
    report.notices.splice(0..0, settings.notices());
    if !request.names.is_empty() {
        let names = report.helpers.iter().map(|function| function.name.clone());
        let names: Vec<String> = names.collect();
        if let Some(missing) = request.names.iter().find(|name| !names.contains(name)) {
            let message = format!("There is no function `{missing}`");
            let failure = Failure::new(Kind::BadArguments, message);
            return Err(failure.hint(format!("available: {}", names.join(", "))));
        }
        let is_requested = |function: &HelperFunction| request.names.contains(&function.name);
        report.helpers.retain(is_requested);
    }
    Ok(report)
}

async fn query_kernel(
    spec: &RunnerSpec,
    launch: &LaunchContext,
    engine: &Engine,
) -> Result<HelpersReport, Failure> {
    let stop = StopSignal::never().with_timeout(QUERY_TIMEOUT);
    let mut kernel = Runner::start(spec, launch, &stop).await?;
    let context = KernelContext::new(
        None,
        CallContext::new("helpers", &spec.env, launch.cwd.path()),
    );
    let setup = context
        .load_modules(&mut kernel, engine, launch.cwd.path(), &stop)
        .await?;
    let reply = kernel.query(&KernelQuery::Helpers, &stop).await?;
    Box::new(kernel)
        .shutdown(StopSignal::never().with_timeout(SHUTDOWN_TIMEOUT))
        .await;
    Ok(HelpersReport {
        helpers: serde_json::from_value(reply).map_err(std::io::Error::from)?,
        notices: setup.notices,
    })
}
