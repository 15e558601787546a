//! A message as it streams in: events become blocks.
//!
//! Every event and delta of the API is known; what is not is passed over, so that a new kind
//! breaks nothing. A block is handed out when it has ended.

use serde_json::{Map, Value, json};

/// What an event brought.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageEvent {
    /// The message began: id and model are known.
    Began,
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A block has ended.
    Block(StreamedBlock),
    /// Why it stopped and what it took are known.
    Stopped,
    /// The message has ended.
    Ended,
    /// The API failed in the middle: what kind, and what it said.
    Failed(String, String),
}

/// A finished block.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamedBlock {
    /// As it is sent back.
    pub json: Value,
    /// The input of a call, where it is no JSON object.
    pub broken: Option<String>,
}

impl StreamedBlock {
    /// What kind it is.
    pub fn kind(&self) -> &str {
        self.json["type"].as_str().unwrap_or_default()
    }
}

/// What is known of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamedMessage {
    /// Its id.
    pub id: String,
    /// The model that speaks.
    pub model: String,
    /// Its tokens so far: what came last counts, nothing is added up.
    pub usage: Map<String, Value>,
    /// Why it stopped.
    pub stop: Option<String>,
    /// The sequence it stopped at.
    pub sequence: Option<String>,
    /// More about a refusal.
    pub details: Value,
    /// Whether it ended as it should.
    pub ended: bool,
    /// How many blocks ended.
    pub finished: usize,
    open: Vec<Option<OpenBlock>>,
}

#[derive(Clone, Debug, PartialEq)]
struct OpenBlock {
    block: Map<String, Value>,
    input: String,
}

/// So many blocks no message has; an index beyond is a mistake.
const MOST: usize = 10_000;

impl StreamedMessage {
    /// Takes an event.
    pub fn take(&mut self, event: &Value) -> Option<MessageEvent> {
        match event["type"].as_str()? {
            "message_start" => {
                let message = &event["message"];
                self.id = text(message, "id").to_owned();
                self.model = text(message, "model").to_owned();
                self.merge(&message["usage"]);
                Some(MessageEvent::Began)
            }
            "content_block_start" => {
                let at = index(event)?;
                if self.open.len() <= at {
                    self.open.resize(at + 1, None);
                }
                self.open[at] = Some(OpenBlock {
                    block: event["content_block"].as_object()?.clone(),
                    input: String::new(),
                });
                None
            }
            "content_block_delta" => {
                let open = self.open.get_mut(index(event)?)?.as_mut()?;
                open.grow(&event["delta"])
            }
            "content_block_stop" => {
                let open = self.open.get_mut(index(event)?)?.take()?;
                self.finished += 1;
                Some(MessageEvent::Block(open.finish()))
            }
            "message_delta" => {
                let delta = &event["delta"];
                if let Some(stop) = delta["stop_reason"].as_str() {
                    self.stop = Some(stop.to_owned());
                }
                self.sequence = delta["stop_sequence"].as_str().map(str::to_owned);
                if !delta["stop_details"].is_null() {
                    self.details = delta["stop_details"].clone();
                }
                self.merge(&event["usage"]);
                Some(MessageEvent::Stopped)
            }
            "message_stop" => {
                self.ended = true;
                Some(MessageEvent::Ended)
            }
            "error" => {
                let error = &event["error"];
                Some(MessageEvent::Failed(
                    text(error, "type").to_owned(),
                    text(error, "message").to_owned(),
                ))
            }
            _ => None,
        }
    }

    fn merge(&mut self, usage: &Value) {
        for (name, value) in usage.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.usage.insert(name.clone(), value.clone());
            }
        }
    }
}

impl OpenBlock {
    fn grow(&mut self, delta: &Value) -> Option<MessageEvent> {
        match delta["type"].as_str()? {
            "text_delta" => {
                let more = delta["text"].as_str()?;
                self.append("text", more);
                Some(MessageEvent::Text(more.to_owned()))
            }
            "thinking_delta" => {
                let more = delta["thinking"].as_str()?;
                self.append("thinking", more);
                Some(MessageEvent::Thinking(more.to_owned()))
            }
            "signature_delta" => {
                self.append("signature", delta["signature"].as_str()?);
                None
            }
            "input_json_delta" => {
                self.input.push_str(delta["partial_json"].as_str()?);
                None
            }
            "citations_delta" => {
                let citations = self.block.entry("citations").or_insert(Value::Null);
                if !citations.is_array() {
                    *citations = json!([]);
                }
                citations.as_array_mut()?.push(delta["citation"].clone());
                None
            }
            _ => None,
        }
    }

    fn append(&mut self, field: &str, more: &str) {
        match self.block.get_mut(field) {
            Some(Value::String(text)) => text.push_str(more),
            _ => drop(self.block.insert(field.to_owned(), more.into())),
        }
    }

