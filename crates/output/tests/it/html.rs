//! HTML to Markdown, with input from pandas and others.

use std::time::{Duration, Instant};

use cellwright_output::{Bundle, Capture, Event, Limits, Sink};

fn markdown(html: &str) -> String {
    let mut capture = Capture::new(Limits::default(), None);
    capture.push(Event::Display {
        bundle: Bundle::text("text/html", html),
        id: None,
        result: None,
    });
    capture.finish().text
}

#[test]
fn data_frame_becomes_a_table() {
    let html = r#"<div><style scoped>.dataframe tbody tr th { vertical-align: top; }</style>
<table border="1" class="dataframe">
  <thead>
    <tr style="text-align: right;"><th></th><th>name</th><th>value|x</th></tr>
  </thead>
  <tbody>
    <tr><th>0</th><td>a &lt;b&gt; &amp; c</td><td>1.5</td></tr>
    <tr><th>1</th><td>line1<br>line2</td><td>NaN</td></tr>
  </tbody>
</table>
<p>2 rows × 2 columns</p></div><script>alert("</table>")</script>"#;
    assert_eq!(
        markdown(html),
        "|  | name | value\\|x |\n\
         | --- | --- | --- |\n\
         | 0 | a \\<b> & c | 1.5 |\n\
         | 1 | line1 line2 | NaN |\n\
         \n\
         2 rows × 2 columns\n"
    );
}

#[test]
fn header_rows_are_joined() {
    let html = r#"<table><thead>
<tr><th></th><th></th><th colspan="2" halign="left">A</th><th>B</th></tr>
<tr><th></th><th></th><th>x</th><th>y</th><th>x</th></tr>
<tr><th>k1</th><th>k2</th><th></th><th></th><th></th></tr></thead>
<tbody><tr><th rowspan="2" valign="top">one</th><th>1</th><td>1</td><td>2</td><td>3</td></tr>
<tr><th>2</th><td>4</td><td>5</td><td>6</td></tr>
<tr><th>two</th><th>1</th><td colspan="2">wide</td><td>9</td></tr></tbody></table>"#;
    assert_eq!(
        markdown(html),
        "| k1 | k2 | A / x | A / y | B / x |\n\
         | --- | --- | --- | --- | --- |\n\
         | one | 1 | 1 | 2 | 3 |\n\
         |  | 2 | 4 | 5 | 6 |\n\
         | two | 1 | wide |  | 9 |\n"
    );
}

#[test]
fn table_without_headers_gets_an_empty_header() {
    let html = "<table><tr><th>Model:</th><td>OLS</td></tr><tr><th>No.</th><td>3</td></tr></table>";
    assert_eq!(
        markdown(html),
        "|  |  |\n| --- | --- |\n| Model: | OLS |\n| No. | 3 |\n"
    );
    let html = "<table><caption>C</caption><tr><th>a<th>b<tr><td>1<td>2</table>";
    assert_eq!(markdown(html), "C\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n");
}

#[test]
fn other_elements_become_markdown() {
    let cases = [
        ("<h2>Title</h2><p>text", "## Title\n\ntext\n"),
        (
            r#"See <a href="https://e.x/a?b=1&amp;c=2">the <b>link</b></a>."#,
            "See [the **link**](https://e.x/a?b=1&c=2).\n",
        ),
        (
            "<ul><li>one<ul><li>sub</ul><li>two</ul>",
            "- one\n  - sub\n- two\n",
        ),
        ("<ol start=3><li>x<li>y</ol>", "3. x\n4. y\n"),
        (
            "<pre><code>def f():\n    return 1\n</code></pre>",
            "```\ndef f():\n    return 1\n```\n",
        ),
        (
            "<code>a_b</code> &eacute; &#x20ac; &nbsp;x",
            "`a_b` é € \u{a0}x\n",
        ),
        ("1 < 2 && 3 > 2", "1 < 2 && 3 > 2\n"),
        (
            "<img alt='pic' src='data:image/png;base64,AAAA'>after",
            "after\n",
        ),
        ("a<!-- <b>no</b> -->b<?php no ?>c", "abc\n"),
        ("<SCRIPT>var a = '<b>';</SCRIPT><B>x</B>", "**x**\n"),
        ("<p>one<p>two", "one\n\ntwo\n"),
        ("<b>unclosed <i>both", "**unclosed *both***\n"),
    ];
    for (html, expected) in cases {
        assert_eq!(markdown(html), expected, "{html}");
    }
}

#[test]
fn hostile_html_neither_crashes_nor_takes_long() {
    let nested = |tag: &str, count: usize| format!("<{tag}>").repeat(count);
    let formats: String = (0..200).map(|n| format!("<font a={n}>")).collect();
    let cases = [
        nested("div", 50_000) + "x" + &"</div>".repeat(50_000),
        nested("b", 50_000) + "x",
        nested("ul><li", 30_000) + "x",
        nested("table><tr><td", 20_000) + "x",
        "<p>".to_owned() + &formats + &"<p>x".repeat(60_000),
        "</i><b>".repeat(40_000) + "x",
        "<table>".to_owned() + &"<tr><td colspan=100000 rowspan=100000>x<td>y".repeat(5000),
        format!("<table><thead><tr><th colspan=400>{}", "x".repeat(200_000)),
        "<a href='".repeat(30_000),
        "<".repeat(250_000),
        "<!--".repeat(60_000),
        "<script>".repeat(30_000),
        "&".repeat(250_000),
        "<p é=1 =='\"'>x".repeat(10_000),
    ];
    for html in cases {
        let started = Instant::now();
        let text = markdown(&html);
        assert!(text.len() <= 51_200);
        // Takes milliseconds; this limit only detects quadratic time.
        let name: String = html.chars().take(30).collect();
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{name}: {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn long_html_is_truncated_with_a_note() {
    let html = "<p>paragraph</p>".repeat(100_000);
    assert!(markdown(&html).ends_with("[… the rest of the HTML is elided …]\n"));
}
