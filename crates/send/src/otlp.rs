//! Traces as requests of OTLP, of a size that receivers take.
//!
//! A [`Packer`] reads the texts of spans one after the other and fills requests with them, so
//! that no more than a request is ever in memory. A span that alone is larger than a request
//! may be is told with shorter texts.

mod attributes;
mod names;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource as WireResource;
use opentelemetry_proto::tonic::trace::v1 as wire;
use prost::Message;
use prost::encoding::encoded_len_varint;

use crate::id::{SpanId, TraceId};
use crate::spans::{Kind, Level, Shape, Span, Trace, Traces};
use attributes::Attributes;

/// How large things may be, and under which names texts are told.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a request before it is compressed.
    pub bytes: usize,
    /// Under which names texts are told.
    pub texts: Texts,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bytes: 4 << 20,
            texts: Texts::default(),
        }
    }
}

/// Under which names the texts of spans are told. Everything short is told under all of them;
/// a text that is told three times makes requests three times as large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts {
    /// `langfuse.observation.input` and `.output`.
    pub langfuse: bool,
    /// `gen_ai.input.messages`, `gen_ai.tool.call.arguments` and the like.
    pub gen_ai: bool,
    /// `input.value` and `output.value` of OpenInference.
    pub open_inference: bool,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts {
            langfuse: true,
            gen_ai: true,
            open_inference: true,
        }
    }
}

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
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

impl Default for Resource {
    fn default() -> Resource {
        Resource {
            service: "claude-code".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: None,
            more: Vec::new(),
        }
    }
}

impl Resource {
    fn wire(&self) -> WireResource {
        let mut all = vec![("service.name".to_owned(), self.service.clone())];
        all.extend(self.host.clone().map(|host| ("host.name".to_owned(), host)));
        for (key, value) in &self.more {
            all.retain(|(other, _)| other != key);
            all.push((key.clone(), value.clone()));
        }
        let attributes = all.into_iter();
        WireResource {
            attributes: attributes
                .map(|(key, value)| attributes::text(key, value))
                .collect(),
            ..WireResource::default()
        }
    }
}

/// Fills requests with spans, in order.
pub struct Packer {
    limits: Limits,
    resource: WireResource,
    scope: InstrumentationScope,
    /// Bytes of a request without spans.
    frame: usize,
    spans: Vec<wire::Span>,
    ids: Vec<(TraceId, SpanId)>,
    ends: Vec<TraceId>,
    bytes: usize,
}

impl Packer {
    /// An empty one.
    pub fn new(limits: Limits, resource: &Resource) -> Packer {
        let scope = InstrumentationScope {
            name: "unspool".to_owned(),
            version: resource.version.clone(),
            ..InstrumentationScope::default()
        };
        let mut packer = Packer {
            limits,
            resource: resource.wire(),
            scope,
            frame: 0,
            spans: Vec::new(),
            ids: Vec::new(),
            ends: Vec::new(),
            bytes: 0,
        };
        let empty = packer.batch();
        // The lengths of the two lists around the spans grow with them.
        packer.frame = empty.bytes() + 16;
        packer.bytes = packer.frame;
        packer
    }

    /// Reads the texts of a trace and adds its spans; `full` takes every request that is full.
    pub fn add<E>(
        &mut self,
        traces: &Traces<'_>,
        trace: &Trace,
        full: &mut dyn FnMut(Batch) -> Result<(), E>,
    ) -> Result<(), E> {
        let common = attributes::common(traces, trace);
        for span in &trace.spans {
            let made = self.fitting(traces, trace, span, &common);
            let bytes = framed(made.encoded_len());
            if !self.spans.is_empty() && self.bytes + bytes > self.limits.bytes {
                full(self.batch())?;
            }
            self.bytes += bytes;
            self.spans.push(made);
            self.ids.push((trace.id, span.id));
        }
        self.ends.push(trace.id);
        Ok(())
    }

    /// What has not been sent yet.
    pub fn finish(&mut self) -> Option<Batch> {
        (!self.spans.is_empty()).then(|| self.batch())
    }