    fn finish(mut self) -> StreamedBlock {
        let calls = matches!(
            self.block.get("type").and_then(Value::as_str),
            Some("tool_use" | "server_tool_use" | "mcp_tool_use")
        );
        let mut broken = None;
        if calls {
            let given = match self.input.trim() {
                "" => self.block.remove("input"),
                text => serde_json::from_str(text).ok(),
            };
            let input = given.filter(Value::is_object);
            if input.is_none() && !self.input.trim().is_empty() {
                broken = Some(self.input);
            }
            self.block
                .insert("input".to_owned(), input.unwrap_or_else(|| json!({})));
        }
        StreamedBlock {
            json: Value::Object(self.block),
            broken,
        }
    }
}

fn index(event: &Value) -> Option<usize> {
    let at = usize::try_from(event["index"].as_u64()?).ok()?;
    (at < MOST).then_some(at)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(events: &[Value]) -> (StreamedMessage, Vec<MessageEvent>) {
        let mut message = StreamedMessage::default();
        let told = events.iter().filter_map(|event| message.take(event));
        let told = told.collect();
        (message, told)
    }

    fn block(start: Value, deltas: &[Value]) -> StreamedBlock {
        let mut events =
            vec![json!({"type": "content_block_start", "index": 0, "content_block": start})];
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": 0}));
        let (_, told) = all(&events);
        let last = told.into_iter().next_back();
        match last {
            Some(MessageEvent::Block(block)) => block,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn thinking_keeps_its_signature_even_without_a_word() {
        let start = json!({"type": "thinking", "thinking": "", "signature": ""});
        let spoken = block(
            start.clone(),
            &[
                json!({"type": "thinking_delta", "thinking": "a"}),
                json!({"type": "thinking_delta", "thinking": "b"}),
                json!({"type": "signature_delta", "signature": "S"}),
            ],
        );
        assert_eq!(
            spoken.json,
            json!({"type": "thinking", "thinking": "ab", "signature": "S"})
        );
        let silent = block(
            start,
            &[json!({"type": "signature_delta", "signature": "S"})],
        );
        assert_eq!(silent.json["signature"], "S");
        let redacted = json!({"type": "redacted_thinking", "data": "xyz"});
        assert_eq!(block(redacted.clone(), &[]).json, redacted);
    }

    #[test]
    fn the_input_of_a_call_is_parsed_when_the_block_ends() {
        let start = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
        let piece = |text: &str| json!({"type": "input_json_delta", "partial_json": text});
        let whole = block(start.clone(), &[piece(""), piece("{\"a\":"), piece("1}")]);
        assert_eq!(whole.json["input"], json!({"a": 1}));
        assert_eq!(block(start.clone(), &[]).json["input"], json!({}));
        for broken in ["{\"a\":", "[1]", "nul"] {
            let cut = block(start.clone(), &[piece(broken)]);
            assert_eq!(cut.json["input"], json!({}));
            assert_eq!(cut.broken.as_deref(), Some(broken));
        }
    }

    #[test]
    fn citations_and_results_of_the_apis_own_tools_are_kept_whole() {
        let cited = block(
            json!({"type": "text", "text": ""}),
            &[
                json!({"type": "citations_delta", "citation": {"url": "x"}}),
                json!({"type": "text_delta", "text": "said"}),
                json!({"type": "delta_of_tomorrow", "text": "ignored"}),
            ],
        );
        assert_eq!(
            cited.json,
            json!({"type": "text", "text": "said", "citations": [{"url": "x"}]})
        );
        let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"encrypted_content": "e"}]});
        assert_eq!(block(found.clone(), &[]).json, found);
        let fallback = json!({"type": "fallback", "from": "a"});
        assert_eq!(block(fallback.clone(), &[]).json, fallback);
    }

    #[test]
    fn usage_is_overwritten_and_never_added() {
        let (message, _) = all(&[
            json!({"type": "message_start", "message": {"id": "m", "model": "x", "usage": {"input_tokens": 10, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            json!({"type": "event_of_tomorrow"}),
            json!({"type": "message_delta", "delta": {"stop_reason": null}, "usage": {"output_tokens": 5, "input_tokens": null}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
        ]);
        assert_eq!(message.usage["input_tokens"], 10);
        assert_eq!(message.usage["output_tokens"], 9);
        assert_eq!(message.stop.as_deref(), Some("end_turn"));
        assert!(!message.ended, "it ends with message_stop alone");
    }

    #[test]
    fn nonsense_is_passed_over() {
        let (message, told) = all(&[
            json!({"type": "content_block_delta", "index": 5, "delta": {"type": "text_delta", "text": "x"}}),
            json!({"type": "content_block_stop", "index": 5}),
            json!({"type": "content_block_start", "index": 99_999_999, "content_block": {}}),
            json!({"index": 0}),
            json!(null),
        ]);
        assert_eq!((message.finished, told), (0, vec![]));
    }
}
