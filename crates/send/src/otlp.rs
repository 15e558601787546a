//! Traces as requests of OTLP.
