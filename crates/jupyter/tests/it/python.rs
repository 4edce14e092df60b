//! [`KernelClient`] with foreign kernels: plain libzmq sockets, and ipykernel.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::client::{ClientEvent, ClientOptions, KernelClient};
use cellwright_jupyter::connection::{Channel, Connection, Ports, Transport};
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{self, Server};
use serde_json::{Value, json};

use crate::support::{
    self, connection_file_json, ipc, next_message, oracle_script, python, tcp, within,
};

/// A kernel process that is killed at the end of its test.
struct KernelProcess {
    child: Child,
    connection: Connection,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Drop for KernelProcess {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().unwrap();
    }
}

fn start_libzmq(options: &[&str]) -> KernelProcess {
    let mut child = Command::new(python())
        .arg(oracle_script("libzmq.py"))
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let connection_info: Value = serde_json::from_str(&line).unwrap();
    let port = |name: &str| u16::try_from(connection_info[name].as_u64().unwrap()).unwrap();
    let ip = connection_info["ip"].as_str().unwrap().to_owned();
    let transport = match connection_info["transport"].as_str() {
        Some("ipc") => Transport::Ipc { stem: ip.into() },
        _ => Transport::Tcp { ip },
    };
    KernelProcess {
        child,
        connection: Connection {
            ports: Ports {
                shell: port("shell_port"),
                iopub: port("iopub_port"),
                stdin: port("stdin_port"),
                control: port("control_port"),
                hb: port("hb_port"),
            },
            ..support::connection(transport)
        },
        stdout: Some(stdout),
    }
}

fn request(msg_type: &str, content: &Value) -> Message {
    Message::new(msg_type, "us", content)
}

/// Waits until all four channels are open and the iopub subscription is active.
async fn open_client(connection: &Connection, options: &ClientOptions) -> KernelClient {
    let mut client = KernelClient::open(connection, options).unwrap();
    let mut open = 0;
    while open < 4 {
        match within(client.next()).await {
            ClientEvent::Opened(_) => open += 1,
            ClientEvent::Closed(channel, error) => panic!("{channel:?}: {error:?}"),
            _ => {}
        }
    }
    wait_subscribed(&mut client, "large", &json!({"size": 0})).await;
    client
}

/// Repeats a request until its iopub message arrives: only then is the subscription active. Returns the last reply.
async fn wait_subscribed(client: &mut KernelClient, msg_type: &str, content: &Value) -> Message {
    let new_request = || request(msg_type, content);
    let mut is_subscribed = false;
    within(async {
        client.send(Channel::Shell, &new_request());
        loop {
            match client.next().await {
                ClientEvent::Message(Channel::Iopub, _) => is_subscribed = true,
                ClientEvent::Message(Channel::Shell, reply) if is_subscribed => return *reply,
                ClientEvent::Message(Channel::Shell, _) => {
                    client.send(Channel::Shell, &new_request());
                }
                _ => {}
            }
        }
    })
    .await
}

/// Waits until every channel is closed.
async fn wait_all_closed(client: &mut KernelClient) {
    let mut missing = vec![
        Channel::Shell,
        Channel::Iopub,
        Channel::Stdin,
        Channel::Control,
    ];
    while !missing.is_empty() {
        if let ClientEvent::Closed(channel, _) = within(client.next()).await {
            missing.retain(|other| *other != channel);
        }
    }
}

async fn check_all_channels(kernel: &mut KernelProcess) {
    let mut client = open_client(&kernel.connection, &ClientOptions::default()).await;
    for channel in [Channel::Shell, Channel::Control] {
        for size in [0, 10, 255, 256, 32 * 1024, 1 << 20] {
            let mut sent = request("echo", &json!({"é": size}));
            sent.buffers = vec![Frame::from(vec![7; size]), Frame::default()];
            client.send(channel, &sent);
            let reply = next_message(&mut client, channel).await;
            assert_eq!(reply.header.msg_type, "echoed");
            assert_eq!(reply.parent_id(), sent.header.msg_id);
            assert_eq!(reply.value(), sent.value());
            assert!(reply.buffers == sent.buffers);
        }
    }
    let prompt = json!({"prompt": "? ", "password": false});
    client.send(Channel::Shell, &request("ask", &prompt));
    let input_request = next_message(&mut client, Channel::Stdin).await;
    assert_eq!(input_request.value(), prompt);
    let answer = input_request.reply("input_reply", "us", &json!({"value": "ü"}));
    client.send(Channel::Stdin, &answer);
    let reply = next_message(&mut client, Channel::Shell).await;
    assert_eq!(reply.value(), json!({"value": "ü"}));
    let large = json!({"size": 50 << 20});
    client.send(Channel::Shell, &request("large", &large));
    let published = loop {
        let published = next_message(&mut client, Channel::Iopub).await;
        if published.buffers[0].size() > 1 {
            break published;
        }
    };
    assert!(published.buffers == [Bytes::from(vec![b'x'; 50 << 20])]);
    kernel.child.kill().unwrap();
    wait_all_closed(&mut client).await;
}

