//! Servers and networks that fail.

use std::time::{Duration, Instant};

use cellwright_gateway::ServerError;
use cellwright_kernel::{Begun, Ending, Kernel, KernelError, StopSignal};
use cellwright_test_support::{Direction, Engine, Fault, FaultProxy, GatewayServer, Phase, Rule};

use super::{count_kernels, server_at, server_of, spec, start};
use crate::support::{eventually, run_code, run_request};

/// A server and a proxy before it.
struct FaultyServer {
    server: GatewayServer,
    proxy: FaultProxy,
}

impl FaultyServer {
    fn start() -> Option<Self> {
        let server = GatewayServer::start(Engine::KernelGateway)?;
        let proxy = FaultProxy::start(server.address());
        Some(Self { server, proxy })
    }

    fn spec(&self) -> super::GatewaySpec {
        let url = self.proxy.url(&self.server.url());
        spec(server_at(&url, self.server.token()))
    }
}

/// Every line arrives once and in order, although the connection breaks twice a second.
#[tokio::test]
async fn connections_that_break_lose_and_repeat_nothing() {
    const LINES: usize = 3000;
    let Some(faulty) = FaultyServer::start() else {
        return;
    };
    let (mut kernel, _dir) = start(&faulty.spec()).await.unwrap();
    let cut = Fault::CutEvery(Duration::from_millis(500));
    faulty.proxy.set([Rule::always(Phase::Any, cut)]);
    let code = format!(
        "import time\nfor line in range({LINES}):\n    print(line, flush=True)\n    time.sleep(0.001)"
    );
    for round in 0..2 {
        let (recorded, outcome) = run_code(&mut kernel, &code).await;
        assert_eq!(outcome.unwrap().ending, Ending::Completed, "round {round}");
        let text = String::from_utf8(recorded.stdout()).unwrap();
        let lines: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(lines, (0..LINES).collect::<Vec<_>>(), "round {round}");
    }
    assert!(faulty.proxy.count(&Phase::Channels) > 4);
}

/// Requests arrive once, although connections break: a counter in the kernel counts them.
#[tokio::test]
async fn requests_are_executed_once() {
    const CELLS: usize = 25;
    let Some(faulty) = FaultyServer::start() else {
        return;
    };
    let (mut kernel, _dir) = start(&faulty.spec()).await.unwrap();
    run_code(&mut kernel, "count = 0").await.1.unwrap();
    let cut = Fault::CutEvery(Duration::from_millis(150));
    faulty.proxy.set([Rule::always(Phase::Any, cut)]);
    for cell in 1..=CELLS {
        let code = "count += 1\nimport time\ntime.sleep(0.02)\nprint(count)";
        let (recorded, outcome) = run_code(&mut kernel, code).await;
        assert_eq!(outcome.unwrap().ending, Ending::Completed, "cell {cell}");
        assert_eq!(
            String::from_utf8(recorded.stdout()).unwrap(),
            format!("{cell}\n")
        );
    }
}

/// The start ends at its limit, whatever the server does, and the error names the server.
#[tokio::test]
async fn a_start_ends_at_its_limit() {
    const LIMIT: Duration = Duration::from_secs(2);
    const TOLERANCE: Duration = Duration::from_secs(4);
    let Some(faulty) = FaultyServer::start() else {
        return;
    };
    let faults = [
        (Phase::Any, Fault::AcceptOnly),
        (Phase::CreateKernel, Fault::NoAnswer),
        (Phase::Channels, Fault::NoAnswer),
        (Phase::Channels, Fault::Stall(Direction::ToClient)),
        (Phase::Channels, Fault::HalfClose(Direction::ToServer)),
        (
            Phase::Any,
            Fault::Slow {
                bytes: 1,
                interval: Duration::from_millis(200),
            },
        ),
    ];
    for (phase, fault) in faults {
        faulty.proxy.set([Rule::always(phase.clone(), fault)]);
        let mut spec = faulty.spec();
        spec.start_timeout = LIMIT;
        let started = Instant::now();
        let error = start(&spec).await.err();
        let elapsed = started.elapsed();
        assert!(
            matches!(
                error,
                Some(KernelError::NotReady { .. } | KernelError::Server { .. })
            ),
            "{phase:?} {fault:?}: {error:?}"
        );
        assert!(
            elapsed < LIMIT + TOLERANCE,
            "{phase:?} {fault:?}: {elapsed:?}"
        );
    }
}

