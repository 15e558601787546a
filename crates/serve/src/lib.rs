//! The dashboard and its API, on this machine only.
