//! Names of attributes, in three vocabularies.

// Langfuse, for the trace; on every span.
pub(super) const TRACE_NAME: &str = "langfuse.trace.name";
pub(super) const TRACE_TAGS: &str = "langfuse.trace.tags";
pub(super) const TRACE_METADATA: &str = "langfuse.trace.metadata.";
pub(super) const TRACE_INPUT: &str = "langfuse.trace.input";
pub(super) const TRACE_OUTPUT: &str = "langfuse.trace.output";
pub(super) const ENVIRONMENT: &str = "langfuse.environment";
pub(super) const RELEASE: &str = "langfuse.release";
pub(super) const AS_ROOT: &str = "langfuse.internal.as_root";
pub(super) const USER_ID: &str = "user.id";
pub(super) const SESSION_ID: &str = "session.id";

// Langfuse, for one observation.
pub(super) const TYPE: &str = "langfuse.observation.type";
pub(super) const INPUT: &str = "langfuse.observation.input";
pub(super) const OUTPUT: &str = "langfuse.observation.output";
pub(super) const METADATA: &str = "langfuse.observation.metadata.";
pub(super) const LEVEL: &str = "langfuse.observation.level";
pub(super) const STATUS_MESSAGE: &str = "langfuse.observation.status_message";
pub(super) const MODEL: &str = "langfuse.observation.model.name";
pub(super) const USAGE_DETAILS: &str = "langfuse.observation.usage_details";
pub(super) const COST_DETAILS: &str = "langfuse.observation.cost_details";

// OpenTelemetry's conventions for models.
pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(super) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const CACHE_READ: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_CREATION: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const AGENT_ID: &str = "gen_ai.agent.id";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";
pub(super) const ERROR_TYPE: &str = "error.type";

// OpenInference.
pub(super) const SPAN_KIND: &str = "openinference.span.kind";
pub(super) const INPUT_VALUE: &str = "input.value";
pub(super) const INPUT_MIME: &str = "input.mime_type";
pub(super) const OUTPUT_VALUE: &str = "output.value";
pub(super) const OUTPUT_MIME: &str = "output.mime_type";
pub(super) const LLM_MODEL: &str = "llm.model_name";
pub(super) const LLM_PROVIDER: &str = "llm.provider";
pub(super) const PROMPT_TOKENS: &str = "llm.token_count.prompt";
pub(super) const COMPLETION_TOKENS: &str = "llm.token_count.completion";
pub(super) const TOTAL_TOKENS: &str = "llm.token_count.total";
pub(super) const PROMPT_CACHE_READ: &str = "llm.token_count.prompt_details.cache_read";
pub(super) const PROMPT_CACHE_WRITE: &str = "llm.token_count.prompt_details.cache_write";
pub(super) const COST_TOTAL: &str = "llm.cost.total";
pub(super) const INFERENCE_TOOL: &str = "tool.name";
