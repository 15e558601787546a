//! Traces as requests of OTLP, of a size that receivers take.
//!
//! An [`OtlpPacker`] reads the texts of spans one after the other and fills requests with them, so
//! that no more than a request is ever in memory. A span that alone is larger than a request
//! may be is told with shorter texts.

mod attribute_buffer;
mod attribute_names;
mod span_attributes;

use std::sync::Arc;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource as WireResource;
use opentelemetry_proto::tonic::trace::v1 as wire;
use prost::Message;
use unspool_model::time::Time;

use crate::spans::{SessionTurnTraces, TraceSpan, TraceSpanKind, TraceSpanLevel, TurnTrace};
use crate::trace_id::{SpanId, TraceId};
use attribute_buffer::{AttributeBuffer, field, head, sized};

/// How large things may be, and under which names texts are told.
#[derive(Clone, Copy, Debug)]
pub struct OtlpLimits {
    /// Bytes of a request before it is compressed.
    pub bytes: usize,
    /// Under which names texts are told.
    pub texts: TextAttributes,
}

impl Default for OtlpLimits {
    fn default() -> OtlpLimits {
        OtlpLimits {
            bytes: 4 << 20,
            texts: TextAttributes::default(),
        }
    }
}

/// Under which names the texts of spans are told. Everything short is told under all of them;
/// a text that is told three times makes requests three times as large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextAttributes {
    /// `langfuse.observation.input` and `.output`.
    pub langfuse: bool,
    /// `gen_ai.input.messages`, `gen_ai.tool.call.arguments` and the like.
    pub gen_ai: bool,
    /// `input.value` and `output.value` of OpenInference.
    pub open_inference: bool,
}

impl Default for TextAttributes {
    fn default() -> TextAttributes {
        TextAttributes {
            langfuse: true,
            gen_ai: true,
            open_inference: true,
        }
    }
}

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpResource {
    /// `service.name`.
    pub service: String,
    /// The version of this program.
    pub version: String,
    /// `host.name`.
    pub host: Option<String>,
    /// Further attributes, such as those of `OTEL_RESOURCE_ATTRIBUTES`. They come last and
    /// win over those above.
    pub more: Vec<(String, String)>,
}

impl Default for OtlpResource {
    fn default() -> OtlpResource {
        OtlpResource {
            service: "claude-code".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: None,
            more: Vec::new(),
        }
    }
}

impl OtlpResource {
    fn wire(&self) -> WireResource {
        let mut all = vec![("service.name".to_owned(), self.service.clone())];
        all.extend(self.host.clone().map(|host| ("host.name".to_owned(), host)));
        for (key, value) in &self.more {
            all.retain(|(other, _)| other != key);
            all.push((key.clone(), value.clone()));
        }
        let attributes = all.into_iter().map(|(key, value)| KeyValue {
            key,
            value: Some(AnyValue {
                value: Some(Value::StringValue(value)),
            }),
            ..KeyValue::default()
        });
        WireResource {
            attributes: attributes.collect(),
            ..WireResource::default()
        }
    }
}

/// What stands in every request: who sends, and by which library.
#[derive(Debug, PartialEq, Eq)]
struct OtlpSender {
    resource: Vec<u8>,
    scope: Vec<u8>,
}

/// Of a request, its spans of one resource; of those, the resource; of those, the spans of one
/// library; and so on: the first and second field of messages that say how long they are.
const FIRST: u8 = 1 << 3 | 2;
const SECOND: u8 = 2 << 3 | 2;

impl OtlpSender {
    /// The length of a request whose spans take so many bytes.
    fn bytes(&self, spans: usize) -> usize {
        sized(self.list(spans))
    }

    fn list(&self, spans: usize) -> usize {
        sized(self.resource.len()) + sized(sized(self.scope.len()) + spans)
    }

    /// A request with these spans.
    fn request(&self, spans: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes(spans.len()));
        head(&mut out, FIRST, self.list(spans.len()));
        field(&mut out, FIRST, &self.resource);
        head(&mut out, SECOND, sized(self.scope.len()) + spans.len());
        field(&mut out, FIRST, &self.scope);
        out.extend_from_slice(spans);
        out
    }
}

/// A trace with more spans than this may well fill a request.
const FEW: usize = 16;

/// Fills requests with spans, in order.
pub struct OtlpPacker {
    limits: OtlpLimits,
    batch: OtlpRequest,
    /// The attributes of the span at hand; its memory is used again.
    own: AttributeBuffer,
}

impl OtlpPacker {
    /// An empty one.
    pub fn new(limits: OtlpLimits, resource: &OtlpResource) -> OtlpPacker {
        let scope = InstrumentationScope {
            name: "unspool".to_owned(),
            version: resource.version.clone(),
            ..InstrumentationScope::default()
        };
        let sender = OtlpSender {
            resource: resource.wire().encode_to_vec(),
            scope: scope.encode_to_vec(),
        };
        OtlpPacker {
            limits,
            batch: OtlpRequest::new(Arc::new(sender)),
            own: AttributeBuffer::default(),
        }
    }

