//! Lists the functions that code in a kernel can use: the prelude and the user's modules.

use std::path::PathBuf;
use std::time::Duration;

use cellwright_diagnostics::failure::{Failure, Kind};
use cellwright_diagnostics::notice::UserNotice;
use cellwright_kernel::backend::runner::{Runner, RunnerSpec};
use cellwright_kernel::{Kernel, KernelQuery, LaunchContext, StopSignal};
use serde::{Deserialize, Serialize};

use crate::bridge::CallContext;
use crate::engine::Engine;
use crate::kernel_setup::KernelContext;
use crate::kernels;

/// Time limit for the kernel and the user's modules.
const QUERY_TIMEOUT: Duration = Duration::from_mins(1);

/// Time limit for the kernel to exit.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A request to list functions.
#[derive(Debug)]
pub(crate) struct HelpersRequest {
    /// The functions to return; empty for all.
    pub(crate) names: Vec<String>,
    /// The directory in which code would run; the current directory if `None`.
    pub(crate) cwd: Option<PathBuf>,
    /// The interpreter to use instead of the selected one.
    pub(crate) python: Option<PathBuf>,
}

/// The functions.
#[derive(Debug, Serialize)]
pub(crate) struct HelpersReport {
    pub(crate) helpers: Vec<HelperFunction>,
    pub(crate) notices: Vec<UserNotice>,
}

/// A function that code can use.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct HelperFunction {
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) doc: String,
    /// The user's file that defines it; `None` for the prelude.
    pub(crate) module: Option<String>,
}

/// Starts a kernel and lists its functions.
pub(crate) fn list_helpers(
    request: &HelpersRequest,
    engine: &Engine,
) -> Result<HelpersReport, Failure> {
    let cwd = kernels::working_directory(request.cwd.as_deref())?;
    let settings = engine.settings(&cwd)?;
    let spec = kernels::runner_spec(engine, &settings, request.python.as_deref(), &cwd)?;
    let launch = kernels::launch_context(engine, cwd);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut report = runtime.block_on(query_kernel(&spec, &launch, engine))?;
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
    let context = KernelContext::new(None, CallContext::new("helpers", &spec.env, &launch.cwd));
    let setup = context
        .load_modules(&mut kernel, engine, &launch.cwd, &stop)
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