/// A status at any phase is an error that names it, or is retried.
#[tokio::test]
async fn statuses_are_reported() {
    let Some(faulty) = FaultyServer::start() else {
        return;
    };
    for phase in [Phase::CreateKernel, Phase::Channels] {
        for status in [401, 403, 404, 500, 502] {
            faulty
                .proxy
                .set([Rule::always(phase.clone(), Fault::Status(status))]);
            let mut spec = faulty.spec();
            spec.start_timeout = Duration::from_secs(3);
            let error = start(&spec).await.err();
            let Some(KernelError::Server { error, begun }) = error else {
                assert!(
                    matches!(error, Some(KernelError::NotReady { .. })) && status >= 500,
                    "{phase:?} {status}: {error:?}"
                );
                continue;
            };
            assert_eq!(begun, Begun::No);
            match status {
                401 | 403 => assert!(matches!(error, ServerError::Unauthorized { .. })),
                404 if phase == Phase::Channels => {
                    assert!(matches!(error, ServerError::KernelGone { .. }), "{error:?}");
                }
                _ => assert_eq!(error.status(), Some(status), "{error:?}"),
            }
        }
    }
    // A server that fails once is asked again.
    faulty
        .proxy
        .set([Rule::once(Phase::CreateKernel, Fault::Status(500))]);
    start(&faulty.spec()).await.unwrap();
    faulty.proxy.clear();
}

#[tokio::test]
async fn a_kernel_that_another_client_ended_is_gone() {
    let Some(server) = GatewayServer::start(Engine::KernelGateway) else {
        return;
    };
    let (mut kernel, _dir) = start(&spec(server_of(&server))).await.unwrap();
    let (_, body) = server.request("GET", "api/kernels", "");
    let kernels: serde_json::Value = serde_json::from_str(&body).unwrap();
    let id = kernels[0]["id"].as_str().unwrap().to_owned();
    let delete = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let path = format!("api/kernels/{id}");
        let (server, path) = (&server, &path);
        std::thread::scope(|scope| {
            scope.spawn(|| server.request("DELETE", path, ""));
        });
        std::future::pending::<()>().await;
    };
    let request = cellwright_kernel::Request::new("import time; time.sleep(60)");
    let stop = StopSignal::never();
    let (_, outcome) = tokio::select! {
        result = run_request(&mut kernel, &request, &stop) => result,
        () = delete => unreachable!(),
    };
    // The server interrupts the kernel before it ends it, so that the cell may end with an exception.
    let error = match outcome {
        Err(error) => error,
        Ok(_) => run_code(&mut kernel, "1").await.1.unwrap_err(),
    };
    assert!(
        matches!(
            error,
            KernelError::Server {
                error: ServerError::KernelGone { .. },
                ..
            } | KernelError::Died { .. }
        ),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_server_that_was_restarted_is_reported() {
    let Some(mut server) = GatewayServer::start(Engine::KernelGateway) else {
        return;
    };
    let (mut kernel, _dir) = start(&spec(server_of(&server))).await.unwrap();
    run_code(&mut kernel, "x = 1").await.1.unwrap();
    server.kill();
    server.restart_on_same_port();
    let (_, outcome) = run_code(&mut kernel, "x").await;
    let error = outcome.unwrap_err();
    assert!(
        matches!(
            error,
            KernelError::Server {
                error: ServerError::ServerRestarted { .. } | ServerError::KernelGone { .. },
                ..
            }
        ),
        "{error:?}"
    );
    drop(kernel);
    assert_eq!(count_kernels(&server), 0);
}

/// A server that limits the rate drops output. That is reported, not stored as text of the cell.
#[tokio::test]
async fn output_that_a_server_drops_is_reported() {
    let Some(server) = GatewayServer::start(Engine::JupyterServer) else {
        return;
    };
    let (mut kernel, _dir) = start(&spec(server_of(&server))).await.unwrap();
    let code = "for _ in range(20):\n    print('x' * 1_000_000, flush=True)";
    let (recorded, outcome) = run_code(&mut kernel, code).await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert!(recorded.stdout().len() < 20_000_000);
    assert!(!recorded.summary().contains("rate exceeded"));
    let notices = kernel.take_notices();
    let is_reported = notices
        .iter()
        .any(|notice| notice.text.contains("rate limit"));
    assert!(is_reported, "{notices:?}");
}

/// A client that is dropped, at any moment, leaves no kernel on the server.
#[tokio::test]
async fn a_client_that_is_gone_leaves_no_kernel() {
    let Some(server) = GatewayServer::start(Engine::KernelGateway) else {
        return;
    };
    let spec = spec(server_of(&server));
    for delay in [5, 20, 60, 150, 400, 1200] {
        let started = tokio::time::timeout(Duration::from_millis(delay), start(&spec)).await;
        drop(started);
    }
    let gone = || count_kernels(&server) == 0;
    assert!(
        eventually(Duration::from_secs(20), gone).await,
        "{}",
        server.log()
    );
}
