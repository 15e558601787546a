//! The terminal browser.
