//! Pages in a real browser: a page of an allowed origin uses the server, and another page cannot.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use cellwright_test_support::skip;

use super::http_server::{HttpServer, INITIALIZE, INITIALIZED};
use crate::context::Context;

/// How long a browser may take to start and to run a script.
const BROWSER_TIMEOUT: Duration = Duration::from_mins(2);

/// Uses the server and sends the result to the origin of the page.
const SCRIPT: &str = r"
const headers = {
  Authorization: BEARER, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
};
const post = (body) => fetch(ENDPOINT, {method: 'POST', headers, body});
const use = async () => {
  const initialized = await post(INITIALIZE);
  await initialized.text();
  headers['Mcp-Session-Id'] = initialized.headers.get('Mcp-Session-Id');
  headers['MCP-Protocol-Version'] = '2025-11-25';
  await post(INITIALIZED);
  const call = {jsonrpc: '2.0', id: 2, method: 'tools/call', params: {name: 'read', arguments: {path: 'a.ipynb'}}};
  const answer = await (await post(JSON.stringify(call))).text();
  const ended = await fetch(ENDPOINT, {method: 'DELETE', headers});
  return 'ended with ' + ended.status + ': ' + answer;
};
use().catch((error) => 'failed: ' + error).then((result) => fetch('/result', {method: 'POST', body: result}));
";

/// A browser, which ends with the test.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Finds Chromium. Reports a skip if there is none.
fn find_chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser"].map(|name| dir.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        skip("chromium", "there is no Chromium");
    }
    found
}

fn open_page(chromium: &Path, context: &Context, url: &str) -> Browser {
    let profile = context.path("profile");
    let mut command = Command::new(chromium);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args(["--no-first-run", "--disable-background-networking"])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
        ])
        .args(["--no-proxy-server", "--remote-debugging-port=0"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Browser(command.spawn().unwrap())
}

/// Serves a page to one browser after another. Returns the results that the pages send.
fn serve_page(listener: TcpListener, page: String) -> Receiver<String> {
    let (results, received) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // A browser opens connections that it does not use.
            let (page, results) = (page.clone(), results.clone());
            std::thread::spawn(move || serve_request(&connection, &page, &results));
        }
    });
    received
}

fn serve_request(mut connection: &TcpStream, page: &str, results: &Sender<String>) {
    let mut reader = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let mut content = "";
    if head.starts_with("POST /result ") {
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        // The receiver is gone if the test has failed.
        results.send(String::from_utf8(body).unwrap()).ok();
    } else if head.starts_with("GET / ") {
        content = page;
    }
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{content}",
        content.len(),
    );
    connection.write_all(response.as_bytes()).ok();
}

#[test]
fn a_page_of_an_allowed_origin_uses_the_server_and_another_cannot() {
    let Some(chromium) = find_chromium() else {
        return;
    };
    let context = Context::with_notebook();
    let pages = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let origins = pages
        .each_ref()
        .map(|page| format!("http://{}", page.local_addr().unwrap()));
    let server = HttpServer::with(&context, &["--allow-origin", &origins[0]], &[]);
    let constants = format!(
        "const [ENDPOINT, BEARER, INITIALIZE, INITIALIZED] = {};",
        serde_json::json!([
            format!("http://{}/mcp", server.address),
            server.bearer(),
            INITIALIZE,
            INITIALIZED,
        ])
    );
    let page = format!("<!DOCTYPE html><script>{constants}{SCRIPT}</script>");
    let [allowed, other] = pages.map(|listener| serve_page(listener, page.clone()));
    {
        let _browser = open_page(&chromium, &context, &origins[0]);
        let result = allowed.recv_timeout(BROWSER_TIMEOUT).unwrap();
        assert!(result.starts_with("ended with 20"), "{result}");
        assert!(result.contains("3 cells"), "{result}");
    }
    let _browser = open_page(&chromium, &context, &origins[1]);
    let result = other.recv_timeout(BROWSER_TIMEOUT).unwrap();
    assert_eq!(result, "failed: TypeError: Failed to fetch");
}
