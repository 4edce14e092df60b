//! Our client with kernels that are not ours: bare sockets of `ZeroMQ`'s own library, and ipykernel.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use cellwright_jupyter::connection::{Channel, Connection, Ports, Transport};
use cellwright_jupyter::frame::Frame;
use cellwright_jupyter::link::{Heard, Link, Options};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::server::{self, Server};
use serde_json::{Value, json};

use crate::support::{self, file, ipc, message, oracle, python, tcp, within};

/// A process that does not outlive its test.
struct Process {
    child: Child,
    connection: Connection,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().unwrap();
    }
}

fn libzmq(options: &[&str]) -> Process {
    let mut child = Command::new(python())
        .arg(oracle("libzmq.py"))
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let port = |name: &str| u16::try_from(said[name].as_u64().unwrap()).unwrap();
    let ip = said["ip"].as_str().unwrap().to_owned();
    let transport = match said["transport"].as_str() {
        Some("ipc") => Transport::Ipc { stem: ip.into() },
        _ => Transport::Tcp { ip },
    };
    Process {
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

/// Waits until all four channels are open, and what is told is heard.
async fn opened(connection: &Connection, options: &Options) -> Link {
    let mut link = Link::open(connection, options).unwrap();
    let mut open = 0;
    while open < 4 {
        match within(link.next()).await {
            Heard::Open(_) => open += 1,
            Heard::Closed(channel, error) => panic!("{channel:?}: {error:?}"),
            _ => {}
        }
    }
    is_heard(&mut link, "large", &json!({"size": 0})).await;
    link
}

/// Asks until what is told about it comes: only then it is known that we have subscribed, and before that it is
/// told to nobody. Gives back the last reply.
async fn is_heard(link: &mut Link, msg_type: &str, content: &Value) -> Message {
    let asking = || request(msg_type, content);
    let mut told = false;
    within(async {
        link.send(Channel::Shell, &asking());
        loop {
            match link.next().await {
                Heard::Message(Channel::Iopub, _) => told = true,
                Heard::Message(Channel::Shell, reply) if told => return *reply,
                Heard::Message(Channel::Shell, _) => link.send(Channel::Shell, &asking()),
                _ => {}
            }
        }
    })
    .await
}

/// Hears that every channel is closed.
async fn hears_the_end(link: &mut Link) {
    let mut missing = vec![
        Channel::Shell,
        Channel::Iopub,
        Channel::Stdin,
        Channel::Control,
    ];
    while !missing.is_empty() {
        if let Heard::Closed(channel, _) = within(link.next()).await {
            missing.retain(|other| *other != channel);
        }
    }
}

async fn all_channels(kernel: &mut Process) {
    let mut link = opened(&kernel.connection, &Options::default()).await;
    for channel in [Channel::Shell, Channel::Control] {
        for size in [0, 10, 255, 256, 32 * 1024, 1 << 20] {
            let mut asked = request("echo", &json!({"é": size}));
            asked.buffers = vec![Frame::from(vec![7; size]), Frame::default()];
            link.send(channel, &asked);
            let reply = message(&mut link, channel).await;
            assert_eq!(reply.header.msg_type, "echoed");
            assert_eq!(reply.parent_id(), asked.header.msg_id);
            assert_eq!(reply.value(), asked.value());
            assert!(reply.buffers == asked.buffers);
        }
    }
    let question = json!({"prompt": "? ", "password": false});
    link.send(Channel::Shell, &request("ask", &question));
    let asked = message(&mut link, Channel::Stdin).await;
    assert_eq!(asked.value(), question);
    let answer = asked.reply("input_reply", "us", &json!({"value": "ü"}));
    link.send(Channel::Stdin, &answer);
    let told = message(&mut link, Channel::Shell).await;
    assert_eq!(told.value(), json!({"value": "ü"}));
    let large = json!({"size": 50 << 20});
    link.send(Channel::Shell, &request("large", &large));
    let told = loop {
        let told = message(&mut link, Channel::Iopub).await;
        if told.buffers[0].size() > 1 {
            break told;
        }
    };
    assert!(told.buffers == [Bytes::from(vec![b'x'; 50 << 20])]);
    kernel.child.kill().unwrap();
    hears_the_end(&mut link).await;
}

#[tokio::test]
async fn all_channels_of_zeromq_over_tcp() {
    all_channels(&mut libzmq(&["pub"])).await;
}

#[tokio::test]
async fn all_channels_of_zeromq_through_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let stem = folder.path().join("kernel");
    all_channels(&mut libzmq(&[stem.to_str().unwrap()])).await;
}

#[tokio::test]
async fn everything_that_zeromq_tells_is_kept_while_nobody_takes_it() {
    const COUNT: usize = 100_000;
    let kernel = libzmq(&[]);
    let options = Options {
        // Most of it goes to the disk.
        memory_bytes: 1 << 20,
        ..Options::default()
    };
    let mut link = opened(&kernel.connection, &options).await;
    let tell = json!({"count": COUNT, "size": 200});
    link.send(Channel::Shell, &request("tell", &tell));
    link.send(Channel::Shell, &request("end", &json!({})));
    // It goes on while this thread does nothing at all; nothing is taken until the kernel has ended.
    let mut kernel = kernel;
    let waited = tokio::task::spawn_blocking(move || kernel.child.wait().unwrap());
    assert!(within(waited).await.unwrap().success());
    for number in 0..COUNT {
        let told = message(&mut link, Channel::Iopub).await;
        if told.header.msg_type == "large" {
            // Left over from the beginning.
            continue;
        }
        assert_eq!(told.value()["number"], number);
    }
}

#[tokio::test]
async fn the_last_message_arrives_although_its_sender_closes_at_once() {
    for channel in [Channel::Shell, Channel::Control] {
        let mut kernel = libzmq(&[]);
        let link = opened(&kernel.connection, &Options::default()).await;
        let mut last = request("last", &json!({"said": "last"}));
        last.buffers.push(Frame::from(vec![1; 8 << 20]));
        link.send(channel, &last);
        within(link.close()).await;
        let mut said = String::new();
        let mut stdout = kernel.stdout.take().unwrap();
        stdout.read_to_string(&mut said).unwrap();
        assert_eq!(said, format!("{{\"said\": \"last\"}} {}\n", 8 << 20));
    }
}

#[tokio::test]
async fn what_zeromq_says_last_is_heard_before_the_end() {
    let kernel = libzmq(&[]);
    let mut link = opened(&kernel.connection, &Options::default()).await;
    link.send(Channel::Control, &request("end", &json!({})));
    let reply = message(&mut link, Channel::Control).await;
    assert_eq!(reply.header.msg_type, "ended");
    hears_the_end(&mut link).await;
}

#[tokio::test]
async fn a_kernel_that_pings_us_keeps_us() {
    let kernel = libzmq(&["ping"]);
    let mut link = opened(&kernel.connection, &Options::default()).await;
    // Longer than it would wait for an answer.
    tokio::time::sleep(Duration::from_millis(600)).await;
    link.send(Channel::Shell, &request("echo", &json!({"still": "here"})));
    loop {
        match within(link.next()).await {
            Heard::Message(Channel::Shell, reply) => {
                assert_eq!(reply.value(), json!({"still": "here"}));
                break;
            }
            Heard::Closed(channel, error) => panic!("{channel:?} was closed: {error:?}"),
            _ => {}
        }
    }
}

/// ipykernel, at places that were free a moment ago.
async fn ipykernel(folder: &Path, any: &Connection) -> Process {
    let options = server::Options::default();
    let free = within(Server::bind(any, &options)).await.unwrap();
    let connection = free.connection().clone();
    drop(free);
    let path = folder.join("connection.json");
    std::fs::write(&path, file(&connection).to_string()).unwrap();
    let child = Command::new(python())
        .args(["-m", "ipykernel_launcher", "-f"])
        .arg(path)
        .current_dir(folder)
        .env("IPYTHONDIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Process {
        child,
        connection,
        stdout: None,
    }
}

/// Runs a cell: its reply, and what it told until it was idle.
async fn run(link: &mut Link, code: &str) -> (Value, Vec<Message>) {
    let content = json!({
        "code": code, "silent": false, "store_history": true, "user_expressions": {},
        "allow_stdin": true, "stop_on_error": true,
    });
    let asked = request("execute_request", &content);
    link.send(Channel::Shell, &asked);
    let (mut reply, mut idle, mut told) = (None, false, Vec::new());
    while reply.is_none() || !idle {
        let Heard::Message(channel, heard) = within(link.next()).await else {
            continue;
        };
        if heard.parent_id() != asked.header.msg_id {
            continue;
        }
        match channel {
            Channel::Shell => reply = Some(heard.value()),
            Channel::Stdin => {
                let answer = heard.reply("input_reply", "us", &json!({"value": "ü"}));
                link.send(Channel::Stdin, &answer);
            }
            _ if heard.value() == json!({"execution_state": "idle"}) => idle = true,
            _ => told.push(*heard),
        }
    }
    (reply.unwrap(), told)
}

async fn ready(connection: &Connection, options: &Options) -> Link {
    let mut link = Link::open(connection, options).unwrap();
    let reply = is_heard(&mut link, "kernel_info_request", &json!({})).await;
    assert_eq!(reply.value()["implementation"], "ipython");
    link
}

#[tokio::test]
async fn all_channels_of_ipykernel_over_tcp_and_through_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    for any in [tcp(), ipc(folder.path())] {
        let mut kernel = ipykernel(folder.path(), &any).await;
        let options = Options {
            heartbeat: Some(Duration::from_secs(1)),
            ..Options::default()
        };
        let mut link = ready(&kernel.connection, &options).await;
        let (reply, told) = run(&mut link, "print('é'); input('? ') + '!'").await;
        assert_eq!(reply["status"], "ok", "{reply}");
        let kinds: Vec<_> = told
            .iter()
            .map(|message| message.header.msg_type.as_str())
            .collect();
        assert_eq!(
            kinds,
            ["status", "execute_input", "stream", "execute_result"]
        );
        assert_eq!(told[2].value()["text"], "é\n");
        assert_eq!(told[3].value()["data"]["text/plain"], "'ü!'");
        let large =
            "from IPython.display import *; display({'text/plain': 'x' * 50_000_000}, raw=True)";
        let (_, told) = run(&mut link, large).await;
        let data = told.last().unwrap().value();
        assert_eq!(
            data["data"]["text/plain"].as_str().unwrap().len(),
            50_000_000
        );
        // Bytes that are no text, as Python passes them on.
        let (_, told) = run(&mut link, "print('a\\udcffb')").await;
        assert_eq!(told.last().unwrap().value()["text"], "a\u{fffd}b\n");
        let info = request("kernel_info_request", &json!({}));
        link.send(Channel::Control, &info);
        let reply = message(&mut link, Channel::Control).await;
        assert_eq!(reply.header.msg_type, "kernel_info_reply");
        // Asked over control, ipykernel may wait for ever for a thread of its own that has gone.
        let shutdown = request("shutdown_request", &json!({"restart": false}));
        link.send(Channel::Shell, &shutdown);
        let reply = message(&mut link, Channel::Shell).await;
        assert_eq!(reply.header.msg_type, "shutdown_reply");
        hears_the_end(&mut link).await;
        kernel.child.wait().unwrap();
    }
}

