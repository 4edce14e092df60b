//! [`KernelSetup`] sets up a started kernel. The result is a [`BridgedKernel`], whose cells can call the bridge while they
//! run.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use cellwright_diagnostics::notice::UserNotice;
use cellwright_kernel::{
    BoxFuture, Description, Kernel, KernelError, KernelNotice, KernelQuery, LateText, Outcome,
    Request, ShutdownReport, StopSignal,
};
use cellwright_output::Sink;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{KernelContext, ModuleOptions};
use crate::bridge::{Bridge, CallContext};
use crate::engine::Engine;

/// The bridge, started when the first kernel needs it; clones share it. `None`: it could not be started; calls from
/// cells then fail.
pub type SharedBridge = Arc<OnceCell<Option<Bridge>>>;

/// How the kernels of a session are set up.
#[derive(Clone)]
pub struct KernelSetup {
    pub engine: Arc<Engine>,
    pub bridge: SharedBridge,
    pub session: String,
    pub modules: ModuleOptions,
}

impl KernelSetup {
    /// Returns the bridge; starts it at the first call.
    pub async fn open_bridge(&self) -> &Option<Bridge> {
        let start = || async { Bridge::start(self.engine.build_command).await.ok() };
        self.bridge.get_or_init(start).await
    }

    /// Sets up a kernel that has just started in `cwd` with these environment variables. The setup is Python code: a
    /// kernel of another language is returned unchanged.
    pub async fn set_up(
        &self,
        mut kernel: Box<dyn Kernel>,
        env: &[(OsString, OsString)],
        cwd: &Path,
        stop: &StopSignal,
    ) -> Result<Box<dyn Kernel>, KernelError> {
        if !kernel.description().is_python() {
            return Ok(kernel);
        }
        let bridge = self.open_bridge().await;
        let calls = CallContext::new(&self.session, env, cwd);
        let context = KernelContext::new(bridge.as_ref(), calls);
        let modules = self.modules;
        let mut notices = Vec::new();
        if modules.enabled {
            let report = context
                .load_modules(kernel.as_mut(), &self.engine, cwd, stop)
                .await?;
            if modules.strict
                && let Some(failure) = report.failures.first()
            {
                return Err(KernelError::Module {
                    path: failure.path.clone(),
                    line: failure.line,
                    message: failure.message.clone(),
                });
            }
            notices = report.notices;
        }
        Ok(Box::new(BridgedKernel {
            kernel,
            context: Some(context),
            setup_notices: notices.into_iter().map(kernel_notice).collect(),
        }))
    }
}

/// Sessions report the notices of a kernel by their names.
fn kernel_notice(notice: UserNotice) -> KernelNotice {
    KernelNotice {
        kind: notice.kind.to_string(),
        text: notice.text,
    }
}

/// A kernel without a bridge that has a notice.
pub fn with_notice(kernel: Box<dyn Kernel>, notice: UserNotice) -> Box<dyn Kernel> {
    Box::new(BridgedKernel {
        kernel,
        context: None,
        setup_notices: vec![kernel_notice(notice)],
    })
}

/// A kernel that is set up. Each request carries the context's environment variables.
struct BridgedKernel {
    kernel: Box<dyn Kernel>,
    /// `None`: its cells cannot call the bridge.
    context: Option<KernelContext>,
    setup_notices: Vec<KernelNotice>,
}

impl Kernel for BridgedKernel {
    fn description(&self) -> &Description {
        self.kernel.description()
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(async move {
            let Some(context) = &self.context else {
                return self.kernel.execute(request, sink, stop).await;
            };
            let mut request = request.clone();
            request.env.extend(context.env());
            let _cell = context.begin_cell(stop);
            self.kernel.execute(&request, sink, stop).await
        })
    }

    fn query<'a>(
        &'a mut self,
        query: &'a KernelQuery,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        self.kernel.query(query, stop)
    }

    fn drain_while_idle(&mut self) -> BoxFuture<'_, KernelError> {
        self.kernel.drain_while_idle()
    }

    fn take_late_text(&mut self) -> Vec<LateText> {
        self.kernel.take_late_text()
    }

    fn take_notices(&mut self) -> Vec<KernelNotice> {
        let mut notices = std::mem::take(&mut self.setup_notices);
        notices.extend(self.kernel.take_notices());
        notices
    }

    fn request_count(&self) -> u64 {
        self.kernel.request_count()
    }

    fn is_alive(&mut self) -> bool {
        self.kernel.is_alive()
    }

    fn shutdown(self: Box<Self>, stop: StopSignal) -> BoxFuture<'static, ShutdownReport> {
        let Self {
            kernel, context, ..
        } = *self;
        Box::pin(async move {
            let report = kernel.shutdown(stop).await;
            // Until the kernel is gone, its threads get "no cell is running" and not "unknown token".
            drop(context);
            report
        })
    }
}
