//! Talking to a model in the terminal: the editor, what is shown of a running turn, and the
//! questions it asks.

mod editor;
mod paint;
