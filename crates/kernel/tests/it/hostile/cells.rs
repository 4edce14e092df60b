//! What kernels say while a cell runs, none of which ends them.

use super::{FINE, FINE_TOLD, Odd};

/// Runs each script on one kernel, with a cell as it should be after each.
async fn all(cases: &[(&str, &str)]) {
    let mut odd = Odd::start("").await;
    for (script, told) in cases {
        assert_eq!(odd.told(script).await, *told, "{script}");
        assert_eq!(odd.told(FINE).await, FINE_TOLD, "after {script}");
    }
    odd.goes().await;
}

#[tokio::test]
async fn what_is_not_signed_or_no_message_is_not_shown_and_told() {
    all(&[
        (
            "begin(); out('no', key=b'guess'); out('yes'); end()",
            "out:\"yes\" | done | messages_refused",
        ),
        (
            "begin(); out('no', key=b''); f = out('yes'); f[2] = b''; raw('iopub', bundle(f)); end()",
            "out:\"yes\" | done | messages_refused",
        ),
        (
            "begin(); once = out('once'); raw('iopub', bundle(once) * 3); end()",
            "out:\"once\" | done | messages_refused",
        ),
        // Of a cell before.
        (
            "begin(); raw('iopub', bundle(once)); end()",
            "done | messages_refused",
        ),
        (
            "begin(); reply({'status': 'error', 'ename': 'No'}, key=b'guess'); out('yes'); end()",
            "out:\"yes\" | done | messages_refused",
        ),
        (
            "begin(); [raw('iopub', bundle(f)) for f in ([b''], [b'junk'], [b'<IDS|MSG>'], [b'x', b'<IDS|MSG>', b'', b'{}'])]; end()",
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
async fn what_somebody_else_caused_is_not_shown() {
    all(&[
        (
            "begin(); [out('no', cause=c) for c in ({'msg_id': 'other'}, b'{}', b'null', b'[]', b'junk', b'', {'msg_id': 5})]; end()",
            "done",
        ),
        // Nor does it end a cell.
        (
            "begin(); status('idle', cause={}); status('idle', cause={'msg_id': 'other'}); reply({'status': 'error'}, cause={}); out('yes'); end()",
            "out:\"yes\" | done",
        ),
        (
            "begin(); [status(s, cause={}) for s in ('restarting', 'dead', 'starting', 'terminating', 'idle', '', None)]; out('yes'); end()",
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
async fn words_in_any_order_are_understood() {
    all(&[
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
        // Of sorts that are not known.
        (
            "begin(); [send(c, k, {}) for c in ('shell', 'iopub', 'control', 'stdin') for k in ('future', 'execute_request', 'comm_close', 'debug_event', 'iopub_welcome', '\\u00e9')]; end()",
            "done",
        ),
    ])
    .await;
}

#[tokio::test]
async fn text_after_the_end_is_late() {
    use cellwright_kernel::Kernel as _;
    let mut odd = Odd::start("").await;
    let script = "begin(); end(); time.sleep(0.4); out('late'); send('iopub', 'display_data', {'data': {'text/plain': 'shown'}}); send('iopub', 'error', {'ename': 'E'})";
    assert_eq!(odd.told(script).await, "done");
    odd.works().await;
    let late = odd.kernel.take_late();
    let said: Vec<_> = late
        .iter()
        .map(|late| (late.request, String::from_utf8_lossy(&late.bytes)))
        .collect();
    assert_eq!(said, [(1, "lateshown\n".into())]);
    odd.goes().await;
}

#[tokio::test]
async fn odd_contents_are_read_with_patience() {
    all(&[
        // Errors.
        ("begin(); send('iopub', 'error', {'ename': 'E', 'evalue': None}); end({'status': 'error'})", "!E | raised \"E\" \"\""),
        ("begin(); send('iopub', 'error', {'ename': 'E', 'evalue': 5, 'traceback': 'a\\nb'}); end({'status': 'error'})", "!E | raised \"E\" \"5\""),
        ("begin(); send('iopub', 'error', {'traceback': [1, None, 'x']}); end({'status': 'error'})", "!Error | raised \"Error\" \"\""),
        ("begin(); send('iopub', 'error', b'junk'); end({'status': 'error', 'ename': 'E'})", "!Error | raised \"Error\" \"\""),
        ("begin(); end({'status': 'error', 'ename': 'E', 'evalue': 'v'})", "!E | raised \"E\" \"v\""),
        ("begin(); end({'status': 'error'})", "!Error | raised \"Error\" \"\""),
        // A reply that makes no sense does not take back what was raised.
        ("begin(); send('iopub', 'error', {'ename': 'E', 'evalue': 'v'}); end(b'junk')", "!E | raised \"E\" \"v\""),
        ("begin(); out('a'); end(b'junk')", "out:\"a\" | done"),
        ("begin(); end({'status': 5})", "done"),
        // Code that the kernel gave up.
        ("begin(); end({'status': 'aborted'})", "!Interrupted | raised \"Interrupted\" \"the kernel broke the cell off\""),
        ("status('busy'); end({'status': 'aborted'})", "the kernel could not answer: cells of another client fail all the time, and it drops this one for it"),
        ("status('busy'); end({'status': 'abort'})", "!Interrupted | raised \"Interrupted\" \"the kernel broke the cell off\""),
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
        ("begin(); send('iopub', 'update_display_data', {'data': {'text/plain': 'a'}, 'transient': {'display_id': 'nobody'}}); send('iopub', 'update_display_data', {'data': {'text/plain': 'a'}}); end()", "update[a] | done"),
        ("begin(); send('iopub', 'clear_output', {}); send('iopub', 'clear_output', {'wait': 'yes'}); send('iopub', 'clear_output', b'junk'); end()", "clear(false) clear(false) clear(false) | done"),
        // Nested too deep for anybody.
        ("deep = b'[' * 100000 + b']' * 100000; begin(); [send('iopub', k, b'{\"data\": {\"application/json\": ' + deep + b'}, \"text\": ' + deep + b', \"evalue\": ' + deep + b'}') for k in ('display_data', 'stream', 'status', 'clear_output')]; out('a', cause=deep); out('b', header=deep); end()", "[] clear(false) | done | messages_refused"),
        ("begin(); end(b'{\"status\": \"error\", \"x\": ' + deep + b'}')", "done"),
        // What else a reply wants.
        ("begin(); end({'status': 'ok', 'payload': [{'source': 'page', 'data': {'text/plain': 'help'}}, {'source': 'set_next_input', 'text': 'x'}, {'source': 'ask_exit'}, {'source': 'future'}, {}, None, 5]})", "aside(true) [help] aside(false) | done"),
        ("begin(); end({'status': 'ok', 'payload': 5})", "done"),
        ("begin(); end({'status': 'ok', 'payload': [{'source': 'page'}, {'source': 'page', 'data': 5}]})", "done"),
        // Widgets, and binary data.
        ("begin(); [send('iopub', k, {'comm_id': 'c', 'data': {}}, buffers=[bytes(10000)] * 10) for k in ('comm_open', 'comm_msg', 'comm_close') * 50]; end()", "done"),
        ("begin(); out('a', buffers=[b''] * 10000); out('b', buffers=[b'x'] * 10000); end()", "out:\"ab\" | done"),
    ])
    .await;
}

#[tokio::test]
async fn a_cells_number_is_one_or_none() {
    use cellwright_kernel::{Request, Stop};
    let mut odd = Odd::start("").await;
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
        let (heard, outcome) = super::run_until(&mut odd.kernel, &request, &Stop::never()).await;
        assert_eq!(outcome.unwrap().count, expected, "{count}");
        assert_eq!(heard.line(), "=[r]");
    }
    odd.goes().await;
}

#[tokio::test]
async fn fifty_megabytes_in_one_message_arrive_whole() {
    let mut odd = Odd::start("").await;
    let request = cellwright_kernel::Request::new("begin(); out('é' * 25_000_000); end()");
    let (heard, outcome) =
        super::run_until(&mut odd.kernel, &request, &cellwright_kernel::Stop::never()).await;
    assert_eq!(super::words(&outcome), "done");
    assert!(heard.out() == "é".repeat(25_000_000).as_bytes());
    odd.works().await;
    odd.goes().await;
}

#[tokio::test]
async fn questions_for_input_in_any_form() {
    use cellwright_kernel::{Answers, Request, Stdin, Stop};
    let mut odd = Odd::messaged("").await;
    let answered = [
        (
            "begin(); ask('?'); out(answers.get()); end()",
            "out:\"one\" | done",
        ),
        (
            "begin(); ask('?'); ask('?'); out(answers.get() + answers.get()); end()",
            "out:\"onetwo\" | done",
        ),
        // It is sent to us alone, so it is the cell's that runs.
        (
            "begin(); ask('?', cause={}); out(answers.get()); end()",
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
    for (script, told) in answered {
        let request = Request {
            stdin: Stdin::Answers(Answers::from_iter(["one", "two"])),
            ..Request::new(script)
        };
        assert_eq!(
            odd.told_until(&request, &Stop::never()).await,
            told,
            "{script}"
        );
        odd.works().await;
    }
    let value = "input() was called (prompt: '?') but nobody can answer; pass answers with --answer or set the value in code";
    let raised = format!(
        "refused:\"?\" !StdinNotImplementedError | raised \"StdinNotImplementedError\" {value:?}"
    );
    for script in [
        "begin(); ask('?'); answers.get()",
        "begin(); ask('?', cause={}); answers.get()",
        // It swallows the first interrupt.
        "begin(); ask('?')\ntry: answers.get()\nexcept KeyboardInterrupt: interruptible = True; answers.get()",
    ] {
        assert_eq!(odd.told(script).await, raised, "{script}");
        odd.works().await;
    }
    // It makes do without, and comes to grief by itself.
    let told = odd.told("begin(); ask('?')\ntry: answers.get()\nexcept KeyboardInterrupt: out('well'); time.sleep(1); end({'status': 'error', 'ename': 'ValueError', 'evalue': 'v'})").await;
    assert_eq!(
        told,
        "refused:\"?\" out:\"well\" !ValueError | raised \"ValueError\" \"v\""
    );
    odd.works().await;
    // Nobody is interrupted for a question of a cell that is over.
    let told = odd
        .told("begin(); reply(); ask('?'); time.sleep(0.3); status('idle')")
        .await;
    assert_eq!(told, "refused:\"?\" | done");
    odd.works().await;
    odd.goes().await;
}