    fn batch(&mut self) -> Batch {
        self.bytes = self.frame;
        Batch {
            request: ExportTraceServiceRequest {
                resource_spans: vec![wire::ResourceSpans {
                    resource: Some(self.resource.clone()),
                    scope_spans: vec![wire::ScopeSpans {
                        scope: Some(self.scope.clone()),
                        spans: std::mem::take(&mut self.spans),
                        schema_url: String::new(),
                    }],
                    schema_url: String::new(),
                }],
            },
            ids: std::mem::take(&mut self.ids),
            ends: std::mem::take(&mut self.ends),
        }
    }

    /// The span, with texts as short as it takes to fit into a request.
    fn fitting(
        &self,
        traces: &Traces<'_>,
        trace: &Trace,
        span: &Span,
        common: &[KeyValue],
    ) -> wire::Span {
        let room = self.limits.bytes.saturating_sub(self.frame);
        let fits = |made: &wire::Span| framed(made.encoded_len()) <= room;
        let mut shape = traces.shape();
        let mut made = self.span(traces, trace, span, common, &shape);
        let mut chars = room / 4;
        while !fits(&made) && chars > 0 {
            shape.max_chars = Some(shape.max_chars.map_or(chars, |limit| limit.min(chars)));
            made = self.span(traces, trace, span, common, &shape);
            chars /= 4;
        }
        if !fits(&made) {
            // Thousands of short texts: none of them is too long, all of them together are.
            made.attributes = common.to_vec();
            made.attributes.push(attributes::text(
                names::STATUS_MESSAGE,
                "left out: larger than a request may be",
            ));
        }
        made
    }

    fn span(
        &self,
        traces: &Traces<'_>,
        trace: &Trace,
        span: &Span,
        common: &[KeyValue],
        shape: &Shape<'_>,
    ) -> wire::Span {
        let Attributes { list, status } =
            attributes::of(traces, span, common, shape, self.limits.texts);
        let nanos = |time: Option<unspool_model::time::Time>| {
            let milliseconds = time.and_then(|time| u64::try_from(time.0).ok());
            milliseconds.map_or(0, |milliseconds| milliseconds.saturating_mul(1_000_000))
        };
        wire::Span {
            trace_id: trace.id.0.to_vec(),
            span_id: span.id.0.to_vec(),
            parent_span_id: span.parent.map_or(Vec::new(), |parent| parent.0.to_vec()),
            name: span.name.clone(),
            kind: match span.kind {
                Kind::Generation => wire::span::SpanKind::Client as i32,
                _ => wire::span::SpanKind::Internal as i32,
            },
            start_time_unix_nano: nanos(span.start),
            end_time_unix_nano: nanos(span.end),
            attributes: list,
            status: (span.level == Level::Error).then(|| wire::Status {
                code: wire::status::StatusCode::Error as i32,
                message: status.unwrap_or_default(),
            }),
            ..wire::Span::default()
        }
    }
}

/// The bytes of a span in its list.
fn framed(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    request: ExportTraceServiceRequest,
    ids: Vec<(TraceId, SpanId)>,
    ends: Vec<TraceId>,
}

impl Batch {
    /// The request as protobuf.
    pub fn encode(&self) -> Vec<u8> {
        self.request.encode_to_vec()
    }

    /// How many bytes that is.
    pub fn bytes(&self) -> usize {
        self.request.encoded_len()
    }

    /// The request.
    pub fn request(&self) -> &ExportTraceServiceRequest {
        &self.request
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
    pub fn split(mut self) -> Result<(Batch, Batch), Box<Batch>> {
        let half = self.ids.len() / 2;
        if half == 0 {
            return Err(Box::new(self));
        }
        let mut spans = std::mem::take(self.list());
        let rest = spans.split_off(half);
        let mut second = self.clone();
        *self.list() = spans;
        *second.list() = rest;
        second.ids = self.ids.split_off(half);
        self.ends.clear();
        Ok((self, second))
    }

    /// The spans of the request, which has one list of them.
    fn list(&mut self) -> &mut Vec<wire::Span> {
        let lists = &mut self.request.resource_spans;
        if lists.is_empty() {
            lists.push(wire::ResourceSpans::default());
        }
        let scopes = &mut lists[0].scope_spans;
        if scopes.is_empty() {
            scopes.push(wire::ScopeSpans::default());
        }
        &mut scopes[0].spans
    }
}
