//! [`FollowedRun`]: the run of a tool call, followed until the call can answer.

use std::time::Duration;

use cellwright_diagnostics::failure::Failure;
use cellwright_host::kernel_host::KernelHost;
use cellwright_host::protocol::{ExecuteParams, WaitOptions};
use cellwright_host::run_stream::{RunStream, RunUpdate};
use cellwright_kernel::{StopHandle, StopReason, StopSignal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::progress::ProgressReporter;

/// A run that a tool call follows. Dropping a run that the call started cancels it.
pub(super) struct FollowedRun {
    stream: RunStream,
    host: KernelHost,
    stop_handle: StopHandle,
    stop: StopSignal,
    started: Instant,
}

impl FollowedRun {
    /// Starts an execution.
    pub(super) async fn start(
        host: &KernelHost,
        params: ExecuteParams,
        idle_exit: Option<Duration>,
    ) -> Result<Self, Failure> {
        let stream = RunStream::execute(host, params, idle_exit).await?;
        Ok(Self::new(host, stream))
    }

    /// Waits for the end of a background run.
    pub(super) async fn wait(
        host: &KernelHost,
        run: &str,
        wait: Option<Duration>,
    ) -> Result<Self, Failure> {
        let stream = RunStream::wait(
            host,
            run,
            WaitOptions {
                wait,
                ..WaitOptions::default()
            },
        )
        .await?;
        Ok(Self::new(host, stream))
    }

    fn new(host: &KernelHost, stream: RunStream) -> Self {
        let (stop_handle, stop) = StopSignal::new();
        Self {
            stream,
            host: host.clone(),
            stop_handle,
            stop,
            started: Instant::now(),
        }
    }

    /// Returns the next update that the call must handle, and reports progress until then. When `cancelled` is
    /// triggered, it cancels the run; the update is then the end of the run.
    pub(super) async fn next(
        &mut self,
        cancelled: &CancellationToken,
        progress: &mut Option<ProgressReporter>,
    ) -> Result<RunUpdate, Failure> {
        loop {
            let tick = progress.as_ref().map(ProgressReporter::next);
            let update = tokio::select! {
                biased;
                () = cancelled.cancelled(), if !self.stop_handle.is_requested() => {
                    self.stop_handle.stop(StopReason::Cancelled);
                    continue;
                }
                update = self.stream.next(&self.stop, tick) => update?,
            };
            match update {
                RunUpdate::Tick => {
                    if let Some(progress) = progress.as_mut() {
                        let elapsed = self.started.elapsed();
                        progress
                            .report(&self.host, self.stream.run(), elapsed)
                            .await;
                    }
                }
                // The report contains the output.
                RunUpdate::Item(_) | RunUpdate::Tail(_) | RunUpdate::Notices(_) => {}
                update => return Ok(update),
            }
        }
    }

    /// Answers an input request; `None`: there is no answer.
    pub(super) async fn send_input(&mut self, text: Option<String>) -> Result<(), Failure> {
        self.stream.send_input(text).await
    }
}
