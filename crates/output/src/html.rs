//! HTML → Markdown, by `htmd`, with two things of our own: before it the HTML is tamed, so that no
//! input makes it run long or deep, and tables are written by us, because it loses row headers.

mod table;
mod tame;

use std::sync::OnceLock;

use htmd::element_handler::Handlers;
use htmd::options::{BulletListMarker, Options};
use htmd::{Element, HtmlToMarkdown};

/// The Markdown of the first so many bytes of HTML.
pub(crate) fn markdown(html: &str, most: usize) -> String {
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
    let cut = html.floor_char_boundary(most);
    let mut markdown = converter
        .convert(&tame::tame(&html[..cut]))
        .unwrap_or_default();
    if cut < html.len() {
        markdown.push_str("\n\n[… the rest of the HTML is elided …]");
    }
    markdown
}
