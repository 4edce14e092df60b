//! Others use a kernel that we have started.

use std::process::Command;

use cellwright_jupyter::kernelspec::Kernelspec;
use cellwright_kernel::{Ending, Kernel};
use serde_json::json;

use super::Room;
use super::other::Other;
use crate::support::{python, run};

#[tokio::test]
async fn jupyters_own_client_finds_our_kernel_and_shares_it() {
    let room = Room::new();
    let mut kernel = room.start(Kernelspec::ipykernel(&python())).await.unwrap();
    let mut other = Other::new(&room.runtime());
    let file = other.ask(&json!({"do": "attach"}));
    assert!(
        file.as_str()
            .unwrap()
            .starts_with(room.runtime().to_str().unwrap())
    );
    let (_, outcome) = run(&mut kernel, "ours = 20").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    let told = other.run("theirs = ours + 1\nprint(theirs)");
    assert_eq!(told, ("ok".to_owned(), "21\n".to_owned()));
    let (heard, _) = run(&mut kernel, "theirs + 1").await;
    assert_eq!(heard.line(), "=[22]");

    // Theirs runs, prints and fails while ours waits for its turn. Nothing is mixed, and ours runs.
    for _ in 0..5 {
        let code = "import os, time\nprint('theirs')\nopen('busy', 'w').close()\ntime.sleep(0.3)\nprint('theirs')\n1 / 0";
        let id = other.send(code);
        let busy = room.path().join("busy");
        assert!(
            crate::support::eventually(std::time::Duration::from_secs(20), || busy.exists()).await
        );
        let (heard, outcome) = run(&mut kernel, "for i in range(50): print('ours', i)\nours").await;
        assert_eq!(
            outcome.unwrap().ending,
            Ending::Completed,
            "{}",
            heard.line()
        );
        let lines: Vec<String> = (0..50).map(|i| format!("ours {i}\\n")).collect();
        let lines = lines.concat();
        assert_eq!(heard.line(), format!("out:\"{lines}\" =[20]"));
        let (status, said) = other.wait(&id);
        assert_eq!(
            (status.as_str(), said.as_str()),
            ("error", "theirs\ntheirs\n")
        );
        std::fs::remove_file(busy).unwrap();
        // A question is not dropped either.
        let question = cellwright_kernel::Question::Variables { limit: 50 };
        let id = other.send("1 / 0");
        let answer = kernel
            .ask(&question, &cellwright_kernel::Stop::never())
            .await
            .unwrap();
        assert!(answer.to_string().contains("theirs"), "{answer}");
        other.wait(&id);
    }
    assert_eq!(kernel.take_late(), []);
    assert_eq!(kernel.take_remarks(), []);
}

/// Drives `jupyter console` as somebody at a terminal does.
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
    let room = Room::new();
    let mut kernel = room.start(Kernelspec::ipykernel(&python())).await.unwrap();
    run(&mut kernel, "ours = 20").await.1.unwrap();
    let file = std::fs::read_dir(room.runtime()).unwrap().next().unwrap();
    let output = Command::new(python())
        .args(["-c", TERMINAL])
        .arg(file.unwrap().file_name())
        .env("JUPYTER_RUNTIME_DIR", room.runtime())
        .env("IPYTHONDIR", room.path())
        .current_dir(room.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let (heard, outcome) = run(&mut kernel, "theirs").await;
    assert_eq!(outcome.unwrap().ending, Ending::Completed);
    assert_eq!(heard.line(), "=['of the console']");
}
