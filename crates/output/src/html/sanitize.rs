//! Turns any HTML into well-nested, shallow HTML with only the relevant tags and attributes.
//!
//! An HTML parser must accept everything, at a cost: tens of thousands of nested tags, or formatting that is
//! never closed, take quadratic time and memory, and overflow the stack of the tree walk. This pass is
//! linear.

/// Maximum nesting depth. Deeper tags are removed, their text stays.
const DEPTH_LIMIT: usize = 80;

/// Elements without content.
const VOID_ELEMENTS: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// Elements whose content is not text for readers.
const DROPPED_ELEMENTS: [&str; 11] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "textarea",
    "select", "title",
];

/// Attributes that appear in the Markdown.
const KEPT_ATTRIBUTES: [&str; 6] = ["href", "src", "alt", "colspan", "rowspan", "start"];

/// Maximum length of an attribute; longer links are data.
const ATTRIBUTE_LIMIT: usize = 2048;

pub(super) fn sanitize(html: &str) -> String {
    let mut sanitizer = Sanitizer {
        out: String::with_capacity(html.len()),
        open: Vec::new(),
        skipped: 0,
    };
    let mut rest = html;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        sanitizer.out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        rest = &rest[sanitizer.markup(rest)..];
    }
    sanitizer.out.push_str(rest);
    while let Some(name) = sanitizer.open.pop() {
        push_end_tag(&mut sanitizer.out, &name);
    }
    sanitizer.out
}

struct Sanitizer {
    out: String,
    /// Names of the open elements.
    open: Vec<String>,
    /// Number of open elements beyond the depth limit.
    skipped: usize,
}

impl Sanitizer {
    /// Processes the markup after a `<`. Returns its length.
    fn markup(&mut self, text: &str) -> usize {
        let bytes = text.as_bytes();
        match bytes.first() {
            Some(b'!') if text.starts_with("!--") => {
                text[3..].find("-->").map_or(text.len(), |at| at + 6)
            }
            Some(b'!' | b'?') => memchr::memchr(b'>', bytes).map_or(text.len(), |at| at + 1),
            Some(b'/') if bytes.get(1).is_some_and(u8::is_ascii_alphabetic) => {
                let end = memchr::memchr(b'>', bytes).unwrap_or(text.len());
                self.end_tag(&tag_name(&text[1..end]));
                text.len().min(end + 1)
            }
            Some(first) if first.is_ascii_alphabetic() => self.start_tag(text),
            _ => {
                self.out.push_str("&lt;");
                0
            }
        }
    }

    fn start_tag(&mut self, text: &str) -> usize {
        let name = tag_name(text);
        let mut tag = AttributeReader {
            text,
            at: name.len(),
        };
        let mut kept = Vec::new();
        while let Some((attribute, value)) = tag.next_attribute() {
            let attribute = attribute.to_ascii_lowercase();
            // An embedded image is not readable text.
            let data = attribute == "src" && value.starts_with("data:");
            if KEPT_ATTRIBUTES.contains(&attribute.as_str())
                && !data
                && value.len() <= ATTRIBUTE_LIMIT
                && kept.len() < KEPT_ATTRIBUTES.len()
            {
                kept.push((attribute, value));
            }
        }
        let length = tag.at;
        if DROPPED_ELEMENTS.contains(&name.as_str()) {
            return length + skip_element(&text[length..], &name);
        }
        let void = VOID_ELEMENTS.contains(&name.as_str());
        self.close_implied(&name);
        if !void && (self.open.len() == DEPTH_LIMIT || self.skipped > 0) {
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

    fn end_tag(&mut self, name: &str) {
        if self.skipped > 0 {
            self.skipped -= 1;
            return;
        }
        if let Some(at) = self.open.iter().rposition(|open| open == name) {
            for name in self.open.drain(at..).rev() {
                push_end_tag(&mut self.out, &name);
            }
        }
    }

    /// Closes the elements that a new element ends implicitly, as `<li>` ends the previous `<li>`.
    fn close_implied(&mut self, name: &str) {
        let implied: &[&str] = match name {
            "li" => &["li", "p"],
            "dt" | "dd" => &["dt", "dd", "p"],
            "td" | "th" => &["td", "th", "p"],
            "tr" => &["td", "th", "tr", "p"],
            "thead" | "tbody" | "tfoot" => &["td", "th", "tr", "thead", "tbody", "tfoot", "p"],
            "p" | "div" | "table" | "ul" | "ol" | "pre" | "blockquote" | "h1" | "h2" | "h3"
            | "h4" | "h5" | "h6" | "hr" => &["p"],
            _ => &[],
        };
        while let Some(top) = self.open.pop_if(|top| implied.contains(&top.as_str())) {
            push_end_tag(&mut self.out, &top);
        }
    }
}

fn push_end_tag(out: &mut String, name: &str) {
    out.push_str("</");
    out.push_str(name);
    out.push('>');
}

/// Returns the lower-case name at the start of a tag.
fn tag_name(text: &str) -> String {
    /// No element has a longer name.
    const NAME_LIMIT: usize = 32;
    let end = text
        .bytes()
        .take(NAME_LIMIT)
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        .count();
    text[..end].to_ascii_lowercase()
}

/// Returns the length of the content and end tag of a dropped element.
fn skip_element(text: &str, name: &str) -> usize {
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
struct AttributeReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> AttributeReader<'a> {
    /// Returns the next attribute. After the last one, moves past the tag.
    fn next_attribute(&mut self) -> Option<(&'a str, &'a str)> {
        let space = |byte: u8| byte.is_ascii_whitespace() || byte == b'/';
        self.take_while(space);
        if matches!(self.peek(), None | Some(b'>')) {
            self.at = self.text.len().min(self.at + 1);
            return None;
        }
        let start = self.at;
        // A name may begin with `=`.
        self.at += 1;
        self.take_while(|byte| !space(byte) && byte != b'=' && byte != b'>');
        // If the name starts with a multi-byte character, the step above may end within it.
        let name = self.text.get(start..self.at).unwrap_or_default();
        self.take_while(|byte| byte.is_ascii_whitespace());
        if self.peek() != Some(b'=') {
            return Some((name, ""));
        }
        self.at += 1;
        self.take_while(|byte| byte.is_ascii_whitespace());
        let value = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.take_while(|byte| byte != quote);
                self.at = self.text.len().min(self.at + 1);
                value
            }
            _ => self.take_while(|byte| !byte.is_ascii_whitespace() && byte != b'>'),
        };
        Some((name, value))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take_while(&mut self, matches: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest
            .iter()
            .position(|&byte| !matches(byte))
            .unwrap_or(rest.len());
        let start = self.at;
        self.at += length;
        self.text.get(start..self.at).unwrap_or_default()
    }
}
