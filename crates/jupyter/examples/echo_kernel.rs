//! A kernel that echoes its cells: the smallest one that is complete enough for any client.
//!
//! `echo_kernel CONNECTION_FILE`. A cell `print TEXT` writes to stdout, `warn TEXT` writes to stderr, `ask PROMPT` requests
//! a line of input and prints it, `fail TEXT` raises an error, `flood COUNT` prints the numbers up to COUNT in one message
//! each, `wait` waits for an interrupt. Any other cell is its own result.

use std::error::Error;
use std::path::Path;

use cellwright_jupyter::connection::{Channel, Connection, Ports, Transport};
use cellwright_jupyter::message::Message;
use cellwright_jupyter::publisher::{Publisher, TextStream};
use cellwright_jupyter::server::{Server, ServerEvent, ServerOptions};
use serde_json::{Value, json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os()
        .nth(1)
        .ok_or("usage: echo_kernel CONNECTION_FILE")?;
    let connection = read_connection(Path::new(&file))?;
    let server = Server::bind(&connection, &ServerOptions::default()).await?;
    let publisher = server.publisher();
    EchoKernel {
        server,
        publisher,
        count: 0,
    }
    .run()
    .await;
    Ok(())
}

fn read_connection(path: &Path) -> Result<Connection, Box<dyn Error>> {
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

struct EchoKernel {
    server: Server,
    publisher: Publisher,
    count: u64,
}

/// The next step of the kernel after a request.
enum AfterRequest {
    Continue,
    Interrupted,
    Shutdown,
}

impl EchoKernel {
    async fn run(mut self) {
        loop {
            let ServerEvent::Request(channel, request) = self.server.next().await else {
                continue;
            };
            if let AfterRequest::Shutdown = self.serve(channel, &request).await {
                break;
            }
        }
        self.server.close().await;
    }

    async fn serve(&mut self, channel: Channel, request: &Message) -> AfterRequest {
        self.publisher.publish_status(request, "busy");
        let mut after = AfterRequest::Continue;
        match request.header.msg_type.as_str() {
            "kernel_info_request" => {
                self.reply(channel, request, "kernel_info_reply", &kernel_info());
            }
            "execute_request" => after = self.execute(channel, request).await,
            "interrupt_request" => {
                self.reply(
                    channel,
                    request,
                    "interrupt_reply",
                    &json!({"status": "ok"}),
                );
                after = AfterRequest::Interrupted;
            }
            "shutdown_request" => {
                let restart = &request.value()["restart"];
                let content = json!({"status": "ok", "restart": restart});
                self.reply(channel, request, "shutdown_reply", &content);
                after = AfterRequest::Shutdown;
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
        self.publisher.publish_status(request, "idle");
        after
    }

    async fn execute(&mut self, channel: Channel, request: &Message) -> AfterRequest {
        let content = request.value();
        let code = content["code"].as_str().unwrap_or_default();
        self.count += 1;
        let count = self.count;
        let input = json!({"code": code, "execution_count": count});
        self.publisher.publish_new(request, "execute_input", &input);
        let (command, rest) = code.split_once(' ').unwrap_or((code, ""));
        let mut after = AfterRequest::Continue;
        let mut error = None;
        match command {
            "print" => self
                .publisher
                .publish_text(request, TextStream::Stdout, rest),
            "warn" => self
                .publisher
                .publish_text(request, TextStream::Stderr, rest),
            "fail" => error = Some(("Failure", rest.to_owned())),
            "flood" => {
                for number in 0..rest.parse().unwrap_or(0) {
                    let text = format!("{number}\n");
                    self.publisher
                        .publish_text(request, TextStream::Stdout, &text);
                    self.publisher.flush();
                }
            }
            "ask" | "wait" => {
                let can_wait =
                    command == "wait" || self.server.request_input(request, rest, false).is_ok();
                let answer = if can_wait {
                    self.wait_for_input().await
                } else {
                    Err(AfterRequest::Continue)
                };
                match answer {
                    Ok(line) => self
                        .publisher
                        .publish_text(request, TextStream::Stdout, &line),
                    Err(instead) => {
                        error = Some(("KeyboardInterrupt", String::new()));
                        after = instead;
                    }
                }
            }
            _ => {
                let data = json!({"text/plain": code});
                let result = json!({"data": data, "metadata": {}, "execution_count": count});
                self.publisher
                    .publish_new(request, "execute_result", &result);
            }
        }
        let reply = if let Some((ename, evalue)) = error {
            let error = json!({"ename": ename, "evalue": evalue, "traceback": [ename]});
            self.publisher.publish_new(request, "error", &error);
            json!({"status": "error", "execution_count": count,
                   "ename": ename, "evalue": evalue, "traceback": [ename]})
        } else {
            json!({"status": "ok", "execution_count": count, "payload": [], "user_expressions": {}})
        };
        self.reply(channel, request, "execute_reply", &reply);
        after
    }

    /// Waits for an input reply on stdin. Handles requests on control meanwhile, which may end the wait.
    async fn wait_for_input(&mut self) -> Result<String, AfterRequest> {
        loop {
            let ServerEvent::Request(channel, request) = self.server.next().await else {
                continue;
            };
            match channel {
                Channel::Stdin => {
                    let value = &request.value()["value"];
                    return Ok(value.as_str().unwrap_or_default().to_owned());
                }
                Channel::Control => match Box::pin(self.serve(channel, &request)).await {
                    AfterRequest::Continue => {}
                    AfterRequest::Interrupted => return Err(AfterRequest::Continue),
                    AfterRequest::Shutdown => return Err(AfterRequest::Shutdown),
                },
                // One cell at a time. A real kernel would queue the request.
                _ => {}
            }
        }
    }

    fn reply(&self, channel: Channel, request: &Message, msg_type: &str, content: &Value) {
        // A client that has disconnected gets no reply.
        self.server.reply(channel, request, msg_type, content).ok();
    }
}

fn kernel_info() -> Value {
    json!({
        "status": "ok",
        "protocol_version": "5.4",
        "implementation": "echo",
        "implementation_version": "1.0",
        "language_info": {
            "name": "echo", "version": "1.0", "mimetype": "text/plain", "file_extension": ".txt",
        },
        "banner": "Echoes its cells.",
        "help_links": [],
    })
}
