//! Replaces the parts of a line that differ in every run.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex_lite::Regex;

use super::rules::{Rule, Rules};

/// Size in bytes above which a line is compared unchanged: searching it for patterns would take too long.
const LINE_LIMIT: usize = 256 * 1024;

/// A pattern and its replacement.
struct Normalizer {
    rule: Rule,
    /// A line that contains none of these, in lower case, is not searched.
    hints: &'static [&'static str],
    pattern: &'static str,
    replacement: &'static str,
}

const fn normalizer(
    rule: Rule,
    hints: &'static [&'static str],
    pattern: &'static str,
    instead: &'static str,
) -> Normalizer {
    Normalizer {
        rule,
        hints,
        pattern,
        replacement: instead,
    }
}

/// Words of lines about time: in these, seconds are a duration.
const TIME_WORDS: &[&str] = &[
    "time",
    "took",
    "elapsed",
    "duration",
    "finished",
    "completed",
    "done in",
    "ran in",
    "loaded in",
    "trained in",
    "epoch",
    "step",
    "cpu",
    "seconds",
];

/// All normalizers, in order: a text that one replaces is not seen by the following ones.
const NORMALIZERS: [Normalizer; 25] = [
    normalizer(
        Rule::Cells,
        &["ipykernel_"],
        r#"[^\s"'(]*[/\\]ipykernel_\d+[/\\]\d+\.py"#,
        "<cell>",
    ),
    normalizer(
        Rule::Cells,
        &["<ipython-input-"],
        r"<ipython-input-\d+-[0-9a-f]+>",
        "<cell>",
    ),
    normalizer(Rule::Cells, &["in["], r"\bCell In\[\d+\]", "<cell>"),
    normalizer(
        Rule::Cells,
        &["in ["],
        r"\b(?:Cell |Input )?In \[\d+\]",
        "<cell>",
    ),
    normalizer(
        Rule::Paths,
        &["/var/folders/"],
        r#"(?:/private)?/var/folders/[^\s"'/]+/[^\s"'/]+/T/[^\s"'/,:;)>]+"#,
        "<temporary>",
    ),
    normalizer(
        Rule::Paths,
        &["/tmp/"],
        r#"(?:/private)?(?:/var)?/tmp/[^\s"'/,:;)>]+"#,
        "<temporary>",
    ),
    normalizer(
        Rule::Paths,
        &["\\temp\\"],
        r#"[A-Za-z]:\\[^\s"']*\\AppData\\Local\\Temp\\[^\s"'\\,:;)>]+"#,
        "<temporary>",
    ),
    normalizer(
        Rule::Paths,
        &["-packages"],
        r#"[^\s"'(<=,]*[/\\](?:site|dist)-packages[/\\]"#,
        "<packages>/",
    ),
    normalizer(
        Rule::Ids,
        &["-"],
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        "<id>",
    ),
    normalizer(Rule::Ids, &["t_"], r"\bT_[0-9a-f]{5}(_|\b)", "T_<id>$1"),
    normalizer(
        Rule::Ids,
        &["sk-"],
        r"\bsk-(container|estimator)-id-\d+",
        "sk-$1-id",
    ),
    normalizer(
        Rule::Addresses,
        &[" at 0x"],
        r" at 0x[0-9a-fA-F]+\b",
        " at <address>",
    ),
    normalizer(
        Rule::Addresses,
        &["0x"],
        r"\b0x[0-9a-fA-F]{9,16}\b",
        "<address>",
    ),
    normalizer(
        Rule::Progress,
        &["<"],
        r"\[\d+:\d\d(?::\d\d)?<[^\]]*\]",
        "[<rate>]",
    ),
    normalizer(
        Rule::Progress,
        &["/s"],
        r"\b\d+(?:\.\d+)?\s?(?:its?|[kKMGT]?i?[Bb]|samples|examples|batches|steps|rows|files)/s(?:ec)?\b",
        "<rate>",
    ),
    normalizer(
        Rule::Progress,
        &["/it", "/step", "/epoch", "/batch", "/sample"],
        r"\b\d+(?:\.\d+)?\s?(?:[mµμu]?s|sec)/(?:it|step|epoch|batch|sample)\b",
        "<rate>",
    ),
    normalizer(
        Rule::Dates,
        &["-", "/"],
        r"\b\d{4}([-/])\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z\b|\s?[+-]\d\d:?\d\d\b|\sUTC\b)?|\b)",
        "<date>",
    ),
    normalizer(
        Rule::Dates,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
        r"\b(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?,?\s+)?(?:\d{1,2}\s+(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)|(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\s+\d{1,2}),?(?:\s+\d{1,2}:\d\d:\d\d)?(?:\s+[A-Z]{3,4})?\s+\d{4}\b(?:,?\s+\d{1,2}:\d\d(?::\d\d)?)?(?:\s+(?:GMT|UTC|[+-]\d{4}))?",
        "<date>",
    ),
    normalizer(
        Rule::Dates,
        &["datetime."],
        r"\bdatetime\.(?:datetime|date|time)\([^)]*\)",
        "<date>",
    ),
    normalizer(
        Rule::Dates,
        &[":"],
        r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b(?:\s?[AP]M\b)?",
        "<time of day>",
    ),
    normalizer(
        Rule::Times,
        &["loop"],
        r"\d[\d,]* loops?,? (?:each|best of \d+)",
        "<loops>",
    ),
    normalizer(
        Rule::Times,
        &["ns", "µs", "μs", "us", "ms", "second"],
        r"\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?(?:ns|µs|μs|us|ms|(?:nano|micro|milli)seconds?)\b",
        "<time>",
    ),
    normalizer(
        Rule::Times,
        &["eta"],
        r"\bETA:?\s*\d+(?::\d\d)*(?:\.\d+)?\s?(?:s|min|h)?\b",
        "<time left>",
    ),
    normalizer(
        Rule::Times,
        TIME_WORDS,
        r"\b(?:\d+\s?(?:h|hrs?|hours?)\s+)?(?:\d+\s?(?:m|mins?|minutes?)\s*)?\d+(?:\.\d+)?(?:e[+-]?\d+)?\s?(?:s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)\b",
        "<time>",
    ),
    normalizer(
        Rule::Times,
        &["elapsed", "duration", "took", "time"],
        r"(?i)\b(elapsed|duration|took|run ?time|(?:wall|cpu|execution|running|run|training|fit|elapsed|total|computation|processing|inference)[ _]time|time[ _](?:taken|elapsed))(\s*(?:\((?:in )?(?:s|sec|seconds|ms)\))?\s*[:=]?\s*)\d+(?:\.\d+)?(?:e[+-]?\d+)?\b",
        "$1$2<time>",
    ),
];

