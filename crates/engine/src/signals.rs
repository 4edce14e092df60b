//! Signals that stop running code, or that a child handles.

use cellwright_diagnostics::failure::Failure;
use cellwright_kernel::{StopHandle, StopReason};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// The signal for a file that exceeds its size limit.
const SIGXFSZ: i32 = 25;

/// Turns SIGINT, SIGTERM and SIGHUP into a stop; a second signal does not wait for the code. Never returns.
pub fn watch_signals(stop_handle: StopHandle) -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    // With a handler, a file that exceeds its size limit is a write error instead of the end of this process.
    let _too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            let reason = StopReason::Cancelled;
            if stop_handle.is_requested() {
                stop_handle.force_stop(reason);
            } else {
                stop_handle.stop(reason);
            }
        }
    })
}

/// While it exists, SIGINT and SIGQUIT do not end this process. Programs that it starts receive them as usual.
pub struct IgnoredInterrupts(#[expect(dead_code, reason = "keeps the handlers")] Runtime);

/// Ignores interrupts of the terminal, for a program in the foreground that handles them itself.
pub fn ignore_interrupts() -> Result<IgnoredInterrupts, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    // The handlers stay when these are dropped.
    drop(signal(SignalKind::interrupt())?);
    drop(signal(SignalKind::quit())?);
    drop(entered);
    Ok(IgnoredInterrupts(runtime))
}
