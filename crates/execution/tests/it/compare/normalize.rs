//! Text that each rule ignores, and text that no rule ignores.

use cellwright_execution::compare::{Rule, Rules};

use super::{descriptions, stdout};

/// Only the named rule makes each pair of lines equal.
const SAME: &[(Rule, &str, &str)] = &[
    (Rule::Redraws, " 10%\r 50%\r100%\ndone", "100%\ndone"),
    (Rule::Redraws, "ab\u{8}c", "ac"),
    (Rule::Colours, "\x1b[1;31mred\x1b[0m", "red"),
    (
        Rule::Colours,
        "\x1b[38;5;9mred\x1b[39m",
        "\x1b[31mred\x1b[m",
    ),
    (Rule::Whitespace, "a  \nb\t\n\n", "a\nb"),
    (Rule::Whitespace, "a", "a\n"),
    (
        Rule::Addresses,
        "<a.B object at 0x7f2b8c0d1e80>",
        "<a.B object at 0x10af3c5d0>",
    ),
    (
        Rule::Addresses,
        "<function f at 0x1040>",
        "<function f at 0x2050>",
    ),
    (
        Rule::Addresses,
        "ptr=0x00007ffd12345678",
        "ptr=0x00007ffe87654321",
    ),
    (
        Rule::Times,
        "CPU times: user 3 µs, sys: 1 µs, total: 4 µs",
        "CPU times: user 1.2 s, sys: 30 ms, total: 1.23 s",
    ),
    (Rule::Times, "Wall time: 6.91 µs", "Wall time: 1min 3s"),
    (
        Rule::Times,
        "1.2 µs ± 30 ns per loop (mean ± std. dev. of 7 runs, 1,000,000 loops each)",
        "980 ns ± 4 ns per loop (mean ± std. dev. of 7 runs, 10,000,000 loops each)",
    ),
    (
        Rule::Times,
        "100000 loops, best of 3: 2.3 µs per loop",
        "1000000 loops, best of 3: 1.9 µs per loop",
    ),
    (
        Rule::Times,
        "The slowest run took 4.10 times longer than the fastest.\n10 loops, best of 3: 23 ms per loop",
        "10 loops, best of 3: 22 ms per loop",
    ),
    (Rule::Times, "request: 12.5ms", "request: 9ms"),
    (Rule::Times, "took 3.2 s", "took 4 seconds"),
    (Rule::Times, "Elapsed time: 0.53211", "Elapsed time: 0.61"),
    (
        Rule::Times,
        "training time (s): 12.5",
        "training time (s): 13",
    ),
    (
        Rule::Times,
        "--- 12.345 seconds ---",
        "--- 11.9 seconds ---",
    ),
    (Rule::Times, "finished in 1h 2min 3s", "finished in 58 min"),
    (
        Rule::Times,
        "epoch 1/5: loss 0.3 (2s)",
        "epoch 1/5: loss 0.3 (3s)",
    ),
    (Rule::Dates, "at 2024-01-31", "at 2025-12-01"),
    (
        Rule::Dates,
        "2024-01-31 10:11:12.123456+01:00 x",
        "2026-11-16T09:40:00Z x",
    ),
    (Rule::Dates, "2024/01/31 10:11 x", "2024/02/01 09:00 x"),
    (Rule::Dates, "10:11:12 INFO start", "09:00:00 INFO start"),
    (
        Rule::Dates,
        "10:11:12,123 INFO start",
        "09:00:00,001 INFO start",
    ),
    (Rule::Dates, "3:04:05 PM", "11:12:13 AM"),
    (
        Rule::Dates,
        "Sun Nov 15 10:11:12 2026",
        "Mon Nov 16 09:00:00 2026",
    ),
    (
        Rule::Dates,
        "Date: Sun, 15 Nov 2026 10:11:12 GMT",
        "Date: Mon, 2 March 2026 01:02:03 GMT",
    ),
    (Rule::Dates, "on November 5, 2026", "on May 17, 2026"),
    (
        Rule::Dates,
        "datetime.datetime(2024, 1, 31, 10, 11, 12, 5)",
        "datetime.datetime(2026, 11, 16, 9, 40)",
    ),
    (
        Rule::Dates,
        "Timestamp('2024-01-31 10:11:12.5')",
        "Timestamp('2026-11-16 09:40:00')",
    ),
    (
        Rule::Ids,
        "run 123e4567-e89b-12d3-a456-426614174000",
        "run 00000000-0000-4000-8000-0123456789ab",
    ),
    (
        Rule::Ids,
        "#T_0a1b2_row0_col1 { }",
        "#T_ffeed_row0_col1 { }",
    ),
    (
        Rule::Ids,
        "<div id=\"sk-container-id-3\">",
        "<div id=\"sk-container-id-12\">",
    ),
    (
        Rule::Paths,
        "wrote /tmp/tmpab12cd/out.csv",
        "wrote /tmp/tmpzz99/out.csv",
    ),
    (
        Rule::Paths,
        "PosixPath('/tmp/tmpab12cd')",
        "PosixPath('/tmp/tmpzz99')",
    ),
    (
        Rule::Paths,
        "in /var/folders/x1/abc/T/tmp1/a",
        "in /private/var/folders/y2/def/T/tmp2/a",
    ),
    (
        Rule::Paths,
        "in /tmp/a1/b",
        "in /var/folders/y2/def/T/tmp2/b",
    ),
    (
        Rule::Paths,
        r"C:\Users\a\AppData\Local\Temp\tmp1\x",
        r"C:\Users\b\AppData\Local\Temp\tmp2\x",
    ),
    (
        Rule::Paths,
        "<module 'numpy' from '/usr/lib/python3/dist-packages/numpy/__init__.py'>",
        "<module 'numpy' from '/opt/venv/lib/python3.12/site-packages/numpy/__init__.py'>",
    ),
    (
        Rule::Cells,
        "/tmp/ipykernel_123/456.py:3: note",
        "/tmp/ipykernel_9/1011.py:3: note",
    ),
    (
        Rule::Cells,
        r"C:\x\ipykernel_123\456.py:3: note",
        r"C:\x\ipykernel_9\1011.py:3: note",
    ),
    (
        Rule::Cells,
        "<ipython-input-3-0a1b2c3d4e5f> in f()",
        "<ipython-input-7-ffffffffffff> in f()",
    ),
    (Rule::Cells, "Cell In[3], line 2", "Cell In[41], line 2"),
    (
        Rule::Cells,
        "Input In [3], in <cell line: 1>()",
        "Input In [5], in <cell line: 1>()",
    ),
    (
        Rule::Cells,
        "/tmp/ipykernel_123/456.py:3: note",
        "Cell In[5]:3: note",
    ),
    (
        Rule::Progress,
        "100%|██████████| 10/10 [00:01<00:00,  8.31it/s]",
        "100%|██████████| 10/10 [01:02<00:00, 12.07s/it, loss=0.2]",
    ),
    (Rule::Progress, "12.5 MB/s", "800 kB/s"),
    (Rule::Progress, "1024 steps/s", "2000 steps/s"),
    (Rule::Progress, "1.5 s/it", "2 s/it"),
    (Rule::Progress, "1.5it/s", "2it/s"),
];

