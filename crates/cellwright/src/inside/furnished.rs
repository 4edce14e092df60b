//! [`Furnished`]: a kernel with everything in it that its cells may use, and a way back that is open
//! while one of them runs.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use cellwright_kernel::{
    BoxFuture, Description, Farewell, Kernel, KernelError, LateText, Outcome, Question, Remark,
    Request, Stop,
};
use cellwright_output::Sink;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::{Inside, Modules};
use crate::bridge::{Bridge, Door};
use crate::engine::Engine;

/// The way back, opened when the first kernel needs it; clones share it. `None`: it could not be opened,
/// which cells find out when they call.
pub(crate) type SharedBridge = Arc<OnceCell<Option<Bridge>>>;

/// How the kernels of a session are furnished.
#[derive(Clone)]
pub(crate) struct Furnishing {
    pub(crate) engine: Arc<Engine>,
    pub(crate) bridge: SharedBridge,
    pub(crate) session: String,
    pub(crate) modules: Modules,
}

impl Furnishing {
    /// Opens the way back, if nobody has yet.
    pub(crate) async fn open(&self) -> &Option<Bridge> {
        let start = || async { Bridge::start().await.ok() };
        self.bridge.get_or_init(start).await
    }

    /// Puts everything into a kernel that has just started in `cwd` with these variables. What we have is
    /// Python's: a kernel of another language stays as it is.
    pub(crate) async fn furnish(
        &self,
        mut kernel: Box<dyn Kernel>,
        env: &[(OsString, OsString)],
        cwd: &Path,
        stop: &Stop,
    ) -> Result<Box<dyn Kernel>, KernelError> {
        if !kernel.description().is_python() {
            return Ok(kernel);
        }
        let bridge = self.open().await;
        let inside = Inside::new(bridge.as_ref(), Door::new(&self.session, env, cwd));
        let modules = self.modules;
        let mut remarks = Vec::new();
        if modules.enabled {
            let ready = inside
                .prepare(kernel.as_mut(), &self.engine, cwd, stop)
                .await?;
            if modules.strict
                && let Some(failure) = ready.failures.first()
            {
                return Err(KernelError::Module {
                    path: failure.path.clone(),
                    line: failure.line,
                    what: failure.what.clone(),
                });
            }
            remarks = ready.notices;
        }
        let remark = |told: crate::notice::Told| Remark {
            kind: told.kind.into_owned(),
            text: told.text,
        };
        Ok(Box::new(Furnished {
            kernel,
            inside,
            remarks: remarks.into_iter().map(remark).collect(),
        }))
    }
}

struct Furnished {
    kernel: Box<dyn Kernel>,
    inside: Inside,
    remarks: Vec<Remark>,
}

impl Kernel for Furnished {
    fn description(&self) -> &Description {
        self.kernel.description()
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(async move {
            let mut request = request.clone();
            request.env.extend(self.inside.env());
            let _open = self.inside.cell(stop);
            self.kernel.execute(&request, sink, stop).await
        })
    }

    fn ask<'a>(
        &'a mut self,
        question: &'a Question,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        self.kernel.ask(question, stop)
    }

    fn attend(&mut self) -> BoxFuture<'_, KernelError> {
        self.kernel.attend()
    }

    fn take_late(&mut self) -> Vec<LateText> {
        self.kernel.take_late()
    }

    fn take_remarks(&mut self) -> Vec<Remark> {
        let mut remarks = std::mem::take(&mut self.remarks);
        remarks.extend(self.kernel.take_remarks());
        remarks
    }

    fn requests(&self) -> u64 {
        self.kernel.requests()
    }

    fn is_alive(&mut self) -> bool {
        self.kernel.is_alive()
    }

    fn shutdown(self: Box<Self>, patience: Stop) -> BoxFuture<'static, Farewell> {
        let Self { kernel, inside, .. } = *self;
        Box::pin(async move {
            let farewell = kernel.shutdown(patience).await;
            // Threads that still called until now were told that no cell runs, not that nobody knows
            // them.
            drop(inside);
            farewell
        })
    }
}