    /// Reads the texts of a trace and adds its spans; `full` takes every request that is full.
    /// If `full` fails, the rest of the trace is not added and the packer is of no more use.
    pub fn add<E>(
        &mut self,
        traces: &SessionTurnTraces<'_>,
        trace: &TurnTrace,
        full: &mut dyn FnMut(OtlpRequest) -> Result<(), E>,
    ) -> Result<(), E> {
        let common = span_attributes::common(traces, trace);
        for span in &trace.spans {
            let fields = self.make(traces, trace, span, &common);
            let len = fields.len() + common.bytes.len() + self.own.bytes.len();
            let batch = &self.batch;
            let grown = batch.spans.len() + sized(len);
            if !batch.ids.is_empty() && batch.sender.bytes(grown) > self.limits.bytes {
                full(self.take())?;
            }
            let batch = &mut self.batch;
            if batch.spans.is_empty() {
                // Most requests get full; growing to that would copy it all once more.
                let spare = trace.spans.len() > FEW;
                batch
                    .spans
                    .reserve(if spare { self.limits.bytes } else { len });
            }
            head(&mut batch.spans, SECOND, len);
            for part in [&fields, &common.bytes, &self.own.bytes] {
                batch.spans.extend_from_slice(part);
            }
            batch.places.push(batch.spans.len());
            batch.ids.push((trace.id, span.id));
        }
        self.batch.ends.push(trace.id);
        Ok(())
    }

    /// What has not been sent yet.
    pub fn finish(&mut self) -> Option<OtlpRequest> {
        (!self.batch.ids.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> OtlpRequest {
        let empty = OtlpRequest::new(Arc::clone(&self.batch.sender));
        std::mem::replace(&mut self.batch, empty)
    }

    /// Writes the attributes of a span, with texts as short as it takes to fit into a
    /// request, and gives its other fields.
    fn make(
        &mut self,
        traces: &SessionTurnTraces<'_>,
        trace: &TurnTrace,
        span: &TraceSpan,
        common: &AttributeBuffer,
    ) -> Vec<u8> {
        let (limits, own) = (self.limits, &mut self.own);
        let sender = &self.batch.sender;
        let fits = |fields: &[u8], own: &AttributeBuffer| {
            let len = fields.len() + common.bytes.len() + own.bytes.len();
            sender.bytes(sized(len)) <= limits.bytes
        };
        let mut shape = traces.shape();
        let status = span_attributes::of(traces, span, &shape, limits.texts, own);
        let mut made = fields(trace, span, status);
        let mut chars = limits.bytes / 4;
        while !fits(&made, own) && chars > 0 {
            shape.max_chars = Some(shape.max_chars.map_or(chars, |limit| limit.min(chars)));
            let status = span_attributes::of(traces, span, &shape, limits.texts, own);
            made = fields(trace, span, status);
            chars /= 4;
        }
        if !fits(&made, own) {
            // Thousands of short texts: none of them is too long, all of them together are.
            own.bytes.clear();
            own.text(attribute_names::TYPE, span.kind.name());
            own.text(
                attribute_names::STATUS_MESSAGE,
                "omitted: larger than the request limit",
            );
            made = fields(trace, span, None);
        }
        made
    }
}

/// A span as bytes, without its attributes.
fn fields(trace: &TurnTrace, span: &TraceSpan, status: Option<String>) -> Vec<u8> {
    let fields = wire::Span {
        trace_id: trace.id.0.to_vec(),
        span_id: span.id.0.to_vec(),
        parent_span_id: span.parent.map_or(Vec::new(), |parent| parent.0.to_vec()),
        name: span.name.clone(),
        kind: match span.kind {
            TraceSpanKind::Generation => wire::span::SpanKind::Client as i32,
            _ => wire::span::SpanKind::Internal as i32,
        },
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.end),
        status: (span.level == TraceSpanLevel::Error).then(|| wire::Status {
            code: wire::status::StatusCode::Error as i32,
            message: status.unwrap_or_default(),
        }),
        ..wire::Span::default()
    };
    fields.encode_to_vec()
}

/// A time as OTLP has it; 0 where there is none.
fn nanos(time: Option<Time>) -> u64 {
    let milliseconds = time.and_then(|time| u64::try_from(time.0).ok());
    milliseconds.map_or(0, |milliseconds| milliseconds.saturating_mul(1_000_000))
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct OtlpRequest {
    sender: Arc<OtlpSender>,
    /// The spans, one behind the other.
    spans: Vec<u8>,
    /// Where each of them ends.
    places: Vec<usize>,
    ids: Vec<(TraceId, SpanId)>,
    ends: Vec<TraceId>,
}

impl OtlpRequest {
    fn new(sender: Arc<OtlpSender>) -> OtlpRequest {
        OtlpRequest {
            sender,
            spans: Vec::new(),
            places: Vec::new(),
            ids: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The request as protobuf.
    pub fn encode(&self) -> Vec<u8> {
        self.sender.request(&self.spans)
    }

    /// How many bytes that is.
    pub fn bytes(&self) -> usize {
        self.sender.bytes(self.spans.len())
    }

    /// The request as a receiver reads it.
    pub fn request(&self) -> ExportTraceServiceRequest {
        ExportTraceServiceRequest::decode(self.encode().as_slice()).unwrap_or_default()
    }

    /// The spans in it.
    pub fn spans(&self) -> &[(TraceId, SpanId)] {
        &self.ids
    }

    /// Traces of which nothing more follows. With the requests before this one they are whole.
    pub fn ends(&self) -> &[TraceId] {
        &self.ends
    }

    /// Two halves, to find out which span a receiver does not take; the batch itself if it is
    /// but one span. What ends in it ends with the second half.
    pub fn split(mut self) -> Result<(OtlpRequest, OtlpRequest), Box<OtlpRequest>> {
        let half = self.ids.len() / 2;
        if half == 0 {
            return Err(Box::new(self));
        }
        let cut = self.places[half - 1];
        let mut second = OtlpRequest::new(Arc::clone(&self.sender));
        second.spans = self.spans.split_off(cut);
        second.places = self.places.split_off(half);
        second.places.iter_mut().for_each(|place| *place -= cut);
        second.ids = self.ids.split_off(half);
        second.ends = std::mem::take(&mut self.ends);
        Ok((self, second))
    }
}
