//! Arbitrary requests to the bridge. No request may cause a panic, and only a POST with the token, for this machine and
//! not from a page, may run a verb.

#![no_main]

use cellwright_engine::bridge::request_status;
use libfuzzer_sys::fuzz_target;

const TOKEN: &str = "0123456789abcdef";

fuzz_target!(|data: &[u8]| {
    let status = request_status(data, TOKEN);
    if status == 200 || status == 413 {
        let head = data.split(|&byte| byte == b'\n');
        let head: Vec<String> = head
            .take_while(|line| !line.is_empty())
            .map(|line| String::from_utf8_lossy(line).to_ascii_lowercase())
            .collect();
        let values = |name: &str| -> Vec<&str> {
            let named = head.iter().skip(1).filter_map(|line| line.split_once(':'));
            let named = named.filter(|(other, _)| *other == name);
            named.map(|(_, value)| value.trim()).collect()
        };
        assert!(head[0].starts_with("post "), "{head:?}");
        assert!(values("origin").is_empty(), "{head:?}");
        let [host] = values("host")[..] else {
            panic!("{head:?}");
        };
        let own = ["127.0.0.1", "localhost", "[::1]"];
        assert!(own.iter().any(|name| host.starts_with(name)), "{head:?}");
        let [authorization] = values("authorization")[..] else {
            panic!("{head:?}");
        };
        assert!(authorization.ends_with(TOKEN), "{head:?}");
    }
});
