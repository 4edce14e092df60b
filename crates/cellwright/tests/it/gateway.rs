//! Kernels on Jupyter servers: flags, settings, attaching, lists, errors, and tokens that appear nowhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use cellwright_test_support::{Engine, GatewayServer};
use serde_json::Value;

use crate::context::{CommandOutput, Context, THREE_CELLS};

/// A server, and a user whose settings name it `lab`.
struct Fixture {
    context: Context,
    server: GatewayServer,
}

impl Fixture {
    fn new(engine: Engine) -> Option<Self> {
        let server = GatewayServer::start(engine)?;
        let context = Context::new();
        let fixture = Self { context, server };
        fixture.write_settings("");
        Some(fixture)
    }

    fn write_settings(&self, more: &str) {
        let dir = self.context.home().join(".config/cellwright");
        fs::create_dir_all(&dir).unwrap();
        let token = dir.join("token");
        fs::write(&token, self.server.token()).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let url = self.server.url();
        let text = format!("[server.lab]\nurl = \"{url}\"\ntoken_file = \"token\"\n{more}");
        fs::write(dir.join("config.toml"), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.context.command(arguments)
    }

    /// Runs a command. Its output never contains the token.
    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let result = CommandOutput::new(&self.context, &self.command(arguments).output().unwrap());
        for text in [&result.stdout, &result.stderr] {
            assert!(!text.contains(self.server.token()), "{text}");
        }
        result
    }

    fn stop_host(&self) {
        self.run(&["host", "stop"]);
    }

    /// The ids of the kernels on the server.
    fn kernels(&self) -> Vec<String> {
        let (status, body) = self.server.request("GET", "api/kernels", "");
        assert_eq!(status, 200, "{body}");
        let kernels: Value = serde_json::from_str(&body).unwrap();
        let kernels = kernels.as_array().unwrap().iter();
        kernels
            .map(|kernel| kernel["id"].as_str().unwrap().to_owned())
            .collect()
    }

