//! Each engine starts a kernel, and all its processes end with it.

use std::sync::Arc;

use cellwright_test_support::{Authority, Engine, GatewayOptions, GatewayServer, processes_of};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Starts a kernel on the server and ends the server, twice.
fn starts_and_ends(engine: Engine) {
    let Some(mut server) = GatewayServer::start(engine) else {
        return;
    };
    let (status, specs) = server.request("GET", "api/kernelspecs", "");
    assert_eq!(status, 200, "{specs}");
    let name = json(&specs)["default"].as_str().unwrap().to_owned();
    assert!(!json(&specs)["kernelspecs"][&name].is_null(), "{specs}");
    assert_eq!(
        specs.contains("(distributed)"),
        engine == Engine::EnterpriseGatewayDistributed
    );

    let body = format!("{{\"name\": \"{name}\"}}");
    let (status, kernel) = server.request("POST", "api/kernels", &body);
    assert_eq!(status, 201, "{kernel}\n{}", server.log());
    let id = json(&kernel)["id"].as_str().unwrap().to_owned();
    let (status, kernels) = server.request("GET", "api/kernels", "");
    assert_eq!(status, 200, "{kernels}");
    assert_eq!(json(&kernels)[0]["id"], id.as_str());
    // The server and its kernel.
    assert!(server.processes().len() >= 2, "{:?}", server.processes());
    assert!(server.processes().contains(&server.pid()));

    let (url, pid) = (server.url(), server.pid());
    server.restart_on_same_port();
    assert_eq!(server.url(), url);
    assert_ne!(server.pid(), pid);
    assert_eq!(server.request("GET", "api", "").0, 200);
    let (status, kernels) = server.request("GET", "api/kernels", "");
    assert_eq!((status, json(&kernels)), (200, json("[]")));
    let (status, kernel) = server.request("POST", "api/kernels", &body);
    assert_eq!(status, 201, "{kernel}\n{}", server.log());
    assert!(!server.log().is_empty());

    let directory = server.directory().to_owned();
    drop(server);
    assert_eq!(processes_of(&directory), [] as [u32; 0]);
    assert!(!directory.exists());
}

#[test]
fn kernel_gateway() {
    starts_and_ends(Engine::KernelGateway);
}

#[test]
fn jupyter_server() {
    starts_and_ends(Engine::JupyterServer);
}

#[test]
fn enterprise_gateway() {
    starts_and_ends(Engine::EnterpriseGateway);
}

#[test]
fn enterprise_gateway_distributed() {
    starts_and_ends(Engine::EnterpriseGatewayDistributed);
}

#[test]
fn jupyter_hub() {
    starts_and_ends(Engine::JupyterHub);
}

#[test]
fn base_path_and_client_certificates() {
    let authority = Arc::new(Authority::new());
    for engine in [Engine::KernelGateway, Engine::JupyterServer] {
        let options = GatewayOptions::new()
            .base_path("/base/x")
            .tls(&authority, true);
        let Some(server) = GatewayServer::start_with(engine, options) else {
            return;
        };
        assert!(server.url().starts_with("https://127.0.0.1:"));
        assert!(server.url().ends_with("/base/x/"));
        assert_eq!(server.request("GET", "api/kernelspecs", "").0, 200);
    }
}

#[test]
fn a_password_replaces_the_token() {
    let options = GatewayOptions::new().password("it's \"secret\"");
    let Some(server) = GatewayServer::start_with(Engine::JupyterServer, options) else {
        return;
    };
    assert_eq!(server.request("GET", "api/kernelspecs", "").0, 403);
    let (status, page) = server.request("GET", "login", "");
    assert_eq!(status, 200);
    assert!(page.contains("password"), "{page}");
}
