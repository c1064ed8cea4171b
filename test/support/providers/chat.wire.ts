import { chatObjection } from './rules/chat.rules.ts';
import {
  countsAsTexts,
  dataFrame,
  doneFrame,
  type Oddities,
  pieces,
  type SimulatedAnswer,
  type SimulatedRequest,
  type SimulatedToolCall,
  type SimulatedUsage,
  type VendorFault,
  type Wire,
} from './scenario.ts';

const errors: Record<VendorFault, { message: string; type: string; param: string | null; code: string | null }> = {
  server: { message: 'The server had an error', type: 'server_error', param: null, code: null },
  overloaded: { message: 'The engine is overloaded', type: 'server_error', param: null, code: 'overloaded' },
  'rate-limit': { message: 'Rate limit reached', type: 'requests', param: null, code: 'rate_limit_exceeded' },
  'bad-key': {
    message: 'Incorrect API key provided',
    type: 'invalid_request_error',
    param: null,
    code: 'invalid_api_key',
  },
  'bad-request': { message: 'Unknown parameter', type: 'invalid_request_error', param: 'x', code: 'unknown_parameter' },
  context: {
    message: 'Your input is over the limit',
    type: 'invalid_request_error',
    param: 'messages',
    code: 'context_length_exceeded',
  },
  filter: {
    message: 'The prompt was filtered',
    type: 'invalid_request_error',
    param: 'prompt',
    code: 'content_filter',
  },
};

const finishReasons = { stop: 'stop', length: 'length', filter: 'content_filter', pause: 'stop' } as const;

const usageObject = (usage: SimulatedUsage, oddities: Oddities = {}): unknown => {
  const { cached, reasoning } = usage;
  const counts = {
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    ...(cached !== undefined &&
      (oddities.cacheHits === true
        ? { prompt_cache_hit_tokens: cached, prompt_cache_miss_tokens: usage.input - cached }
        : { prompt_tokens_details: { cached_tokens: cached, audio_tokens: 0 } })),
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  };
  return oddities.countsAsTexts === true ? countsAsTexts(counts) : counts;
};

/** Where an answer has its usage: in its choice, or next to the choices. */
const placedUsage = ({ usage, oddities }: SimulatedAnswer): { choice: object; body: object } => {
  if (!usage) return { choice: {}, body: {} };
  const counts = { usage: usageObject(usage, oddities) };
  if (oddities?.usageAt === 'choice') return { choice: counts, body: {} };
  return { choice: {}, body: oddities?.usageAt === 'x_groq' ? { x_groq: { id: 'req_1', ...counts } } : counts };
};

const reasoningMembers = (text: string, { oddities }: SimulatedAnswer): object => {
  if (oddities?.reasoningIn === undefined) return { reasoning_content: text };
  if (oddities.reasoningIn === 'reasoning') return { reasoning: text };
  const detail = { type: 'reasoning.text', text, format: 'anthropic-claude-v1', index: 0 };
  return { reasoning: text, reasoning_details: [detail] };
};

const lastReasoning: object = {
  reasoning_details: [
    { type: 'reasoning.text', text: '', signature: 'sig-1', format: 'anthropic-claude-v1', index: 0 },
    { type: 'reasoning.encrypted', data: 'c2VjcmV0', id: 'rs_1', format: 'openai-responses-v1', index: 1 },
  ],
};

const finishReason = (answer: SimulatedAnswer): string | null => {
  if (answer.reason !== undefined) return answer.reason;
  return answer.toolCalls?.length ? 'tool_calls' : finishReasons[answer.finish ?? 'stop'];
};

const wantsUsage = (request: SimulatedRequest): boolean => {
  const options = request.body['stream_options'] as { include_usage?: boolean } | undefined;
  return options?.include_usage === true;
};

const chunkMaker = (model: string) => {
  const head = {
    id: 'chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG',
    object: 'chat.completion.chunk',
    created: 1741570283,
    model,
  };
  return (members: object) =>
    dataFrame({ ...head, service_tier: 'default', system_fingerprint: 'fp_fc9f1d7035', ...members });
};

const typedArguments = ({ arguments: args }: SimulatedToolCall, { oddities }: SimulatedAnswer): unknown =>
  oddities?.argumentsInOtherType === true ? JSON.parse(args) : args;

const toolDeltas = (answer: SimulatedAnswer): object[] => {
  const calls = answer.toolCalls ?? [];
  if (answer.oddities?.callForm !== undefined)
    return answer.oddities.callForm(calls).map((entries) => ({ tool_calls: entries }));
  if (answer.oddities?.argumentsInOtherType === true)
    return calls.map((call, index) => ({
      tool_calls: [
        { index, id: call.id, type: 'function', function: { name: call.name, arguments: JSON.parse(call.arguments) } },
      ],
    }));
  const starts = calls.map((call, index) => ({
    tool_calls: [{ index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } }],
  }));
  // The pieces of parallel calls come mixed.
  const parts = calls.map((call) => pieces(call.arguments, 4));
  const rounds = Math.max(0, ...parts.map((list) => list.length));
  const rest = Array.from({ length: rounds }, (_, round) =>
    parts.flatMap((list, index) => {
      const piece = list[round];
      return piece === undefined ? [] : [{ tool_calls: [{ index, function: { arguments: piece } }] }];
    }),
  );
  return [...starts, ...rest.flat()];
};

