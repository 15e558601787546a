//! What went wrong with the API, in a person's words. What to do about it depends on where they
//! sit, and is told by the front ends.

use super::retry::{ApiError, ApiErrorKind};

/// What went wrong, for somebody who asked this model with the access of this variable.
pub fn describe_api_error(trouble: &ApiError, model: &str, variable: &str) -> String {
    let why = &trouble.message;
    match (&trouble.kind, trouble.status()) {
        (_, Some(401 | 403)) => format!("the API rejected {variable}: {why}"),
        (_, Some(404)) => format!("the API does not know the model `{model}`: {why}"),
        (_, Some(402)) => format!("billing error: {why}"),
        (_, Some(429)) => format!("rate limited: {why}"),
        (_, Some(400 | 413)) => format!("the API rejected the request: {why}"),
        (_, Some(status)) => format!("the API failed ({status}): {why}"),
        (ApiErrorKind::Certificate, None) => format!("certificate error: {why}"),
        (_, None) => format!("cannot reach the API: {why}"),
    }
}
