//! A kernel that gives back what it is told: the smallest one that is complete enough for any client.
//!
//! `echo_kernel CONNECTION_FILE`. A cell `print TEXT` prints, `warn TEXT` complains, `ask PROMPT` asks for a
//! line and prints it, `fail TEXT` raises, `flood COUNT` prints so many numbers, each in a message of its
//! own, `wait` waits for an interrupt; anything else is its own result.

use std::error::Error;
use std::path::Path;

use cellwright_jupyter::connection::{Channel, Connection, Ports, Transport};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::publisher::{Publisher, TextStream};
use cellwright_jupyter::server::{Heard, Options, Server};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os()
        .nth(1)
        .ok_or("a connection file is needed")?;
    let connection = read(Path::new(&file))?;
    let server = Server::bind(&connection, &Options::default()).await?;
    let publisher = server.publisher();
    Kernel {
        server,
        publisher,
        count: 0,
    }
    .run()
    .await;
    Ok(())
}

fn read(path: &Path) -> Result<Connection, Box<dyn Error>> {
    let file: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let text = |name: &str| file[name].as_str().unwrap_or_default().to_owned();
    let port = |name: &str| u16::try_from(file[name].as_u64().unwrap_or_default());
    let transport = match file["transport"].as_str() {
        Some("ipc") => Transport::Ipc {
            stem: text("ip").into(),
        },
        _ => Transport::Tcp { ip: text("ip") },
    };
    Ok(Connection {
        transport,
        ports: Ports {
            shell: port("shell_port")?,
            iopub: port("iopub_port")?,
            stdin: port("stdin_port")?,
            control: port("control_port")?,
            hb: port("hb_port")?,
        },
        key: text("key"),
        kernel_name: None,
    })
}

struct Kernel {
    server: Server,
    publisher: Publisher,
    count: u64,
}

/// What is to be done after a request.
enum Then {
    Go,
    Interrupted,
    End,
}

impl Kernel {
    async fn run(mut self) {
        loop {
            let Heard::Request(channel, request) = self.server.next().await else {
                continue;
            };
            if let Then::End = self.serve(channel, &request).await {
                break;
            }
        }
        self.server.close().await;
    }

    async fn serve(&mut self, channel: Channel, request: &Message) -> Then {
        self.publisher.status(request, "busy");
        let mut then = Then::Go;
        match request.header.msg_type.as_str() {
            "kernel_info_request" => self.reply(channel, request, "kernel_info_reply", &info()),
            "execute_request" => then = self.execute(channel, request).await,
            "interrupt_request" => {
                self.reply(
                    channel,
                    request,
                    "interrupt_reply",
                    &json!({"status": "ok"}),
                );
                then = Then::Interrupted;
            }
            "shutdown_request" => {
                let restart = &request.value()["restart"];
                let content = json!({"status": "ok", "restart": restart});
                self.reply(channel, request, "shutdown_reply", &content);
                then = Then::End;
            }
            "is_complete_request" => {
                let content = json!({"status": "complete"});
                self.reply(channel, request, "is_complete_reply", &content);
            }
            "comm_info_request" => {
                let content = json!({"status": "ok", "comms": {}});
                self.reply(channel, request, "comm_info_reply", &content);
            }
            "history_request" => {
                let content = json!({"status": "ok", "history": []});
                self.reply(channel, request, "history_reply", &content);
            }
            _ => {}
        }
        self.publisher.status(request, "idle");
        then
    }

    async fn execute(&mut self, channel: Channel, request: &Message) -> Then {
        let content = request.value();
        let code = content["code"].as_str().unwrap_or_default();
        self.count += 1;
        let count = self.count;
        let input = json!({"code": code, "execution_count": count});
        self.publisher.tell(request, "execute_input", &input);
        let (word, rest) = code.split_once(' ').unwrap_or((code, ""));
        let mut then = Then::Go;
        let mut error = None;
        match word {
            "print" => self.publisher.text(request, TextStream::Stdout, rest),
            "warn" => self.publisher.text(request, TextStream::Stderr, rest),
            "fail" => error = Some(("Failure", rest.to_owned())),
            "flood" => {
                for number in 0..rest.parse().unwrap_or(0) {
                    let text = format!("{number}\n");
                    self.publisher.text(request, TextStream::Stdout, &text);
                    self.publisher.flush();
                }
            }
            "ask" | "wait" => {
                let asked = word == "wait" || self.server.ask(request, rest, false).is_ok();
                let answer = if asked {
                    self.answer().await
                } else {
                    Err(Then::Go)
                };
                match answer {
                    Ok(line) => self.publisher.text(request, TextStream::Stdout, &line),
                    Err(instead) => {
                        error = Some(("KeyboardInterrupt", String::new()));
                        then = instead;
                    }
                }
            }
            _ => {
                let data = json!({"text/plain": code});
                let result = json!({"data": data, "metadata": {}, "execution_count": count});
                self.publisher.tell(request, "execute_result", &result);
            }
        }
        let reply = if let Some((ename, evalue)) = error {
            let error = json!({"ename": ename, "evalue": evalue, "traceback": [ename]});
            self.publisher.tell(request, "error", &error);
            json!({"status": "error", "execution_count": count,
                   "ename": ename, "evalue": evalue, "traceback": [ename]})
        } else {
            json!({"status": "ok", "execution_count": count, "payload": [], "user_expressions": {}})
        };
        self.reply(channel, request, "execute_reply", &reply);
        then
    }

    /// Waits for an answer on stdin. Requests on control are served meanwhile, and may end it.
    async fn answer(&mut self) -> Result<String, Then> {
        loop {
            let Heard::Request(channel, request) = self.server.next().await else {
                continue;
            };
            match channel {
                Channel::Stdin => {
                    let value = &request.value()["value"];
                    return Ok(value.as_str().unwrap_or_default().to_owned());
                }
                Channel::Control => match Box::pin(self.serve(channel, &request)).await {
                    Then::Go => {}
                    Then::Interrupted => return Err(Then::Go),
                    Then::End => return Err(Then::End),
                },
                // One cell at a time; a kernel that is one would remember it.
                _ => {}
            }
        }
    }

    fn reply(&self, channel: Channel, request: &Message, msg_type: &str, content: &Value) {
        // A client that has gone wants no answer.
        self.server.reply(channel, request, msg_type, content).ok();
    }
}

fn info() -> Value {
    json!({
        "status": "ok",
        "protocol_version": "5.4",
        "implementation": "echo",
        "implementation_version": "1.0",
        "language_info": {
            "name": "echo", "version": "1.0", "mimetype": "text/plain", "file_extension": ".txt",
        },
        "banner": "It gives back what it is told.",
        "help_links": [],
    })
}