const frames = (answer: SimulatedAnswer, request: SimulatedRequest): string[] => {
  const chunk = chunkMaker(`${request.model}-2025-04-14`);
  const delta = (content: object, finish: string | null = null) =>
    chunk({ choices: [{ index: 0, delta: content, logprobs: null, finish_reason: finish }], usage: null });
  const usage = placedUsage(answer);
  const isUsual = answer.oddities?.usageAt === undefined;
  const last = { index: 0, delta: {}, logprobs: null, finish_reason: finishReason(answer), ...usage.choice };
  const hasDetails = answer.oddities?.reasoningIn === 'reasoning_details' && answer.reasoning !== undefined;
  return [
    delta({ role: 'assistant', content: '', refusal: null }),
    ...(answer.reasoning ?? []).map((thought) => delta(reasoningMembers(thought, answer))),
    ...(hasDetails ? [delta(lastReasoning)] : []),
    ...(answer.text ?? []).map((text) => delta({ content: text })),
    ...toolDeltas(answer).map((call) => delta(call)),
    chunk({ choices: [last], usage: null, ...(isUsual ? {} : usage.body) }),
    ...(answer.usage && isUsual && wantsUsage(request) ? [chunk({ choices: [], ...usage.body })] : []),
    doneFrame,
  ];
};

const wholeDetails = ({ reasoning }: SimulatedAnswer): object[] => [
  {
    type: 'reasoning.text',
    text: reasoning?.join('') ?? '',
    signature: 'sig-1',
    format: 'anthropic-claude-v1',
    index: 0,
  },
  { type: 'reasoning.encrypted', data: 'c2VjcmV0', id: 'rs_1', format: 'openai-responses-v1', index: 1 },
];

const document = (answer: SimulatedAnswer, request: SimulatedRequest): unknown => {
  const text = answer.text?.join('') ?? '';
  const usage = placedUsage(answer);
  const hasDetails = answer.oddities?.reasoningIn === 'reasoning_details' && answer.reasoning !== undefined;
  return {
    id: 'chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT',
    object: 'chat.completion',
    created: 1741569952,
    model: `${request.model}-2025-04-14`,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' ? null : text,
          refusal: null,
          annotations: [],
          ...(answer.reasoning && reasoningMembers(answer.reasoning.join(''), answer)),
          ...(hasDetails && { reasoning_details: wholeDetails(answer) }),
          ...(answer.toolCalls?.length && {
            tool_calls: answer.toolCalls.map((call) => ({
              id: call.id,
              type: 'function',
              function: { name: call.name, arguments: typedArguments(call, answer) },
            })),
          }),
        },
        ...usage.choice,
        logprobs: null,
        finish_reason: finishReason(answer),
      },
    ],
    ...usage.body,
    service_tier: 'default',
  };
};

const objection = (request: SimulatedRequest): string | null => {
  if (typeof request.body['model'] !== 'string' || request.body['model'] === '')
    return 'you must provide a model parameter';
  const messages = Array.isArray(request.body['messages'])
    ? (request.body['messages'] as Readonly<Record<string, unknown>>[])
    : [];
  const calling = messages.filter((message) => Array.isArray(message['tool_calls']));
  // DeepSeek's thinking mode.
  if (
    /^deepseek-/.test(String(request.body['model'])) &&
    calling.some((message) => typeof message['reasoning_content'] !== 'string')
  )
    return 'The reasoning_content in the thinking mode must be passed back to the API.';
  // Groq, whose messages have no members beyond those of OpenAI.
  if (
    /^groq-/.test(String(request.body['model'])) &&
    messages.some((message) => Object.keys(message).some((name) => name.startsWith('reasoning')))
  )
    return "property 'reasoning_content' is unsupported";
  if (request.body['parallel_tool_calls'] !== undefined && !Array.isArray(request.body['tools']))
    return "'parallel_tool_calls' is only allowed when 'tools' are specified";
  return chatObjection(request);
};

/** OpenAI chat completions and the many servers that speak them. */
export const chatWire: Wire = {
  frames,
  document,
  error: (fault) => ({ error: errors[fault] }),
  errorFrame: (fault) => dataFrame({ error: errors[fault] }),
  objection,
};

/** The same as an Azure deployment sends it: filter results in front, and in every choice. */
export const azureWire: Wire = {
  ...chatWire,
  frames(answer, request) {
    const filter = { hate: { filtered: false, severity: 'safe' }, violence: { filtered: false, severity: 'safe' } };
    const head = dataFrame({
      choices: [],
      created: 0,
      id: '',
      model: '',
      object: '',
      prompt_filter_results: [{ prompt_index: 0, content_filter_results: filter }],
    });
    return [head, ...frames(answer, request)];
  },
  error(fault, status) {
    if (fault === 'filter') {
      const innererror = { code: 'ResponsibleAIPolicyViolation', content_filter_result: {} };
      return { error: { ...errors.filter, status, innererror } };
    }
    return fault === 'bad-key'
      ? { error: { code: '401', message: 'Access denied due to invalid subscription key' } }
      : { error: errors[fault] };
  },
};
