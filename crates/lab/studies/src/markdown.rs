//! The page of a study whose report is Markdown: headings, paragraphs, tables and blocks of code are all that it has.

use std::fmt::Write;

use super::page::{STYLE, escape};

/// A page with the figure on top.
pub(super) fn page(title: &str, svg: &str, report: &str) -> String {
    let mut body = String::new();
    write_body(&mut body, report).expect("a string takes all");
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<figure>
{svg}
</figure>
{body}</body>
</html>
"#
    )
}

fn write_body(body: &mut String, report: &str) -> std::fmt::Result {
    let mut rows = 0;
    let mut is_code = false;
    for line in report.lines().chain([""]) {
        if line.starts_with("```") {
            is_code = !is_code;
            body.push_str(if is_code { "<pre>" } else { "</pre>\n" });
            continue;
        }
        if is_code {
            writeln!(body, "{}", escape(line))?;
            continue;
        }
        if let Some(cells) = line.strip_prefix('|') {
            if rows == 0 {
                body.push_str("<div class=\"wide\"><table>\n");
            }
            // The second row only says how columns are set.
            if rows != 1 {
                let tag = if rows == 0 { "th" } else { "td" };
                let cells = cells.trim_end_matches('|').split('|').map(|cell| escape(cell.trim()));
                let cells: String = cells.map(|cell| format!("<{tag}>{cell}</{tag}>")).collect();
                writeln!(body, "<tr>{cells}</tr>")?;
            }
            rows += 1;
            continue;
        }
        if rows > 0 {
            body.push_str("</table></div>\n");
            rows = 0;
        }
        if let Some(heading) = line.strip_prefix("## ") {
            writeln!(body, "<h2>{}</h2>", escape(heading))?;
        } else if let Some(heading) = line.strip_prefix("# ") {
            writeln!(body, "<h1>{}</h1>", escape(heading))?;
        } else if !line.is_empty() {
            writeln!(body, "<p>{}</p>", escape(line))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_tables_and_paragraphs_become_html() {
        let page = page(
            "title",
            "<svg/>",
            "# One\n\n| a | b |\n|---|---|\n| 1 < 2 | 3 |\n\ntext\n\n```toml\n[a]\n\n# b\n```\n",
        );
        let expected = "<h1>One</h1>\n<div class=\"wide\"><table>\n<tr><th>a</th><th>b</th></tr>\n\
                        <tr><td>1 &lt; 2</td><td>3</td></tr>\n</table></div>\n<p>text</p>\n<pre>[a]\n\n# b\n</pre>\n</body>";
        assert!(page.contains(expected), "{page}");
    }
}