#[tokio::test]
async fn everything_that_ipykernel_tells_is_kept_while_nobody_takes_it() {
    const COUNT: usize = 10_000;
    let folder = tempfile::tempdir().unwrap();
    let mut kernel = ipykernel(folder.path(), &ipc(folder.path())).await;
    let options = Options {
        memory_bytes: 1 << 20,
        ..Options::default()
    };
    let mut link = ready(&kernel.connection, &options).await;
    // A kernel drops what is more than a thousand messages ahead of its client, as one on a busy
    // machine may be. Lifting that counts for those who are connected now, and for nobody else.
    run(
        &mut link,
        "iopub = get_ipython().kernel.iopub_thread\n\
         iopub.schedule(lambda: setattr(iopub.socket, 'sndhwm', 0))",
    )
    .await;
    let code = format!(
        "k = get_ipython().kernel\n\
         for n in range({COUNT}):\n    k.send_response(k.iopub_socket, 'told', {{'number': n}})\n\
         open('done', 'w').close()"
    );
    let content = json!({"code": code, "silent": false, "allow_stdin": false});
    link.send(Channel::Shell, &request("execute_request", &content));
    within(async {
        while !folder.path().join("done").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let mut number = 0;
    while number < COUNT {
        let told = message(&mut link, Channel::Iopub).await;
        if told.header.msg_type == "told" {
            assert_eq!(told.value()["number"], number);
            number += 1;
        }
    }
    kernel.child.kill().unwrap();
    hears_the_end(&mut link).await;
}
