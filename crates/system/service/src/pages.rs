//! The page: its files, as they stand in `page/`, and how they are sent.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// A router with all files of the page.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.iter().fold(Router::new(), |router, &(path, text)| router.route(path, get(async move || sent(path, text))))
}

fn sent(path: &str, text: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind(path)),
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'self'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text).into_response()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        _ => "text/html; charset=utf-8",
    }
}

/// Where a browser finds each file.
const FILES: [(&str, &str); 19] = [
    ("/", include_str!("../page/index.html")),
    ("/main.js", include_str!("../page/main.js")),
    ("/api.js", include_str!("../page/api.js")),
    ("/dom.js", include_str!("../page/dom.js")),
    ("/chart.js", include_str!("../page/chart.js")),
    ("/bars.js", include_str!("../page/bars.js")),
    ("/sources.js", include_str!("../page/sources.js")),
    ("/trend.js", include_str!("../page/trend.js")),
    ("/views/shift.js", include_str!("../page/views/shift.js")),
    ("/views/dataflow.js", include_str!("../page/views/dataflow.js")),
    ("/views/events.js", include_str!("../page/views/events.js")),
    ("/views/quality.js", include_str!("../page/views/quality.js")),
    ("/views/trends.js", include_str!("../page/views/trends.js")),
    ("/views/messages.js", include_str!("../page/views/messages.js")),
    ("/views/runs.js", include_str!("../page/views/runs.js")),
    ("/views/setup.js", include_str!("../page/views/setup.js")),
    ("/page.css", include_str!("../page/page.css")),
    ("/icon.svg", include_str!("../page/icon.svg")),
    ("/api/openapi.json", include_str!("../page/openapi.json")),
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn each_file_of_the_page_is_sent() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let files = [page.clone(), page.join("views")].into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
        let files: Vec<_> = files.map(|file| file.unwrap().path()).filter(|path| path.is_file()).collect();
        assert_eq!(files.len(), FILES.len());
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let path = file.strip_prefix(&page).unwrap().display().to_string();
            let sent = FILES.iter().find(|(_, sent)| *sent == text).map(|(path, _)| *path);
            let is_sent_as = |sent: &str| sent == format!("/{path}") || sent == "/" || sent == format!("/api/{path}");
            assert!(sent.is_some_and(is_sent_as), "{path} {sent:?}");
        }
    }
}