static COMPILED: LazyLock<Vec<(&'static Normalizer, Regex)>> = LazyLock::new(|| {
    // A test checks that all patterns compile.
    let compile =
        |normalizer: &'static Normalizer| Some((normalizer, Regex::new(normalizer.pattern).ok()?));
    NORMALIZERS.iter().filter_map(compile).collect()
});

/// Escape sequences that set colours and styles.
static COLOURS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:\x1b\[|\x{9b})[0-9;:]*m").ok());

/// Removes the escape sequences that set colours.
pub(super) fn strip_colours(text: &str) -> String {
    match &*COLOURS {
        Some(pattern) => pattern.replace_all(text, "").into_owned(),
        None => text.to_owned(),
    }
}

/// Whether a line appears only in some runs.
pub(super) fn is_ignored_line(line: &str, rules: Rules) -> bool {
    rules.has(Rule::Times)
        && (line.starts_with("The slowest run took ") || line.starts_with("Compiler time: "))
}

/// Replaces the parts of a line that differ in every run.
pub(super) fn normalize_line(line: &str, rules: Rules) -> Cow<'_, str> {
    if line.len() > LINE_LIMIT {
        return Cow::Borrowed(line);
    }
    // The output of `%time` has a varying number of parts.
    if rules.has(Rule::Times) {
        for start in ["CPU times: ", "Wall time: "] {
            if line.starts_with(start) {
                return Cow::Borrowed(start);
            }
        }
        if line.contains(" per loop (mean ± std. dev. of ") {
            return Cow::Borrowed("<timeit>");
        }
    }
    let lower_case = line.to_lowercase();
    let mut normalized = Cow::Borrowed(line);
    for (normalizer, pattern) in &*COMPILED {
        let may_match = || {
            normalizer
                .hints
                .iter()
                .any(|hint| lower_case.contains(hint))
        };
        if rules.has(normalizer.rule)
            && may_match()
            && let Cow::Owned(changed) = pattern.replace_all(&normalized, normalizer.replacement)
        {
            normalized = Cow::Owned(changed);
        }
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), NORMALIZERS.len());
        assert!(COLOURS.is_some());
    }
}
