//! HTML to Markdown conversion with `htmd`. Before it, the HTML is sanitized so that no input takes long or
//! nests deeply. Tables are written here, because `htmd` drops row headers (decision 11).

mod sanitize;
mod table;

use std::sync::OnceLock;

use htmd::element_handler::Handlers;
use htmd::options::{BulletListMarker, Options};
use htmd::{Element, HtmlToMarkdown};

/// Converts the first `limit` bytes of HTML to Markdown.
pub(crate) fn markdown(html: &str, limit: usize) -> String {
    static CONVERTER: OnceLock<HtmlToMarkdown> = OnceLock::new();
    let converter = CONVERTER.get_or_init(|| {
        HtmlToMarkdown::builder()
            .options(Options {
                bullet_list_marker: BulletListMarker::Dash,
                ul_bullet_spacing: 1,
                ol_number_spacing: 1,
                ..Options::default()
            })
            .add_handler(
                vec!["table"],
                |handlers: &dyn Handlers, element: Element<'_>| {
                    table::write(handlers, element.node)
                },
            )
            .build()
    });
    let end = html.floor_char_boundary(limit);
    let mut markdown = converter
        .convert(&sanitize::sanitize(&html[..end]))
        .unwrap_or_default();
    if end < html.len() {
        markdown.push_str("\n\n[… the rest of the HTML is elided …]");
    }
    markdown
}
