//! Any HTML → HTML that is well nested, not deep, and has only the tags and attributes that matter.
//!
//! A parser of HTML must put up with everything, and pays for it: tens of thousands of tags within
//! each other, or formatting that is opened and never closed, cost it time and memory quadratic in
//! the input, and its reader a stack overflow. This takes one pass.

/// Levels of nesting that are kept; deeper tags go, their text stays.
const DEEPEST: usize = 80;

/// Elements without content.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// Elements whose content nobody reads.
const DROPPED: [&str; 11] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "textarea",
    "select", "title",
];

/// Attributes that become Markdown.
const ATTRIBUTES: [&str; 6] = ["href", "src", "alt", "colspan", "rowspan", "start"];

/// Longer links are data.
const MOST_OF_AN_ATTRIBUTE: usize = 2048;

pub(super) fn tame(html: &str) -> String {
    let mut tamer = Tamer {
        out: String::with_capacity(html.len()),
        open: Vec::new(),
        skipped: 0,
    };
    let mut rest = html;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        tamer.out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        rest = &rest[tamer.markup(rest)..];
    }
    tamer.out.push_str(rest);
    while let Some(name) = tamer.open.pop() {
        close(&mut tamer.out, &name);
    }
    tamer.out
}

struct Tamer {
    out: String,
    /// The names of the elements that are open.
    open: Vec<String>,
    /// How many are open that were too deep.
    skipped: usize,
}

impl Tamer {
    /// Takes what follows a `<`. Gives its length.
    fn markup(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        match bytes.first() {
            Some(b'!') if text.starts_with("!--") => {
                text[3..].find("-->").map_or(text.len(), |at| at + 6)
            }
            Some(b'!' | b'?') => memchr::memchr(b'>', bytes).map_or(text.len(), |at| at + 1),
            Some(b'/') if bytes.get(1).is_some_and(u8::is_ascii_alphabetic) => {
                let end = memchr::memchr(b'>', bytes).unwrap_or(text.len());
                self.end(&name(&text[1..end]));
                text.len().min(end + 1)
            }
            Some(first) if first.is_ascii_alphabetic() => self.begin(text),
            _ => {
                self.out.push_str("&lt;");
                0
            }
        }
    }

    fn begin(&mut self, text: &str) -> usize {
        let name = name(text);
        let mut tag = Tag {
            text,
            at: name.len(),
        };
        let mut kept = Vec::new();
        while let Some((attribute, value)) = tag.attribute() {
            let attribute = attribute.to_ascii_lowercase();
            // A picture within the text is not for reading.
            let data = attribute == "src" && value.starts_with("data:");
            if ATTRIBUTES.contains(&attribute.as_str())
                && !data
                && value.len() <= MOST_OF_AN_ATTRIBUTE
                && kept.len() < ATTRIBUTES.len()
            {
                kept.push((attribute, value));
            }
        }
        let length = tag.at;
        if DROPPED.contains(&name.as_str()) {
            return length + after_element(&text[length..], &name);
        }
        let void = VOID.contains(&name.as_str());
        self.imply_ends(&name);
        if !void && (self.open.len() == DEEPEST || self.skipped > 0) {
            self.skipped += 1;
            return length;
        }
        self.out.push('<');
        self.out.push_str(&name);
        for (attribute, value) in kept {
            self.out.push(' ');
            self.out.push_str(&attribute);
            self.out.push_str("=\"");
            self.out.push_str(&value.replace('"', "&quot;"));
            self.out.push('"');
        }
        self.out.push('>');
        if !void {
            self.open.push(name);
        }
        length
    }

    fn end(&mut self, name: &str) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| open == name) {
            for name in self.open.drain(at..).rev() {
                close(&mut self.out, &name);
            }
        }
    }

    /// Closes what a new element ends without saying so, as `<li>` ends the one before.
    fn imply_ends(&mut self, name: &str) {
        let ended: &[&str] = match name {
            "li" => &["li", "p"],
            "dt" | "dd" => &["dt", "dd", "p"],
            "td" | "th" => &["td", "th", "p"],
            "tr" => &["td", "th", "tr", "p"],
            "thead" | "tbody" | "tfoot" => &["td", "th", "tr", "thead", "tbody", "tfoot", "p"],
            "p" | "div" | "table" | "ul" | "ol" | "pre" | "blockquote" | "h1" | "h2" | "h3"
            | "h4" | "h5" | "h6" | "hr" => &["p"],
            _ => &[],
        };
        while let Some(top) = self.open.pop_if(|top| ended.contains(&top.as_str())) {
            close(&mut self.out, &top);
        }
    }
}

fn close(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// The name at the beginning of a tag.
fn name(text: &str) -> String {
    /// No element has a longer one.
    const LONGEST: usize = 32;
    let end = text
        .bytes()
        .take(LONGEST)
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        .count();
    text[..end].to_ascii_lowercase()
}

/// How far it is to the end of an element whose content is dropped.
fn after_element(text: &str, name: &str) -> usize {
    let bytes = text.as_bytes();
    let mut start = 0;
    while let Some(at) = memchr::memmem::find(&bytes[start..], b"</") {
        let after = start + at + 2;
        let end = after + name.len();
        if bytes
            .get(after..end)
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
        {
            return memchr::memchr(b'>', &bytes[end..]).map_or(text.len(), |at| end + at + 1);
        }
        start = after;
    }
    text.len()
}

/// Reads the attributes of a tag.
struct Tag<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tag<'a> {
    /// The next attribute; after the last one stands after the tag.
    fn attribute(&mut self) -> Option<(&'a str, &'a str)> {
        let space = |byte: u8| byte.is_ascii_whitespace() || byte == b'/';
        self.take(space);
        if matches!(self.peek(), None | Some(b'>')) {
            self.at = self.text.len().min(self.at + 1);
            return None;
        }
        let start = self.at;
        // A name may begin with `=`.
        self.at += 1;
        self.take(|byte| !space(byte) && byte != b'=' && byte != b'>');
        // Where it begins with half a character the step above went into it.
        let name = self.text.get(start..self.at).unwrap_or_default();
        self.take(|byte| byte.is_ascii_whitespace());
        if self.peek() != Some(b'=') {
            return Some((name, ""));
        }
        self.at += 1;
        self.take(|byte| byte.is_ascii_whitespace());
        let value = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.take(|byte| byte != quote);
                self.at = self.text.len().min(self.at + 1);
                value
            }
            _ => self.take(|byte| !byte.is_ascii_whitespace() && byte != b'>'),
        };
        Some((name, value))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest
            .iter()
            .position(|&byte| !wanted(byte))
            .unwrap_or(rest.len());
        let start = self.at;
        self.at += length;
        self.text.get(start..self.at).unwrap_or_default()
    }
}
