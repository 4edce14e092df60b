//! [`Lifecycle`]: the process of a kernel, wherever it runs.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::error::{Begun, KernelError};
use crate::process::Exit;

/// The process of one kernel: how it is interrupted, and how it ends.
///
/// [`KernelProcess`](super::KernelProcess) is a child process, or a process that another program started.
/// [`RemoteKernelProcess`](super::gateway::RemoteKernelProcess) belongs to a server.
pub trait Lifecycle: Send + 'static {
    /// Whether another program started the kernel. Cellwright then changes it as little as possible, and leaves it
    /// running.
    fn is_attached(&self) -> bool;

    /// The kernel's process id, if it runs on this machine.
    fn pid(&self) -> Option<u32>;

    /// Interrupts the kernel, unless only a message can.
    fn interrupt(&self) -> InterruptPath;

    /// How the kernel ended, if that is known.
    fn exit(&self) -> Option<Exit>;

    /// Waits until the kernel has ended. Cancel-safe. Never returns for a kernel whose end cannot be observed.
    fn exited(&mut self) -> impl Future<Output = Exit> + Send;

    /// Checks without waiting whether the kernel has ended.
    fn poll_exit(&mut self) -> Option<Exit> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.exited()).poll(&mut context) {
            Poll::Ready(exit) => Some(exit),
            Poll::Pending => None,
        }
    }

    /// Records that the channels are closed. If nothing else shows the end of the kernel, it counts as ended.
    fn record_disconnect(&mut self);

    /// Whether `shutdown_request` ends the kernel.
    fn accepts_shutdown_request(&self) -> bool {
        true
    }

    /// The error of a kernel that was lost otherwise than by its exit.
    fn loss(&self, _begun: Begun) -> Option<KernelError> {
        None
    }

    /// Asks the kernel to end, after a shutdown request was not enough. Does not wait.
    fn terminate(&self);

    /// Ends the kernel by force, and waits until it has ended. A kernel that another program started counts as ended
    /// and keeps running.
    fn kill(&mut self) -> impl Future<Output = Exit> + Send;

    /// Ends everything that is left of the kernel, and waits for it. Returns how the kernel ended, if it had a process
    /// here. Not called for a kernel that another program started.
    fn end(self) -> impl Future<Output = Option<Exit>> + Send;

    /// The end of the text that the kernel's process has printed so far.
    fn output_tail(&self) -> String;

    /// The end of the text that the kernel's process printed before it ended. It explains why the kernel ended.
    fn final_output(&mut self) -> impl Future<Output = String> + Send;
}

/// How a kernel is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptPath {
    /// It has been interrupted: by a signal, or by a request to a server.
    Signal,
    /// The backend must send `interrupt_request`.
    Message,
}
