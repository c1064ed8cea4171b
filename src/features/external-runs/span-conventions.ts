/*
 * How widespread libraries name in their spans what the OpenTelemetry conventions for generative AI have names for. The
 * attribute of OpenTelemetry stands where both do; of several names of others the first one that is there.
 */

/** Which operation a span is, by an attribute that says of what kind it is. Kinds that are not listed are the trace around. */
export const kindsOfSpan: readonly {
  readonly attribute: string;
  readonly operations: Readonly<Record<string, string>>;
}[] = [
  {
    // AI SDK, `ai.*`: what a function does is an agent's work, and its calls of the model lie below it.
    attribute: 'ai.operationId',
    operations: {
      'ai.generateText': 'invoke_agent',
      'ai.streamText': 'invoke_agent',
      'ai.generateObject': 'invoke_agent',
      'ai.streamObject': 'invoke_agent',
      'ai.generateText.doGenerate': 'chat',
      'ai.streamText.doStream': 'chat',
      'ai.generateObject.doGenerate': 'chat',
      'ai.streamObject.doStream': 'chat',
      'ai.embed.doEmbed': 'embeddings',
      'ai.embedMany.doEmbed': 'embeddings',
      'ai.toolCall': 'execute_tool',
    },
  },
  {
    // OpenInference
    attribute: 'openinference.span.kind',
    operations: { AGENT: 'invoke_agent', LLM: 'chat', EMBEDDING: 'embeddings', TOOL: 'execute_tool' },
  },
  {
    // OpenLLMetry: what a program marks as its own
    attribute: 'traceloop.span.kind',
    operations: { workflow: 'invoke_workflow', agent: 'invoke_agent', tool: 'execute_tool' },
  },
  {
    // OpenLLMetry before it took the names of OpenTelemetry
    attribute: 'llm.request.type',
    operations: { chat: 'chat', completion: 'text_completion', embedding: 'embeddings' },
  },
  {
    // Langfuse
    attribute: 'langfuse.observation.type',
    operations: { agent: 'invoke_agent', generation: 'chat', embedding: 'embeddings', tool: 'execute_tool' },
  },
  {
    // LangSmith
    attribute: 'langsmith.span.kind',
    operations: { llm: 'chat', embedding: 'embeddings', tool: 'execute_tool' },
  },
  {
    // Genkit
    attribute: 'genkit:metadata:subtype',
    operations: {
      flow: 'invoke_workflow',
      agent: 'invoke_agent',
      model: 'chat',
      embedder: 'embeddings',
      tool: 'execute_tool',
    },
  },
];

/** Operations whose spans are named after what they are, where nothing else names it. */
export const namedBySpan: readonly {
  readonly kind: string;
  readonly operation: string;
  readonly as: string;
}[] = [
  { kind: 'openinference.span.kind', operation: 'invoke_agent', as: 'gen_ai.agent.name' },
  { kind: 'openinference.span.kind', operation: 'execute_tool', as: 'gen_ai.tool.name' },
  { kind: 'langfuse.observation.type', operation: 'invoke_agent', as: 'gen_ai.agent.name' },
  { kind: 'langfuse.observation.type', operation: 'execute_tool', as: 'gen_ai.tool.name' },
  { kind: 'langsmith.span.kind', operation: 'execute_tool', as: 'gen_ai.tool.name' },
];