#[tokio::test]
async fn all_channels_work_with_libzmq_over_tcp() {
    check_all_channels(&mut start_libzmq(&["pub"])).await;
}

#[tokio::test]
async fn all_channels_work_with_libzmq_over_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let stem = dir.path().join("kernel");
    check_all_channels(&mut start_libzmq(&[stem.to_str().unwrap()])).await;
}

#[tokio::test]
async fn the_backlog_keeps_every_message_of_libzmq() {
    const COUNT: usize = 100_000;
    let kernel = start_libzmq(&[]);
    let options = ClientOptions {
        // Most of it goes to disk.
        backlog_memory_bytes: 1 << 20,
        ..ClientOptions::default()
    };
    let mut client = open_client(&kernel.connection, &options).await;
    let publish = json!({"count": COUNT, "size": 200});
    client.send(Channel::Shell, &request("publish", &publish));
    client.send(Channel::Shell, &request("end", &json!({})));
    // The I/O thread reads while this task waits: no message is taken until the kernel has exited.
    let mut kernel = kernel;
    let waited = tokio::task::spawn_blocking(move || kernel.child.wait().unwrap());
    assert!(within(waited).await.unwrap().success());
    for number in 0..COUNT {
        let published = next_message(&mut client, Channel::Iopub).await;
        if published.header.msg_type == "large" {
            // From the start of the client.
            continue;
        }
        assert_eq!(published.value()["number"], number);
    }
}

#[tokio::test]
async fn the_last_message_arrives_although_the_client_closes_at_once() {
    for channel in [Channel::Shell, Channel::Control] {
        let mut kernel = start_libzmq(&[]);
        let client = open_client(&kernel.connection, &ClientOptions::default()).await;
        let mut last = request("last", &json!({"text": "last"}));
        last.buffers.push(Frame::from(vec![1; 8 << 20]));
        client.send(channel, &last);
        within(client.close()).await;
        let mut output = String::new();
        let mut stdout = kernel.stdout.take().unwrap();
        stdout.read_to_string(&mut output).unwrap();
        assert_eq!(output, format!("{{\"text\": \"last\"}} {}\n", 8 << 20));
    }
}

#[tokio::test]
async fn the_last_message_of_libzmq_arrives_before_the_channels_close() {
    let kernel = start_libzmq(&[]);
    let mut client = open_client(&kernel.connection, &ClientOptions::default()).await;
    client.send(Channel::Control, &request("end", &json!({})));
    let reply = next_message(&mut client, Channel::Control).await;
    assert_eq!(reply.header.msg_type, "ended");
    wait_all_closed(&mut client).await;
}

#[tokio::test]
async fn a_kernel_that_sends_pings_stays_connected() {
    let kernel = start_libzmq(&["ping"]);
    let mut client = open_client(&kernel.connection, &ClientOptions::default()).await;
    // Longer than libzmq waits for an answer.
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.send(Channel::Shell, &request("echo", &json!({"still": "here"})));
    loop {
        match within(client.next()).await {
            ClientEvent::Message(Channel::Shell, reply) => {
                assert_eq!(reply.value(), json!({"still": "here"}));
                break;
            }
            ClientEvent::Closed(channel, error) => panic!("{channel:?} was closed: {error:?}"),
            _ => {}
        }
    }
}

