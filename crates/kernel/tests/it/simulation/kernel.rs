//! Kernels and launchers that report to the model.

use std::sync::Arc;
use std::time::Duration;

use cellwright_kernel::backend::scripted::{KillHandle, ScriptedKernel};
use cellwright_kernel::process::Exit;
use cellwright_kernel::session::KernelLauncher;
use cellwright_kernel::{
    BoxFuture, Description, Ending, Kernel, KernelError, KernelQuery, KernelState, LateText,
    Outcome, Request, ShutdownReport, StopSignal,
};
use cellwright_output::Sink;
use serde_json::Value;

use super::model::{self, Model};

/// How long a start may take before its launcher gives up.
pub(super) const START_TIMEOUT: Duration = Duration::from_mins(1);

/// The course of a start.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlannedStart {
    Succeeds,
    Fails,
    Exhausted,
    Hangs,
}

/// A scripted kernel that reports to the model.
struct ObservedKernel {
    number: u32,
    /// Taken by the shutdown.
    inner: Option<Box<ScriptedKernel>>,
    model: Model,
}

impl ObservedKernel {
    fn new(model: &Model) -> Self {
        let (number, shutdown_delay, query_delay) = model.with(|state| {
            let number = state.next_kernel();
            let shutdown_delay = state.rng.pick_millis(&[0, 0, 0, 100, 700, 3_000]);
            let query_delay = state.rng.pick_millis(&[0, 5, 400, 90_000]);
            (number, shutdown_delay, query_delay)
        });
        let script = {
            let model = model.clone();
            move |code: &str| model.with(|state| state.execute(number, code))
        };
        let (inner, _) = ScriptedKernel::with_script(script);
        let inner = inner
            .with_name(number.to_string())
            .with_shutdown_delay(shutdown_delay)
            .with_query_delay(query_delay);
        model.with(|state| state.kernel_started(number, inner.kill_handle()));
        Self {
            number,
            inner: Some(Box::new(inner)),
            model: model.clone(),
        }
    }

    fn inner(&mut self) -> &mut ScriptedKernel {
        self.inner.as_mut().unwrap()
    }
}

impl Drop for ObservedKernel {
    fn drop(&mut self) {
        self.model.with(|state| state.kernel_gone(self.number));
    }
}

impl Kernel for ObservedKernel {
    fn description(&self) -> &Description {
        self.inner.as_ref().unwrap().description()
    }

    fn execute<'a>(
        &'a mut self,
        request: &'a Request,
        sink: &'a mut dyn Sink,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Outcome, KernelError>> {
        Box::pin(async move {
            let (number, model) = (self.number, self.model.clone());
            model.with(|state| state.occupy(number));
            let result = self.inner().execute(request, sink, stop).await;
            model.with(|state| {
                state.release(number);
                match &result {
                    Ok(Outcome {
                        ending:
                            Ending::Stopped {
                                reason,
                                state: KernelState::Lost,
                            },
                        ..
                    }) => state.kernel_killed(number, *reason),
                    Ok(_) => state.cell_finished(number),
                    Err(KernelError::Died { .. }) => state.kernel_died(number, false),
                    Err(_) => {}
                }
            });
            result
        })
    }

    fn query<'a>(
        &'a mut self,
        query: &'a KernelQuery,
        stop: &'a StopSignal,
    ) -> BoxFuture<'a, Result<Value, KernelError>> {
        Box::pin(async move {
            let (number, model) = (self.number, self.model.clone());
            model.with(|state| state.occupy(number));
            let answer = self.inner().query(query, stop).await;
            model.with(|state| state.release(number));
            answer
        })
    }

    fn drain_while_idle(&mut self) -> BoxFuture<'_, KernelError> {
        self.inner().drain_while_idle()
    }

    fn take_late_text(&mut self) -> Vec<LateText> {
        self.inner().take_late_text()
    }

    fn request_count(&self) -> u64 {
        self.inner.as_ref().unwrap().request_count()
    }

    fn is_alive(&mut self) -> bool {
        self.inner().is_alive()
    }

    fn shutdown(mut self: Box<Self>, deadline: StopSignal) -> BoxFuture<'static, ShutdownReport> {
        self.model.with(|state| state.kernel_ending(self.number));
        let inner = self.inner.take().unwrap();
        Box::pin(async move {
            // Reported as gone when this is dropped, not before.
            let _observed = self;
            inner.shutdown(deadline).await
        })
    }
}

