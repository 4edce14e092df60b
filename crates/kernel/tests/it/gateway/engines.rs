//! The kernel contract on every kind of server.

use std::sync::Arc;

use cellwright_kernel::backend::jupyter::gateway::FileAccess;
use cellwright_kernel::{Kernel, KernelQuery, StopSignal};
use cellwright_test_support::{Engine, GatewayOptions, GatewayServer};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::{server_of, spec, start};
use crate::contract::{self, KernelFixture};
use crate::support::run_code;

/// The server passes on all output.
const NO_RATE_LIMIT: &str = "--ZMQChannelsWebsocketConnection.limit_rate=False";

/// How many kernels a server has at a time.
const PARALLEL_MAX: usize = 3;

/// Jupyter's servers do not end detached children of a kernel.
const DETACHED_CHILDREN: &str = "children_of_a_kernel_end_with_it";

/// Runs the whole contract on one server, and checks that no kernel is left.
async fn check_contract(engine: Engine) {
    let options = GatewayOptions::new();
    let options = match engine {
        // Its version of Jupyter Server has no limit.
        Engine::EnterpriseGateway | Engine::EnterpriseGatewayDistributed => options,
        _ => options.argument(NO_RATE_LIMIT),
    };
    let Some(server) = GatewayServer::start_with(engine, options) else {
        return;
    };
    let spec = Arc::new(spec(server_of(&server)));
    let permits = Arc::new(Semaphore::new(PARALLEL_MAX));
    let mut tests = JoinSet::new();
    for (name, test) in contract::on_servers() {
        if name == DETACHED_CHILDREN {
            continue;
        }
        let (spec, permits) = (Arc::clone(&spec), Arc::clone(&permits));
        tests.spawn(async move {
            let _permit = permits.acquire().await.unwrap();
            let started = start(&spec).await;
            let (kernel, dir) = started.unwrap_or_else(|error| panic!("{name}: {error}"));
            let kernel = Box::new(kernel);
            // A process on another machine is interrupted alone.
            let interrupts_children = engine != Engine::EnterpriseGatewayDistributed;
            test(KernelFixture {
                kernel,
                dir,
                interrupts_children,
            })
            .await;
        });
    }
    while let Some(result) = tests.join_next().await {
        result.unwrap();
    }
}

#[tokio::test]
async fn contract_holds_on_kernel_gateway() {
    check_contract(Engine::KernelGateway).await;
}

#[tokio::test]
async fn contract_holds_on_jupyter_server() {
    check_contract(Engine::JupyterServer).await;
}

#[tokio::test]
async fn contract_holds_on_distributed_kernels_of_enterprise_gateway() {
    check_contract(Engine::EnterpriseGatewayDistributed).await;
}

#[tokio::test]
async fn contract_holds_on_jupyter_hub() {
    check_contract(Engine::JupyterHub).await;
}

#[tokio::test]
async fn contract_holds_on_enterprise_gateway() {
    check_contract(Engine::EnterpriseGateway).await;
}

/// A kernel that cannot read the files of this machine receives the prelude with its first request.
#[tokio::test]
async fn the_prelude_needs_no_files() {
    let Some(server) = GatewayServer::start(Engine::JupyterServer) else {
        return;
    };
    let mut spec = spec(server_of(&server));
    spec.files = FileAccess::OtherMachine;
    let (mut kernel, dir) = start(&spec).await.unwrap();
    let code = "import os, cellwright_runner\nprint(os.getcwd(), callable(read), os.path.exists(cellwright_runner.__file__))";
    let (recorded, outcome) = run_code(&mut kernel, code).await;
    outcome.unwrap();
    let text = String::from_utf8(recorded.stdout()).unwrap();
    assert!(text.ends_with(" True False\n"), "{text}");
    // It stays in the directory of the server.
    assert!(!text.contains(dir.path().to_str().unwrap()), "{text}");
    let query = KernelQuery::Variables { limit: 10 };
    run_code(&mut kernel, "answer = 42").await.1.unwrap();
    let variables = kernel.query(&query, &StopSignal::never()).await.unwrap();
    assert!(variables.to_string().contains("answer"), "{variables}");
    assert_eq!(kernel.take_notices(), []);
}