/** Names of facts, by the operation that has them; under `''` those of any. */
export const factNames: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  '': {
    'gen_ai.provider.name': ['gen_ai.system', 'ai.model.provider', 'llm.provider', 'llm.system'],
    'gen_ai.request.model': [
      ...['llm.request.model_name', 'llm.model_name', 'ai.model.id', 'embedding.model_name'],
      ...['langfuse.observation.model.name', 'langsmith.metadata.ls_model_name'],
    ],
    'gen_ai.response.model': ['ai.response.model', 'llm.response.model_name'],
    'gen_ai.response.finish_reasons': [
      'ai.response.finishReason',
      'llm.finish_reason',
      'gen_ai.completion.0.finish_reason',
    ],
    'gen_ai.conversation.id': [
      ...['ai.telemetry.metadata.sessionId', 'gcp.vertex.agent.session_id'],
      ...['traceloop.association.properties.session_id', 'traceloop.association.properties.thread_id'],
      ...['langsmith.metadata.session_id', 'langsmith.metadata.thread_id', 'langfuse.session.id', 'session.id'],
    ],
    'gen_ai.usage.input_tokens': [
      ...['gen_ai.usage.prompt_tokens', 'llm.token_count.prompt'],
      ...['ai.usage.inputTokens', 'ai.usage.promptTokens', 'ai.usage.tokens'],
    ],
    'gen_ai.usage.output_tokens': [
      ...['gen_ai.usage.completion_tokens', 'llm.token_count.completion'],
      ...['ai.usage.outputTokens', 'ai.usage.completionTokens'],
    ],
    'gen_ai.usage.total_tokens': ['llm.usage.total_tokens', 'llm.token_count.total', 'ai.usage.totalTokens'],
    'gen_ai.usage.cache_read.input_tokens': [
      ...['gen_ai.usage.cache_read_input_tokens', 'gen_ai.usage.input_tokens.cached'],
      ...['llm.token_count.prompt_details.cache_read', 'ai.usage.cachedInputTokens'],
    ],
    'gen_ai.usage.cache_creation.input_tokens': [
      ...['gen_ai.usage.cache_creation_input_tokens', 'gen_ai.usage.cache_write.input_tokens'],
      ...['gen_ai.usage.input_tokens.cache_write', 'llm.token_count.prompt_details.cache_write'],
      'ai.usage.inputTokenDetails.cacheWriteTokens',
    ],
    'gen_ai.usage.reasoning.output_tokens': [
      ...['gen_ai.usage.reasoning_tokens', 'gen_ai.usage.output_tokens.reasoning', 'llm.usage.reasoning_tokens'],
      ...['llm.token_count.completion_details.reasoning', 'ai.usage.reasoningTokens'],
    ],
  },
  invoke_agent: {
    'gen_ai.agent.name': ['agent.name', 'ai.telemetry.functionId', 'traceloop.entity.name', 'genkit:name'],
  },
  invoke_workflow: { 'gen_ai.workflow.name': ['traceloop.entity.name', 'genkit:name'] },
  chat: { 'gen_ai.request.model': ['genkit:name'] },
  embeddings: { 'gen_ai.request.model': ['genkit:name'] },
  execute_tool: {
    'gen_ai.tool.name': ['tool.name', 'ai.toolCall.name', 'traceloop.entity.name', 'genkit:name'],
    'gen_ai.tool.call.id': ['ai.toolCall.id', 'tool_call.id', 'tool.id'],
  },
};

/** Where a model is named with its provider before it, `openai/gpt-5`. */
export const modelWithProvider = 'genkit:name';

/** Where the counts of a call are members of a JSON text. */
export const usageTexts: readonly {
  readonly attribute: string;
  readonly within?: string;
  readonly members: Readonly<Record<string, readonly string[]>>;
}[] = [
  {
    attribute: 'gen_ai.usage.input_token_details',
    members: { 'gen_ai.usage.cache_read.input_tokens': ['cache_read'] },
  },
  {
    attribute: 'gen_ai.usage.output_token_details',
    members: { 'gen_ai.usage.reasoning.output_tokens': ['reasoning'] },
  },
  {
    attribute: 'langfuse.observation.usage_details',
    members: {
      'gen_ai.usage.input_tokens': ['input', 'prompt_tokens', 'promptTokens', 'input_tokens'],
      'gen_ai.usage.output_tokens': ['output', 'completion_tokens', 'completionTokens', 'output_tokens'],
      'gen_ai.usage.cache_read.input_tokens': ['input_cached_tokens', 'cache_read_input_tokens', 'input_cache_read'],
      'gen_ai.usage.cache_creation.input_tokens': ['cache_creation_input_tokens', 'input_cache_creation'],
      'gen_ai.usage.reasoning.output_tokens': ['output_reasoning_tokens', 'output_reasoning'],
      'gen_ai.usage.total_tokens': ['total', 'total_tokens', 'totalTokens'],
    },
  },
  {
    attribute: 'genkit:output',
    within: 'usage',
    members: {
      'gen_ai.usage.input_tokens': ['inputTokens'],
      'gen_ai.usage.output_tokens': ['outputTokens'],
      'gen_ai.usage.cache_read.input_tokens': ['cachedContentTokens'],
      'gen_ai.usage.reasoning.output_tokens': ['thoughtsTokens'],
      'gen_ai.usage.total_tokens': ['totalTokens'],
    },
  },
  {
    attribute: 'gcp.vertex.agent.llm_response',
    within: 'usageMetadata',
    members: {
      'gen_ai.usage.cache_read.input_tokens': ['cachedContentTokenCount', 'cached_content_token_count'],
      'gen_ai.usage.reasoning.output_tokens': ['thoughtsTokenCount', 'thoughts_token_count'],
      'gen_ai.usage.total_tokens': ['totalTokenCount', 'total_token_count'],
    },
  },
];