/// The launcher of one call; the number identifies it.
pub(super) struct SimulatedLauncher {
    pub(super) number: u32,
    pub(super) spare_key: Option<String>,
    pub(super) model: Model,
}

/// A start in progress.
struct StartGuard {
    model: Model,
    launcher: u32,
    /// Whether the start may be dropped: it is for a spare, or finished.
    may_be_dropped: bool,
}

impl StartGuard {
    fn new(model: &Model, launcher: u32, spare: bool) -> Self {
        model.with(|state| state.starts += 1);
        Self {
            model: model.clone(),
            launcher,
            may_be_dropped: spare,
        }
    }
}

impl Drop for StartGuard {
    fn drop(&mut self) {
        self.model.with(|state| {
            state.starts -= 1;
            if !self.may_be_dropped {
                state.start_abandoned(self.launcher);
            }
        });
    }
}

impl SimulatedLauncher {
    fn begin(
        &self,
        stop: StopSignal,
        spare: bool,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let (model, number) = (self.model.clone(), self.number);
        let guard = StartGuard::new(&model, number, spare);
        let (delay, plan) = model.with(|state| state.next_start(number, spare));
        Box::pin(async move {
            let mut guard = guard;
            let delay = if matches!(plan, PlannedStart::Hangs) {
                START_TIMEOUT
            } else {
                delay
            };
            tokio::select! {
                biased;
                reason = stop.requested() => return Err(KernelError::StoppedEarly { reason }),
                () = tokio::time::sleep(delay) => {}
            }
            guard.may_be_dropped = true;
            let stderr = String::new();
            match plan {
                PlannedStart::Succeeds => {}
                PlannedStart::Fails => {
                    let exit = Exit {
                        code: Some(1),
                        signal: None,
                    };
                    return Err(KernelError::FailedToStart { exit, stderr });
                }
                PlannedStart::Exhausted => {
                    // EMFILE.
                    let source = std::io::Error::from_raw_os_error(24);
                    return Err(KernelError::from_exhaustion(source));
                }
                PlannedStart::Hangs => {
                    let after = START_TIMEOUT;
                    return Err(KernelError::NotReady { after, stderr });
                }
            }
            let kernel = ObservedKernel::new(&model);
            if !spare {
                model.with(|state| state.kernel_assigned(kernel.number, number));
            }
            Ok(Box::new(kernel) as Box<dyn Kernel>)
        })
    }
}

impl KernelLauncher for SimulatedLauncher {
    fn start(&self, stop: StopSignal) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        self.begin(stop, false)
    }

    fn spare_key(&self) -> Option<String> {
        self.spare_key.clone()
    }

    fn start_spare(
        &self,
        stop: StopSignal,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        self.begin(stop, true)
    }

    fn adopt(
        &self,
        kernel: Box<dyn Kernel>,
        _stop: StopSignal,
    ) -> BoxFuture<'static, Result<Box<dyn Kernel>, KernelError>> {
        let (model, launcher) = (self.model.clone(), self.number);
        let (delay, fails) = model.with(|state| {
            let delay = state.rng.pick_millis(&[0, 0, 20, 2_000]);
            (delay, state.rng.chance(20))
        });
        Box::pin(async move {
            tokio::time::sleep(delay).await;
            if fails {
                let message = "adoption failed".to_owned();
                return Err(KernelError::QueryFailed { message });
            }
            let number = kernel.description().name.parse().unwrap();
            model.with(|state| state.kernel_assigned(number, launcher));
            Ok(kernel)
        })
    }
}

pub(super) fn new_launcher(
    model: &Model,
    spare_key: Option<String>,
) -> (Arc<dyn KernelLauncher>, u32) {
    let number = model.with(model::ModelState::next_launcher);
    let launcher = SimulatedLauncher {
        number,
        spare_key,
        model: model.clone(),
    };
    (Arc::new(launcher), number)
}

/// Kills a kernel.
pub(super) fn kill(killer: &KillHandle) {
    killer.kill(Exit {
        code: None,
        signal: Some(11),
    });
}