    fn start_kernel(&self) -> String {
        let (status, body) = self.server.request("POST", "api/kernels", "{}");
        assert_eq!(status, 201, "{body}");
        let kernel: Value = serde_json::from_str(&body).unwrap();
        kernel["id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn code_runs_on_a_server_by_name_and_by_url() {
    let Some(fixture) = Fixture::new(Engine::KernelGateway) else {
        return;
    };
    let report = fixture.run(&["eval", "--gateway", "lab", "6 * 7", "--json"]);
    let report = report.exits(0).json();
    assert_eq!(report["cells"][0]["text"], "42\n");
    assert_eq!(report["kernel"]["backend"], "gateway");
    assert_eq!(report["kernel"]["server"], "lab");
    assert!(report["kernel"]["kernel_id"].is_string(), "{report}");
    assert_eq!(report["notices"][0]["kind"], "remote_files");
    // A URL finds the settings of the server; the kernel has ended with the command.
    let url = fixture.server.url();
    fixture.run(&["eval", "--gateway", &url, "1"]).exits(0);
    assert_eq!(fixture.kernels(), Vec::<String>::new());
}

#[test]
fn a_token_in_a_url_works_and_is_reported() {
    let Some(fixture) = Fixture::new(Engine::KernelGateway) else {
        return;
    };
    let dir = fixture.context.home().join(".config/cellwright");
    fs::remove_dir_all(dir).unwrap();
    let url = fixture.server.url();
    let url = format!("{url}?token={}", fixture.server.token());
    let result = fixture
        .run(&["eval", "--gateway", &url, "print('ok')"])
        .exits(0);
    assert_eq!(result.stdout, "ok\n");
    assert!(
        result.stderr.contains("list of processes"),
        "{}",
        result.stderr
    );
    // The variable of Jupyter is for the server that it names.
    let mut command = fixture.command(&["eval", "--backend", "gateway", "print('ok')"]);
    command.env("JUPYTER_GATEWAY_URL", fixture.server.url());
    command.env("JUPYTER_GATEWAY_AUTH_TOKEN", fixture.server.token());
    let result = CommandOutput::new(&fixture.context, &command.output().unwrap()).exits(0);
    assert_eq!(result.stdout, "ok\n");
    command.env("JUPYTER_GATEWAY_VALIDATE_CERT", "false");
    let result = CommandOutput::new(&fixture.context, &command.output().unwrap()).exits(2);
    assert!(
        result.stderr.contains("always verified"),
        "{}",
        result.stderr
    );
}

#[test]
fn missing_token_and_missing_server_are_different_errors() {
    let Some(fixture) = Fixture::new(Engine::KernelGateway) else {
        return;
    };
    let kind = |arguments: &[&str]| {
        let error = fixture.run(arguments).exits(2).json();
        error["error"]["kind"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        kind(&["eval", "--gateway", "http://127.0.0.1:1/", "1", "--json"]),
        "server_unreachable"
    );
    assert_eq!(
        kind(&["eval", "--gateway", "other", "1", "--json"]),
        "bad_arguments"
    );
    let id = "00000000-0000-4000-8000-000000000000";
    assert_eq!(
        kind(&["eval", "--gateway", "lab", "--existing", id, "1", "--json"]),
        "kernel_gone"
    );
    let dir = fixture.context.home().join(".config/cellwright");
    fs::write(dir.join("token"), "wrong").unwrap();
    assert_eq!(
        kind(&["eval", "--gateway", "lab", "1", "--json"]),
        "server_unauthorized"
    );
    let result = fixture.run(&["eval", "--gateway", "lab", "1"]).exits(2);
    assert!(
        result.stderr.contains("requires authentication"),
        "{}",
        result.stderr
    );
    assert!(result.stderr.contains("[server.lab]"), "{}", result.stderr);
    fixture.write_settings("");
    let result = fixture
        .run(&["eval", "--gateway", "lab", "--kernel", "pyhton3", "1"])
        .exits(2);
    assert!(
        result.stderr.contains("did you mean `python3`?"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_notebook_runs_on_a_server_and_is_checked_there() {
    let Some(fixture) = Fixture::new(Engine::JupyterServer) else {
        return;
    };
    fixture.context.file("a.ipynb", THREE_CELLS);
    let report = fixture
        .run(&["run", "a.ipynb", "--gateway", "lab", "--json"])
        .exits(0)
        .json();
    assert_eq!(report["kernel"]["server"], "lab");
    assert_eq!(report["kernel"]["name"], "python3");
    assert!(fixture.context.content("a.ipynb").contains("43.0"));
    fixture
        .run(&["check", "a.ipynb", "--gateway", "lab"])
        .exits(0);
    // A kernel that the server does not have is replaced by one of the same language.
    let other = THREE_CELLS.replace("\"name\": \"python3\"", "\"name\": \"conda-x\"");
    fixture.context.file("b.ipynb", &other);
    let result = fixture
        .run(&["run", "b.ipynb", "--gateway", "lab"])
        .exits(0);
    assert!(
        result.stderr.contains("has no kernel `conda-x`"),
        "{}",
        result.stderr
    );
}

#[test]
fn a_session_on_a_server_stays_and_is_listed() {
    let Some(fixture) = Fixture::new(Engine::JupyterServer) else {
        return;
    };
    fixture
        .run(&["eval", "--gateway", "lab", "--session", "s", "x = 41"])
        .exits(0);
    // Without the server, the session has its kernel.
    let result = fixture.run(&["eval", "--session", "s", "x + 1"]).exits(0);
    assert_eq!(result.stdout, "42\n");
    assert!(
        !result.stderr.contains("in its working directory"),
        "{}",
        result.stderr
    );
    let sessions = fixture.run(&["kernels", "list", "--json"]).exits(0).json();
    assert_eq!(sessions["kernels"][0]["server"], "lab");
    assert_eq!(sessions["kernels"][0]["backend"], "gateway");
    let table = fixture.run(&["kernels", "list"]).exits(0).stdout;
    assert!(table.contains("lab"), "{table}");
    let foreign = fixture.start_kernel();
    let list = fixture
        .run(&["kernels", "list", "--gateway", "lab", "--json"])
        .exits(0)
        .json();
    for kernel in list["kernels"].as_array().unwrap() {
        let expected = if kernel["id"] == *foreign {
            Value::Null
        } else {
            "s".into()
        };
        assert_eq!(kernel["session"], expected, "{list}");
    }
    fixture
        .run(&["kernels", "interrupt", "--gateway", "lab", &foreign])
        .exits(0);
    fixture
        .run(&["kernels", "reset", "--gateway", "lab", &foreign])
        .exits(0);
    fixture
        .run(&["kernels", "stop", "--gateway", "lab", &foreign, "--json"])
        .exits(0);
    assert_eq!(fixture.kernels().len(), 1);
    fixture
        .run(&["kernels", "stop", "--gateway", "lab", &foreign])
        .exits(2);
    fixture.run(&["kernels", "reset", "s"]).exits(0);
    fixture.run(&["eval", "--session", "s", "x"]).exits(1);
    fixture.run(&["kernels", "stop", "s"]).exits(0);
    assert_eq!(fixture.kernels(), Vec::<String>::new());
    fixture.stop_host();
}

#[test]
fn a_running_kernel_is_attached_by_its_id_and_by_its_notebook() {
    let Some(fixture) = Fixture::new(Engine::JupyterServer) else {
        return;
    };
    let body =
        r#"{"path": "a.ipynb", "name": "a", "type": "notebook", "kernel": {"name": "python3"}}"#;
    let (status, body) = fixture.server.request("POST", "api/sessions", body);
    assert_eq!(status, 201, "{body}");
    let session: Value = serde_json::from_str(&body).unwrap();
    let id = session["kernel"]["id"].as_str().unwrap();
    let attach = |kernel: &str, code: &str| {
        let arguments = ["eval", "--gateway", "lab", "--existing", kernel, code];
        fixture.run(&arguments).exits(0).stdout
    };
    attach(id, "x = 20");
    attach(&id[..8], "x += 1");
    assert_eq!(attach("a.ipynb", "x * 2"), "42\n");
    assert_eq!(fixture.kernels(), [id]);
    let list = fixture
        .run(&["kernels", "list", "--gateway", "lab", "--json"])
        .exits(0)
        .json();
    assert_eq!(list["kernels"][0]["notebook"], "a.ipynb");
    let arguments = ["eval", "--gateway", "lab", "--existing", "b.ipynb", "1"];
    let result = fixture.run(&arguments).exits(2);
    assert!(
        result.stderr.contains("no notebook `b.ipynb`"),
        "{}",
        result.stderr
    );
}

#[test]
fn the_death_of_a_kernel_and_the_end_by_others_are_different_errors() {
    let Some(fixture) = Fixture::new(Engine::KernelGateway) else {
        return;
    };
    let code = "import os; os.kill(os.getpid(), 9)";
    let report = fixture
        .run(&["eval", "--gateway", "lab", code, "--json"])
        .exits(2)
        .json();
    assert_eq!(report["error"]["kind"], "kernel", "{report}");
}

#[test]
fn doctor_checks_a_server() {
    let Some(fixture) = Fixture::new(Engine::KernelGateway) else {
        return;
    };
    let report = fixture
        .run(&["doctor", "--gateway", "lab", "--json"])
        .exits(0)
        .json();
    let level = |code: &str| {
        let findings = report["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["code"] == code);
        found.map(|finding| finding["level"].as_str().unwrap().to_owned())
    };
    for code in [
        "server",
        "server-token",
        "server-kernels",
        "server-kernel",
        "server-round-trip",
    ] {
        assert_eq!(level(code).as_deref(), Some("ok"), "{code}: {report}");
    }
    assert!(level("server-variables").is_some() && level("server-rate").is_some());
    assert_eq!(fixture.kernels(), Vec::<String>::new());
    let dir = fixture.context.home().join(".config/cellwright");
    fs::write(dir.join("token"), "wrong").unwrap();
    let report = fixture
        .run(&["doctor", "--gateway", "lab", "--json"])
        .exits(2)
        .json();
    assert!(report.to_string().contains("token_file"), "{report}");
    fixture
        .run(&["doctor", "--gateway", "http://127.0.0.1:1/"])
        .exits(2);
}

#[test]
fn settings_show_servers_without_secrets_and_completion_knows_their_names() {
    let context = Context::new();
    let dir = context.home().join(".config/cellwright");
    fs::create_dir_all(&dir).unwrap();
    let text = "[server.lab]\nurl = \"http://u:s3same@h/?token=s3same\"\ntoken = \"s3same\"\nheaders = { A = \"s3same\" }\n\
                proxy = \"http://u:s3same@p/\"";
    fs::write(dir.join("config.toml"), text).unwrap();
    for arguments in [
        &["config", "list"][..],
        &["config", "list", "--json"],
        &["__complete", "--", "eval", "--gateway", ""],
    ] {
        let result = context.run(arguments).exits(0);
        assert!(result.stdout.contains("lab"), "{}", result.stdout);
        assert!(!result.stdout.contains("s3same"), "{}", result.stdout);
    }
}
