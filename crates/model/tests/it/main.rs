//! Tests of the model from outside: what a reader of a transcript may rely on.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cases_blocks;
mod cases_chunks;
mod cases_classify;
mod cases_damage;
mod cases_merge;
mod cases_metadata;
mod cases_reader;
mod cases_resume;
mod cases_rows;
mod cases_status;
mod cases_tools;
mod cases_transcript;
mod cases_turns;
mod conformance;
mod corpus;
mod generated;
mod hostile;
mod make;
mod prices;
mod regressions;
mod resume_rules;
mod rules_graph;
mod rules_send;
mod seeds;
mod validity;