/// Starts ipykernel with ports or names that were just free.
async fn start_ipykernel(dir: &Path, any: &Connection) -> KernelProcess {
    let options = server::ServerOptions::default();
    let free = within(Server::bind(any, &options)).await.unwrap();
    let connection = free.connection().clone();
    drop(free);
    let path = dir.join("connection.json");
    std::fs::write(&path, connection_file_json(&connection).to_string()).unwrap();
    let child = Command::new(python())
        .args(["-m", "ipykernel_launcher", "-f"])
        .arg(path)
        .current_dir(dir)
        .env("IPYTHONDIR", dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    KernelProcess {
        child,
        connection,
        stdout: None,
    }
}

/// Runs a cell. Returns its reply and the iopub messages until the kernel was idle.
async fn run_cell(client: &mut KernelClient, code: &str) -> (Value, Vec<Message>) {
    let content = json!({
        "code": code, "silent": false, "store_history": true, "user_expressions": {},
        "allow_stdin": true, "stop_on_error": true,
    });
    let request = request("execute_request", &content);
    client.send(Channel::Shell, &request);
    let (mut reply, mut idle, mut published) = (None, false, Vec::new());
    while reply.is_none() || !idle {
        let ClientEvent::Message(channel, message) = within(client.next()).await else {
            continue;
        };
        if message.parent_id() != request.header.msg_id {
            continue;
        }
        match channel {
            Channel::Shell => reply = Some(message.value()),
            Channel::Stdin => {
                let answer = message.reply("input_reply", "us", &json!({"value": "ü"}));
                client.send(Channel::Stdin, &answer);
            }
            _ if message.value() == json!({"execution_state": "idle"}) => idle = true,
            _ => published.push(*message),
        }
    }
    (reply.unwrap(), published)
}

async fn ready_client(connection: &Connection, options: &ClientOptions) -> KernelClient {
    let mut client = KernelClient::open(connection, options).unwrap();
    let reply = wait_subscribed(&mut client, "kernel_info_request", &json!({})).await;
    assert_eq!(reply.value()["implementation"], "ipython");
    client
}

#[tokio::test]
async fn all_channels_work_with_ipykernel_over_tcp_and_unix_sockets() {
    let dir = tempfile::tempdir().unwrap();
    for any in [tcp(), ipc(dir.path())] {
        let mut kernel = start_ipykernel(dir.path(), &any).await;
        let options = ClientOptions {
            heartbeat_interval: Some(Duration::from_secs(1)),
            ..ClientOptions::default()
        };
        let mut client = ready_client(&kernel.connection, &options).await;
        let (reply, published) = run_cell(&mut client, "print('é'); input('? ') + '!'").await;
        assert_eq!(reply["status"], "ok", "{reply}");
        let kinds: Vec<_> = published
            .iter()
            .map(|message| message.header.msg_type.as_str())
            .collect();
        assert_eq!(
            kinds,
            ["status", "execute_input", "stream", "execute_result"]
        );
        assert_eq!(published[2].value()["text"], "é\n");
        assert_eq!(published[3].value()["data"]["text/plain"], "'ü!'");
        let large =
            "from IPython.display import *; display({'text/plain': 'x' * 50_000_000}, raw=True)";
        let (_, published) = run_cell(&mut client, large).await;
        let data = published.last().unwrap().value();
        assert_eq!(
            data["data"]["text/plain"].as_str().unwrap().len(),
            50_000_000
        );
        // A lone surrogate, as Python passes bytes on that are not UTF-8.
        let (_, published) = run_cell(&mut client, "print('a\\udcffb')").await;
        assert_eq!(published.last().unwrap().value()["text"], "a\u{fffd}b\n");
        let info = request("kernel_info_request", &json!({}));
        client.send(Channel::Control, &info);
        let reply = next_message(&mut client, Channel::Control).await;
        assert_eq!(reply.header.msg_type, "kernel_info_reply");
        // On control, ipykernel may wait forever for a thread that has ended.
        let shutdown = request("shutdown_request", &json!({"restart": false}));
        client.send(Channel::Shell, &shutdown);
        let reply = next_message(&mut client, Channel::Shell).await;
        assert_eq!(reply.header.msg_type, "shutdown_reply");
        wait_all_closed(&mut client).await;
        kernel.child.wait().unwrap();
    }
}

#[tokio::test]
async fn the_backlog_keeps_every_message_of_ipykernel() {
    const COUNT: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let mut kernel = start_ipykernel(dir.path(), &ipc(dir.path())).await;
    let options = ClientOptions {
        backlog_memory_bytes: 1 << 20,
        ..ClientOptions::default()
    };
    let mut client = ready_client(&kernel.connection, &options).await;
    // On a busy machine the kernel may be more than a thousand messages ahead of its client, and drops the rest. The
    // limit is lifted here for the current connections.
    run_cell(
        &mut client,
        "iopub = get_ipython().kernel.iopub_thread\n\
         iopub.schedule(lambda: setattr(iopub.socket, 'sndhwm', 0))",
    )
    .await;
    let code = format!(
        "k = get_ipython().kernel\n\
         for n in range({COUNT}):\n    k.send_response(k.iopub_socket, 'published', {{'number': n}})\n\
         open('done', 'w').close()"
    );
    let content = json!({"code": code, "silent": false, "allow_stdin": false});
    client.send(Channel::Shell, &request("execute_request", &content));
    within(async {
        while !dir.path().join("done").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let mut number = 0;
    while number < COUNT {
        let published = next_message(&mut client, Channel::Iopub).await;
        if published.header.msg_type == "published" {
            assert_eq!(published.value()["number"], number);
            number += 1;
        }
    }
    kernel.child.kill().unwrap();
    wait_all_closed(&mut client).await;
}
