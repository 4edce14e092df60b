//! Unusual messages during a cell. The kernel survives all of them.

use super::{GOOD_CELL, GOOD_CELL_SUMMARY, HostileKernel};

/// Runs each script on one kernel, with a well-behaved cell after each.
async fn run_scripts(cases: &[(&str, &str)]) {
    let mut kernel = HostileKernel::start("").await;
    for (script, expected) in cases {
        assert_eq!(kernel.run(script).await, *expected, "{script}");
        assert_eq!(
            kernel.run(GOOD_CELL).await,
            GOOD_CELL_SUMMARY,
            "after {script}"
        );
    }
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn unsigned_and_malformed_messages_are_rejected_with_a_notice() {
    run_scripts(&[
        (
            "begin(); out('no', key=b'guess'); out('yes'); end()",
            "out:\"yes\" | done | messages_refused",
        ),
        (
            "begin(); out('no', key=b''); f = out('yes'); f[2] = b''; raw('iopub', encode_message(f)); end()",
            "out:\"yes\" | done | messages_refused",
        ),
        (
            "begin(); once = out('once'); raw('iopub', encode_message(once) * 3); end()",
            "out:\"once\" | done | messages_refused",
        ),
        // A replay of a message of an earlier cell.
        (
            "begin(); raw('iopub', encode_message(once)); end()",
            "done | messages_refused",
        ),
        (
            "begin(); reply({'status': 'error', 'ename': 'No'}, key=b'guess'); out('yes'); end()",
            "out:\"yes\" | done | messages_refused",
        ),
        (
            "begin(); [raw('iopub', encode_message(f)) for f in ([b''], [b'junk'], [b'<IDS|MSG>'], [b'x', b'<IDS|MSG>', b'', b'{}'])]; end()",
            "done | messages_refused",
        ),
        (
            "begin(); [out('no', header=h) for h in (b'', b'not json', b'[]', b'null', b'{}', b'{\"msg_type\": 5}', b'\\xff')]; out('yes'); end()",
            "out:\"yes\" | done | messages_refused",
        ),
    ])
    .await;
}

#[tokio::test]
async fn messages_of_other_clients_are_ignored() {
    run_scripts(&[
        (
            "begin(); [out('no', parent_header=c) for c in ({'msg_id': 'other'}, b'{}', b'null', b'[]', b'junk', b'', {'msg_id': 5})]; end()",
            "done",
        ),
        // Messages of other clients do not end a cell.
        (
            "begin(); status('idle', parent_header={}); status('idle', parent_header={'msg_id': 'other'}); reply({'status': 'error'}, parent_header={}); out('yes'); end()",
            "out:\"yes\" | done",
        ),
        (
            "begin(); [status(s, parent_header={}) for s in ('restarting', 'dead', 'starting', 'terminating', 'idle', '', None)]; out('yes'); end()",
            "out:\"yes\" | done",
        ),
        (
            "begin(); [status(s) for s in ('restarting', 'dead', None, 5, [], 'busy')]; out('yes'); end()",
            "out:\"yes\" | done",
        ),
    ])
    .await;
}

#[tokio::test]
async fn messages_are_accepted_in_any_order() {
    run_scripts(&[
        ("begin(); out('a'); reply(); reply({'status': 'error', 'ename': 'E'}); status('idle')", "out:\"a\" | done"),
        ("begin(); out('a'); end(); status('idle'); reply()", "out:\"a\" | done"),
        ("reply(); begin(); out('a'); status('idle')", "out:\"a\" | done"),
        ("out('a'); status('idle'); reply()", "out:\"a\" | done"),
        ("begin(); status('idle'); reply(); status('busy')", "done"),
        // On the wrong channels.
        (
            "begin(); send('iopub', 'execute_reply', {'status': 'error'}); [send(c, 'stream', {'name': 'stdout', 'text': 'no'}) for c in ('shell', 'control', 'stdin')]; send('control', 'execute_reply', {'status': 'error'}); out('yes'); end()",
            "out:\"yes\" | done",
        ),
        // Unknown message types.
        (
            "begin(); [send(c, k, {}) for c in ('shell', 'iopub', 'control', 'stdin') for k in ('future', 'execute_request', 'comm_close', 'debug_event', 'iopub_welcome', '\\u00e9')]; end()",
            "done",
        ),
    ])
    .await;
}

#[tokio::test]
async fn text_after_the_end_of_its_cell_is_late_output() {
    use cellwright_kernel::Kernel as _;
    let mut kernel = HostileKernel::start("").await;
    let script = "begin(); end(); time.sleep(0.4); out('late'); send('iopub', 'display_data', {'data': {'text/plain': 'shown'}}); send('iopub', 'error', {'ename': 'E'})";
    assert_eq!(kernel.run(script).await, "done");
    kernel.assert_works().await;
    let late = kernel.jupyter.take_late_text();
    let texts: Vec<_> = late
        .iter()
        .map(|late| (late.request, String::from_utf8_lossy(&late.bytes)))
        .collect();
    assert_eq!(texts, [(1, "lateshown\n".into())]);
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn invalid_contents_are_read_leniently() {
    run_scripts(&[
        // Errors.
        ("begin(); send('iopub', 'error', {'ename': 'E', 'evalue': None}); end({'status': 'error'})", "!E | raised \"E\" \"\""),
        ("begin(); send('iopub', 'error', {'ename': 'E', 'evalue': 5, 'traceback': 'a\\nb'}); end({'status': 'error'})", "!E | raised \"E\" \"5\""),
        ("begin(); send('iopub', 'error', {'traceback': [1, None, 'x']}); end({'status': 'error'})", "!Error | raised \"Error\" \"\""),
        ("begin(); send('iopub', 'error', b'junk'); end({'status': 'error', 'ename': 'E'})", "!Error | raised \"Error\" \"\""),
        ("begin(); end({'status': 'error', 'ename': 'E', 'evalue': 'v'})", "!E | raised \"E\" \"v\""),
        ("begin(); end({'status': 'error'})", "!Error | raised \"Error\" \"\""),
        // An invalid reply does not hide an error that was published.
        ("begin(); send('iopub', 'error', {'ename': 'E', 'evalue': 'v'}); end(b'junk')", "!E | raised \"E\" \"v\""),
        ("begin(); out('a'); end(b'junk')", "out:\"a\" | done"),
        ("begin(); end({'status': 5})", "done"),
        // Code that the kernel aborted.
        ("begin(); end({'status': 'aborted'})", "!Interrupted | raised \"Interrupted\" \"the kernel aborted the cell\""),
        ("status('busy'); end({'status': 'aborted'})", "the kernel could not answer: it keeps aborting this cell because another client's cells fail"),
        ("status('busy'); end({'status': 'abort'})", "!Interrupted | raised \"Interrupted\" \"the kernel aborted the cell\""),
        // Streams.
        ("begin(); out('a', name='stdfoo'); out('b', name=None); out('c', name='stderr'); end()", "out:\"ab\" err:\"c\" | done"),
        ("begin(); send('iopub', 'stream', {'name': 'stdout'}); send('iopub', 'stream', {}); send('iopub', 'stream', b'junk'); end()", "done"),
        ("begin(); out(None); out(5); out({}); out(''); out(['a', 'b', 5]); end()", "out:\"ab\" | done"),
        ("begin(); send('iopub', 'stream', b'{\"name\": \"stdout\", \"text\": \"\\xff\\xc3\"}'); end()", "out:\"\u{fffd}\u{fffd}\" | done"),
        // Displays.
        ("begin(); [send('iopub', 'display_data', c) for c in ({}, {'data': None}, {'data': {'text/plain': None}}, {'data': []}, b'junk')]; end()", "[] [] [] [] [] | done"),
        ("begin(); send('iopub', 'display_data', {'data': {'text/plain': 'a', 'application/json': {'a': [{'b': None}]}}, 'metadata': None, 'transient': None}); end()", "[a] | done"),
        ("begin(); send('iopub', 'display_data', b'{\"data\": {\"text/plain\": NaN, \"application/json\": {\"x\": NaN}}}'); end()", "[NaN] | done"),
        ("begin(); send('iopub', 'display_data', {'data': {'text/plain': ['a', 'b']}}); end()", "[ab] | done"),
        ("begin(); send('iopub', 'display_data', b'{\"data\": {\"text/plain\": \"x\\xff\"}}'); end()", "[x\u{fffd}] | done"),
        ("begin(); send('iopub', 'update_display_data', {'data': {'text/plain': 'a'}, 'transient': {'display_id': 'unknown'}}); send('iopub', 'update_display_data', {'data': {'text/plain': 'a'}}); end()", "update[a] | done"),
        ("begin(); send('iopub', 'clear_output', {}); send('iopub', 'clear_output', {'wait': 'yes'}); send('iopub', 'clear_output', b'junk'); end()", "clear(false) clear(false) clear(false) | done"),
        // JSON that is nested too deeply.
        ("deep = b'[' * 100000 + b']' * 100000; begin(); [send('iopub', k, b'{\"data\": {\"application/json\": ' + deep + b'}, \"text\": ' + deep + b', \"evalue\": ' + deep + b'}') for k in ('display_data', 'stream', 'status', 'clear_output')]; out('a', parent_header=deep); out('b', header=deep); end()", "[] clear(false) | done | messages_refused"),
        ("begin(); end(b'{\"status\": \"error\", \"x\": ' + deep + b'}')", "done"),
        // Payloads of a reply.
        ("begin(); end({'status': 'ok', 'payload': [{'source': 'page', 'data': {'text/plain': 'help'}}, {'source': 'set_next_input', 'text': 'x'}, {'source': 'ask_exit'}, {'source': 'future'}, {}, None, 5]})", "show_only(true) [help] show_only(false) | done"),
        ("begin(); end({'status': 'ok', 'payload': 5})", "done"),
        ("begin(); end({'status': 'ok', 'payload': [{'source': 'page'}, {'source': 'page', 'data': 5}]})", "done"),
        // Widgets and binary buffers.
        ("begin(); [send('iopub', k, {'comm_id': 'c', 'data': {}}, buffers=[bytes(10000)] * 10) for k in ('comm_open', 'comm_msg', 'comm_close') * 50]; end()", "done"),
        ("begin(); out('a', buffers=[b''] * 10000); out('b', buffers=[b'x'] * 10000); end()", "out:\"ab\" | done"),
    ])
    .await;
}

#[tokio::test]
async fn an_invalid_execution_count_is_ignored() {
    use cellwright_kernel::{Request, StopSignal};
    let mut kernel = HostileKernel::start("").await;
    for (count, expected) in [
        ("None", None),
        ("'7'", None),
        ("2 ** 40", None),
        ("-1", None),
        ("1.5", None),
        ("7", Some(7)),
    ] {
        let script = format!(
            "status('busy'); send('iopub', 'execute_input', {{'execution_count': {count}}}); send('iopub', 'execute_result', {{'execution_count': {count}, 'data': {{'text/plain': 'r'}}}}); end({{'status': 'ok', 'execution_count': {count}}})"
        );
        let request = Request::new(script);
        let (recorded, outcome) =
            super::run_request(&mut kernel.jupyter, &request, &StopSignal::never()).await;
        assert_eq!(outcome.unwrap().execution_count, expected, "{count}");
        assert_eq!(recorded.summary(), "=[r]");
    }
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn fifty_megabytes_in_one_message_arrive_completely() {
    let mut kernel = HostileKernel::start("").await;
    let request = cellwright_kernel::Request::new("begin(); out('é' * 25_000_000); end()");
    let (recorded, outcome) = super::run_request(
        &mut kernel.jupyter,
        &request,
        &cellwright_kernel::StopSignal::never(),
    )
    .await;
    assert_eq!(super::outcome_summary(&outcome), "done");
    assert!(recorded.stdout() == "é".repeat(25_000_000).as_bytes());
    kernel.assert_works().await;
    kernel.assert_shuts_down().await;
}

#[tokio::test]
async fn input_requests_are_accepted_in_any_form() {
    use cellwright_kernel::{InputAnswers, Request, Stdin, StopSignal};
    let mut kernel = HostileKernel::start_with_message_interrupts("").await;
    let answered = [
        (
            "begin(); request_input('?'); out(answers.get()); end()",
            "out:\"one\" | done",
        ),
        (
            "begin(); request_input('?'); request_input('?'); out(answers.get() + answers.get()); end()",
            "out:\"onetwo\" | done",
        ),
        // An input request without a parent belongs to the running cell.
        (
            "begin(); request_input('?', parent_header={}); out(answers.get()); end()",
            "out:\"one\" | done",
        ),
        (
            "begin(); send('stdin', 'input_request', {'prompt': '?', 'password': True}); out(answers.get()); end()",
            "out:\"one\" | done",
        ),
        (
            "begin(); send('stdin', 'input_request', b'junk'); out(answers.get()); end()",
            "out:\"one\" | done",
        ),
    ];
    for (script, expected) in answered {
        let request = Request {
            stdin: Stdin::Answers(InputAnswers::from_iter(["one", "two"])),
            ..Request::new(script)
        };
        assert_eq!(
            kernel.run_request(&request, &StopSignal::never()).await,
            expected,
            "{script}"
        );
        kernel.assert_works().await;
    }
    let value = "input() was called (prompt: '?') but no answer is available; set the value in code, or pass the answer with the call (`answer`)";
    let raised = format!(
        "refused:\"?\" !StdinNotImplementedError | raised \"StdinNotImplementedError\" {value:?}"
    );
    for script in [
        "begin(); request_input('?'); answers.get()",
        "begin(); request_input('?', parent_header={}); answers.get()",
        // It swallows the first interrupt.
        "begin(); request_input('?')\ntry: answers.get()\nexcept KeyboardInterrupt: interruptible = True; answers.get()",
    ] {
        assert_eq!(kernel.run(script).await, raised, "{script}");
        kernel.assert_works().await;
    }
    // The code catches the interrupt and fails later for its own reason.
    let summary = kernel.run("begin(); request_input('?')\ntry: answers.get()\nexcept KeyboardInterrupt: out('caught'); time.sleep(1); end({'status': 'error', 'ename': 'ValueError', 'evalue': 'v'})").await;
    assert_eq!(
        summary,
        "refused:\"?\" out:\"caught\" !ValueError | raised \"ValueError\" \"v\""
    );
    kernel.assert_works().await;
    // An input request after the reply causes no interrupt.
    let summary = kernel
        .run("begin(); reply(); request_input('?'); time.sleep(0.3); status('idle')")
        .await;
    assert_eq!(summary, "refused:\"?\" | done");
    kernel.assert_works().await;
    kernel.assert_shuts_down().await;
}
