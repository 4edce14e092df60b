//! Other clients use a kernel that the backend has started.

use std::process::Command;

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::{Ending, Kernel};
use serde_json::json;

use super::KernelSandbox;
use super::jupyter_client::JupyterClient;
use crate::support::{python, run_code};

#[tokio::test]
async fn the_jupyter_client_finds_and_shares_the_kernel() {
    let sandbox = KernelSandbox::new();
    let mut kernel = sandbox
        .start(Kernelspec::ipykernel(&python()))
        .await
        .unwrap();
    let mut client = JupyterClient::new(&sandbox.runtime());
    let file = client.command(&json!({"do": "attach"}));
    assert!(
        file.as_str()
            .unwrap()
            .starts_with(sandbox.runtime().to_str().unwrap())
    );
    let (_, outcome) = run_code(&mut kernel, "ours = 20").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let result = client.run("theirs = ours + 1\nprint(theirs)");
    assert_eq!(result, ("ok".to_owned(), "21\n".to_owned()));
    let (recorded, _) = run_code(&mut kernel, "theirs + 1").await;
    assert_eq!(recorded.summary(), "=[22]");

    // A cell of the other client runs, prints and fails while a cell of the host is queued. The outputs are not mixed, and the
    // queued cell runs.
    for _ in 0..5 {
        let code = "import os, time\nprint('theirs')\nopen('busy', 'w').close()\ntime.sleep(0.3)\nprint('theirs')\n1 / 0";
        let id = client.send(code);
        let busy = sandbox.path().join("busy");
        assert!(
            crate::support::eventually(std::time::Duration::from_secs(20), || busy.exists()).await
        );
        let (recorded, outcome) =
            run_code(&mut kernel, "for i in range(50): print('ours', i)\nours").await;
        assert_eq!(
            outcome.unwrap().ending,
            Ending::Completed,
            "{}",
            recorded.summary()
        );
        let lines: Vec<String> = (0..50).map(|i| format!("ours {i}\\n")).collect();
        let lines = lines.concat();
        assert_eq!(recorded.summary(), format!("out:\"{lines}\" =[20]"));
        let (status, output) = client.wait(&id);
        assert_eq!(
            (status.as_str(), output.as_str()),
            ("error", "theirs\ntheirs\n")
        );
        std::fs::remove_file(busy).unwrap();
        // A query is not lost either.
        let query = cellwright_kernel::KernelQuery::Variables { limit: 50 };
        let id = client.send("1 / 0");
        let answer = kernel
            .query(&query, &cellwright_kernel::StopSignal::never())
            .await
            .unwrap();
        assert!(answer.to_string().contains("theirs"), "{answer}");
        client.wait(&id);
    }
    assert_eq!(kernel.take_late_text(), []);
    assert_eq!(kernel.take_notices(), []);
}

/// Drives `jupyter console` in a terminal.
const TERMINAL: &str = "
import sys, pexpect
child = pexpect.spawn(sys.executable, ['-m', 'jupyter_console', '--existing', sys.argv[1], '--simple-prompt'],
                      encoding='utf-8', timeout=60, dimensions=(40, 200))
child.expect(r'In \\[\\d+\\]: ')
child.sendline('print(\"it is\", ours * 2)')
child.expect('it is 40')
child.expect(r'In \\[\\d+\\]: ')
child.sendline('theirs = \"of the console\"')
child.expect(r'In \\[\\d+\\]: ')
child.sendline('exit(keep_kernel=True)')
child.sendeof()
child.expect(pexpect.EOF)
";

#[tokio::test]
async fn jupyter_console_shows_the_same_state() {
    let sandbox = KernelSandbox::new();
    let mut kernel = sandbox
        .start(Kernelspec::ipykernel(&python()))
        .await
        .unwrap();
    run_code(&mut kernel, "ours = 20").await.1.unwrap();
    let file = std::fs::read_dir(sandbox.runtime())
        .unwrap()
        .next()
        .unwrap();
    let output = Command::new(python())
        .args(["-c", TERMINAL])
        .arg(file.unwrap().file_name())
        .env("JUPYTER_RUNTIME_DIR", sandbox.runtime())
        .env("IPYTHONDIR", sandbox.path())
        .current_dir(sandbox.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let (recorded, outcome) = run_code(&mut kernel, "theirs").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(recorded.summary(), "=['of the console']");
}