/**
 * Where the counts of input and output leave out the parts that OpenTelemetry counts in them. Langfuse has every token under
 * one name; these libraries for Anthropic pass on what its API says, and have a total without what was cached.
 */
export const exclusiveCounts = {
  attribute: 'langfuse.observation.usage_details',
  scopes: ['@traceloop/instrumentation-anthropic', '@openlit/instrumentation-anthropic'],
} as const;

/** What the AI SDK appends to the name of a provider. */
export const apiOfProvider = /\.(?:chat|responses|completions?|embeddings?|messages|image|speech|transcription)$/;

/** Names of providers that the conventions have others for. */
export const providerNames: Readonly<Record<string, string>> = {
  openai: 'openai',
  anthropic: 'anthropic',
  'google.generative-ai': 'gcp.gemini',
  'google.vertex': 'gcp.vertex_ai',
  google: 'gcp.gemini',
  'azure-openai': 'azure.ai.openai',
  azure: 'azure.ai.openai',
  'amazon-bedrock': 'aws.bedrock',
  aws: 'aws.bedrock',
  mistral: 'mistral_ai',
  mistralai: 'mistral_ai',
  xai: 'x_ai',
  cohere: 'cohere',
  groq: 'groq',
  deepseek: 'deepseek',
};

/** Logfire sends a span as it begins as well, under an id of its own: it says nothing that the span does not. */
export const placeholder = { attribute: 'logfire.span_type', value: 'pending_span' } as const;

interface ContentNames {
  readonly role: string;
  readonly texts: readonly string[];
  readonly numbered: readonly string[];
  /** Its value is the text, also where it is JSON. */
  readonly verbatim?: readonly string[];
}

/** Where a span has what was said: as JSON or text, and as an attribute for each message, `<name>.<number>.<member>`. */
export const contentNames: Readonly<Record<'model' | 'agent', Readonly<Record<string, ContentNames>>>> = {
  model: {
    'gen_ai.input.messages': {
      role: 'user',
      texts: [
        ...['ai.prompt.messages', 'langfuse.observation.input', 'gen_ai.prompt', 'gcp.vertex.agent.llm_request'],
        ...['genkit:input', 'input.value'],
      ],
      numbered: ['llm.input_messages', 'gen_ai.prompt'],
    },
    'gen_ai.output.messages': {
      role: 'assistant',
      texts: [
        ...['langfuse.observation.output', 'gen_ai.completion', 'gcp.vertex.agent.llm_response'],
        ...['genkit:output', 'output.value'],
      ],
      numbered: ['llm.output_messages', 'gen_ai.completion'],
      verbatim: ['ai.response.text', 'ai.response.object'],
    },
  },
  agent: {
    'gen_ai.input.messages': {
      role: 'user',
      texts: ['ai.prompt', 'langfuse.observation.input', 'mastra.agent_run.input', 'genkit:input', 'input.value'],
      numbered: [],
    },
    'gen_ai.output.messages': {
      role: 'assistant',
      texts: [
        'ai.response.text',
        'langfuse.observation.output',
        'mastra.agent_run.output',
        'genkit:output',
        'output.value',
      ],
      numbered: [],
      verbatim: ['ai.response.text', 'ai.response.object'],
    },
  },
};

/** What a tool was given and gave. */
export const toolContent: Readonly<Record<string, readonly string[]>> = {
  'gen_ai.tool.call.arguments': [
    ...['ai.toolCall.args', 'gcp.vertex.agent.tool_call_args', 'traceloop.entity.input', 'langfuse.observation.input'],
    ...['gen_ai.tool.input', 'gen_ai.prompt', 'genkit:input', 'input.value'],
  ],
  'gen_ai.tool.call.result': [
    ...[
      'ai.toolCall.result',
      'gcp.vertex.agent.tool_response',
      'traceloop.entity.output',
      'langfuse.observation.output',
    ],
    ...['gen_ai.tool.output', 'gen_ai.completion', 'genkit:output', 'output.value'],
  ],
};