/// Pairs that differ by default, although similar text is ignored.
const DIFFERENT: &[(&str, &str)] = &[
    ("1", "2"),
    ("0.1", "0.10"),
    ("1e-3", "1e-4"),
    ("-1", "1"),
    ("a 1 b", "a 2 b"),
    ("t = 3.5 s", "t = 4.5 s"),
    ("v = 5 m/s", "v = 6 m/s"),
    ("time = 5", "time = 6"),
    ("10 min, 20 max", "11 min, 20 max"),
    ("0xff", "0xfe"),
    ("0xdeadbeef", "0xdeadbeee"),
    ("1:30", "1:40"),
    ("Margin 2024", "Margin 2025"),
    ("May 2024", "May 2025"),
    ("version 1.2.3", "version 1.2.4"),
    (
        "d41d8cd98f00b204e9800998ecf8427e",
        "d41d8cd98f00b204e9800998ecf8427f",
    ),
    ("1731747600", "1731747601"),
    ("[1, 2, 3]", "[1, 2, 4]"),
    ("/tmp/a/x.csv", "/tmp/a/y.csv"),
    ("/srv/a/x.csv", "/srv/b/x.csv"),
    ("Cell In[3], line 2", "Cell In[3], line 3"),
    (
        "100%|███| 10/10 [00:01<00:00]",
        "100%|███| 11/11 [00:01<00:00]",
    ),
    (
        " 50%|█▌ | 5/10 [00:01<00:00]",
        "100%|███| 10/10 [00:01<00:00]",
    ),
    ("2024-01-31 x 1", "2025-01-31 x 2"),
    ("took 3 s for 10 rows", "took 3 s for 11 rows"),
    ("epoch 1/5 loss 0.3", "epoch 1/5 loss 0.4"),
    (" a", "a"),
    ("a\n\nb", "a\nb"),
    ("a b", "a  b"),
    ("T_total", "T_other"),
    ("theta = 3 s", "theta = 4 s"),
    ("step 2: moved 5 m", "step 2: moved 6 m"),
    ("took 2 s: 5 m", "took 2 s: 6 m"),
];

#[test]
fn each_rule_alone_ignores_its_noise() {
    for &(rule, stored, fresh) in SAME {
        let name = rule.name();
        let (one, other) = ([stdout(stored)], [stdout(fresh)]);
        assert_eq!(
            descriptions(&one, &other, Rules::default()),
            [""; 0],
            "{name}: {stored} / {fresh}"
        );
        assert_ne!(
            descriptions(&one, &other, Rules::default().without(rule)),
            [""; 0],
            "{name} is not needed: {stored} / {fresh}"
        );
    }
    for rule in [Rule::Redraws, Rule::Progress, Rule::Cells] {
        assert!(SAME.iter().any(|(tested, ..)| *tested == rule));
    }
}

#[test]
fn real_changes_are_reported() {
    for &(stored, fresh) in DIFFERENT {
        let found = descriptions(&[stdout(stored)], &[stdout(fresh)], Rules::default());
        assert_eq!(found.len(), 1, "{stored} / {fresh}");
    }
}

#[test]
fn lines_after_noise_are_still_compared() {
    let stored = "Wall time: 3 s\n100%|█| 3/3 [00:01<00:00, 3.0it/s]\nresult 5\n";
    let fresh = "Wall time: 4 s\n100%|█| 3/3 [00:02<00:00, 1.5it/s]\nresult 6\n";
    assert_eq!(
        descriptions(&[stdout(stored)], &[stdout(fresh)], Rules::default()),
        ["output 0, stdout, line 3: was `result 5`, is `result 6`"]
    );
}

/// Lines above the size limit are not searched for patterns, which would take too long.
#[test]
fn long_lines_are_compared_as_they_are() {
    let long = "1 ".repeat(5_000_000);
    let found = descriptions(
        &[stdout(&format!("{long}took 1 s"))],
        &[stdout(&format!("{long}took 2 s"))],
        Rules::default(),
    );
    assert_eq!(found.len(), 1);
}
