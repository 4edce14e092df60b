//! What a fault proxy does to which requests.

use std::time::Duration;

/// The requests that a rule applies to. Paths count from `/api`, whatever base path is before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Every request.
    Any,
    /// `GET /api`.
    Version,
    /// `GET /api/kernelspecs`.
    Kernelspecs,
    /// `GET /api/kernels`.
    Kernels,
    /// `GET /api/sessions`.
    Sessions,
    /// `POST /api/kernels`.
    CreateKernel,
    /// `GET /api/kernels/ID`.
    Kernel,
    /// The upgrade to a WebSocket, and its data afterwards.
    Channels,
    /// `POST /api/kernels/ID/interrupt`.
    Interrupt,
    /// `POST /api/kernels/ID/restart`.
    Restart,
    /// `DELETE /api/kernels/ID`.
    Delete,
    /// A method and the end of a path without its query.
    Request(&'static str, &'static str),
}

impl Phase {
    /// Whether a request with this method and target belongs to the phase.
    pub fn matches(&self, method: &str, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or_default();
        let path = path.trim_end_matches('/');
        if let Self::Request(wanted, end) = self {
            return method == *wanted && path.ends_with(end.trim_end_matches('/'));
        }
        // The last `/api`, because a base path may contain the word.
        let api = if path.ends_with("/api") {
            Some("api")
        } else {
            path.rfind("/api/").map(|start| &path[start + 1..])
        };
        let parts: Vec<&str> = api.into_iter().flat_map(|path| path.split('/')).collect();
        matches!(
            (self, method, &parts[..]),
            (Self::Any, _, _)
                | (Self::Version, "GET", ["api"])
                | (Self::Kernelspecs, "GET", ["api", "kernelspecs"])
                | (Self::Kernels, "GET", ["api", "kernels"])
                | (Self::Sessions, "GET", ["api", "sessions"])
                | (Self::CreateKernel, "POST", ["api", "kernels"])
                | (Self::Kernel, "GET", ["api", "kernels", _])
                | (Self::Channels, "GET", ["api", "kernels", _, "channels"])
                | (Self::Interrupt, "POST", ["api", "kernels", _, "interrupt"])
                | (Self::Restart, "POST", ["api", "kernels", _, "restart"])
                | (Self::Delete, "DELETE", ["api", "kernels", _])
        )
    }
}

/// The way of the data that a fault stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server to the client.
    ToClient,
    /// From the client to the server.
    ToServer,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// New connections are accepted and never read. The phase of the rule has no effect.
    AcceptOnly,
    /// All connections are closed at this interval. The phase of the rule has no effect.
    CutEvery(Duration),
    /// The proxy itself answers with this status; the server does not receive the request.
    Status(u16),
    /// The proxy reads the request and sends no answer; the server does not receive it.
    NoAnswer,
    /// The server receives the request, and the connection is closed after so many bytes of its answer.
    CutAfter(usize),
    /// The answer arrives in pieces of `bytes`, one per `interval`.
    Slow {
        /// Size of a piece.
        bytes: usize,
        /// Time between two pieces.
        interval: Duration,
    },
    /// One direction ends with FIN; the other continues.
    HalfClose(Direction),
    /// One direction stops without FIN, until the rules change. Nothing is lost.
    Stall(Direction),
}

/// A fault for the requests of a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(super) phase: Phase,
    pub(super) fault: Fault,
    /// Number of requests that are left; `None` without limit.
    pub(super) left: Option<usize>,
}

impl Rule {
    /// The fault occurs in each request of the phase, also in those that are under way when the rule is set.
    pub fn always(phase: Phase, fault: Fault) -> Self {
        Self {
            phase,
            fault,
            left: None,
        }
    }

    /// The fault occurs in the next request of the phase.
    pub fn once(phase: Phase, fault: Fault) -> Self {
        Self::times(1, phase, fault)
    }

    /// The fault occurs in the next `count` requests of the phase.
    pub fn times(count: usize, phase: Phase, fault: Fault) -> Self {
        Self {
            phase,
            fault,
            left: Some(count),
        }
    }

    /// Whether the fault concerns this request, as opposed to a connection.
    pub(super) fn applies(&self, method: &str, target: &str) -> bool {
        let is_of_connections = matches!(self.fault, Fault::AcceptOnly | Fault::CutEvery(_));
        !is_of_connections && self.phase.matches(method, target)
    }
}

#[cfg(test)]
mod tests {
    use super::Phase;

    #[test]
    fn phases_are_found_below_any_base_path() {
        for (phase, method, target) in [
            (Phase::Version, "GET", "/api"),
            (Phase::Version, "GET", "/base/x/api?token=1"),
            (Phase::Version, "GET", "/api/base/api/"),
            (Phase::Kernelspecs, "GET", "/user/api/api/kernelspecs"),
            (Phase::CreateKernel, "POST", "/api/kernels"),
            (Phase::Channels, "GET", "/x/api/kernels/1-2/channels?a=b/c"),
            (Phase::Interrupt, "POST", "/api/kernels/1/interrupt"),
            (Phase::Delete, "DELETE", "/api/kernels/1"),
            (Phase::Request("GET", "/login"), "GET", "/x/login?next=/"),
            (Phase::Any, "GET", "/"),
        ] {
            assert!(phase.matches(method, target), "{phase:?} {method} {target}");
        }
        for (phase, method, target) in [
            (Phase::Version, "GET", "/api/kernels"),
            (Phase::Version, "POST", "/api"),
            (Phase::Kernels, "POST", "/api/kernels"),
            (Phase::Kernel, "GET", "/api/kernels/1/channels"),
            (Phase::Delete, "DELETE", "/api/sessions/1"),
            (Phase::Kernels, "GET", "/"),
        ] {
            assert!(
                !phase.matches(method, target),
                "{phase:?} {method} {target}"
            );
        }
    }
}
