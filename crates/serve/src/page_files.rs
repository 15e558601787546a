//! The page: files that were built before and are part of the program. They hold no data.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

use crate::request_guard;

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
struct PageAssets;

/// What the page's own files are, by their endings.
const TYPES: [(&str, &str); 9] = [
    (".html", "text/html; charset=utf-8"),
    (".js", "text/javascript; charset=utf-8"),
    (".css", "text/css; charset=utf-8"),
    (".svg", "image/svg+xml"),
    (".png", "image/png"),
    (".ico", "image/x-icon"),
    (".json", "application/json"),
    (".webmanifest", "application/manifest+json"),
    (".woff2", "font/woff2"),
];

/// A file of the page; for any other place that the page may have, the page itself.
pub fn page(path: &str) -> Response {
    let name = path.trim_start_matches('/');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-@".contains(&byte);
    let steps_up = name.split('/').any(|part| part == "..");
    if steps_up || !name.bytes().all(plain) || name.len() > 512 {
        return absent();
    }
    if !name.is_empty() && name != "index.html" && PageAssets::get(name).is_some() {
        return file(name, lasting(name));
    }
    if name.starts_with("assets/") || name.ends_with(".js") || name.ends_with(".css") {
        return absent();
    }
    file("index.html", "no-store")
}

/// Names of assets change with what is in them.
fn lasting(name: &str) -> &'static str {
    match name.starts_with("assets/") {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    }
}

fn file(name: &str, caching: &'static str) -> Response {
    let Some(file) = PageAssets::get(name) else {
        return absent();
    };
    let ends = |(ending, _): &&(&str, &str)| name.ends_with(ending);
    let kind = TYPES.iter().find(ends);
    let kind = kind.map_or("application/octet-stream", |(_, kind)| kind);
    let mut answer = Response::new(Body::from(file.data));
    let heads = answer.headers_mut();
    heads.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    heads.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    heads.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(request_guard::PAGE),
    );
    answer
}

fn absent() -> Response {
    (StatusCode::NOT_FOUND, "not found\n").into_response()
}
