//! Waiting until a kernel is ready: over any [`Channels`], with any [`Lifecycle`].

use std::time::Duration;

use cellwright_jupyter::connection::Channel;
use cellwright_jupyter::message::Message;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::{
    ChannelEvent, Channels, DISCONNECTED, Lifecycle, SHUTDOWN_STEP_TIMEOUT, sleep_until_some,
};
use crate::error::KernelError;
use crate::process::Exit;
use crate::stop::StopSignal;

/// How long to wait for a message on iopub before `kernel_info_request` is sent again.
const INFO_RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// How long a kernel that has replied may publish nothing on iopub, as some do until there is output,
/// or leave other channels closed.
const READY_GRACE: Duration = Duration::from_secs(3);

/// When a kernel must be ready, and the signal that ends the wait.
pub(super) struct StartDeadline<'a> {
    pub(super) stop: &'a StopSignal,
    pub(super) at: Instant,
    pub(super) timeout: Duration,
}

/// Why a kernel is not ready.
#[derive(Debug)]
pub(super) enum StartFailure {
    Kernel(KernelError),
    Exited(Exit),
    TimedOut,
}

/// Waits until a kernel has replied and published a message on iopub: from then on no message is missed.
pub(super) async fn wait_until_ready(
    channels: &mut impl Channels,
    lifecycle: &mut impl Lifecycle,
    deadline: &StartDeadline<'_>,
) -> Result<Value, StartFailure> {
    let mut open = Vec::new();
    let mut info = None;
    let mut iopub_works = false;
    let mut next_request = None;
    let mut info_deadline = None;
    let mut closed: Option<(Instant, String)> = None;
    loop {
        let event = tokio::select! {
            biased;
            reason = deadline.stop.requested() => {
                return Err(StartFailure::Kernel(KernelError::StoppedEarly { reason }));
            }
            () = sleep_until(deadline.at) => return Err(StartFailure::TimedOut),
            () = sleep_until_some(closed.as_ref().map(|(at, _)| *at)), if closed.is_some() => {
                let what = closed.map(|(_, what)| what).unwrap_or_default();
                return Err(StartFailure::Kernel(KernelError::Protocol { violation: what }));
            }
            () = sleep_until_some(info_deadline), if info_deadline.is_some() && closed.is_none() => {
                return Ok(info.unwrap_or_default());
            }
            () = sleep_until_some(next_request), if next_request.is_some() => {
                next_request = Some(request_info(channels));
                continue;
            }
            event = channels.next() => event,
            exit = lifecycle.exited() => return Err(StartFailure::Exited(exit)),
        };
        match event {
            ChannelEvent::Opened(channel) => open.push(channel),
            ChannelEvent::Message(Channel::Iopub, _) => iopub_works = true,
            ChannelEvent::Message(Channel::Shell, message)
                if message.header.msg_type == "kernel_info_reply" =>
            {
                info = Some(message.value());
                info_deadline.get_or_insert(Instant::now() + READY_GRACE);
            }
            ChannelEvent::Closed(_, None) if lifecycle.is_attached() => {
                return Err(StartFailure::Exited(Exit::UNKNOWN));
            }
            ChannelEvent::Closed(_, Some(violation)) if lifecycle.is_attached() => {
                return Err(StartFailure::Kernel(KernelError::Protocol { violation }));
            }
            // Most likely the process is exiting: one that was killed leaves broken connections.
            ChannelEvent::Closed(_, violation) => {
                let what = violation.unwrap_or_else(|| DISCONNECTED.to_owned());
                closed.get_or_insert((Instant::now() + SHUTDOWN_STEP_TIMEOUT, what));
            }
            _ => {}
        }
        let has = |wanted: &[Channel]| wanted.iter().all(|channel| open.contains(channel));
        if next_request.is_none() && has(&[Channel::Shell, Channel::Iopub]) {
            next_request = Some(request_info(channels));
        }
        // An input request that is sent before stdin is connected is lost.
        if iopub_works
            && closed.is_none()
            && has(&[Channel::Stdin, Channel::Control])
            && let Some(info) = info.take()
        {
            return Ok(info);
        }
    }
}

/// Sends `kernel_info_request`, which causes messages on shell and iopub. Returns when to send it again.
fn request_info(channels: &impl Channels) -> Instant {
    let request = Message::new("kernel_info_request", channels.session(), &json!({}));
    channels.send(Channel::Shell, &request);
    Instant::now() + INFO_RETRY_INTERVAL
}
