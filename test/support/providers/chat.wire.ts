import { chatObjection } from './rules/chat.rules.ts';
import {
  dataFrame,
  pieces,
  type SimulatedAnswer,
  type SimulatedRequest,
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

const usageObject = (usage: SimulatedUsage) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  ...(usage.cached !== undefined && { prompt_tokens_details: { cached_tokens: usage.cached, audio_tokens: 0 } }),
  ...(usage.reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: usage.reasoning } }),
});

const finishReason = (answer: SimulatedAnswer): string =>
  answer.toolCalls?.length ? 'tool_calls' : finishReasons[answer.finish ?? 'stop'];

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

const toolDeltas = (answer: SimulatedAnswer): object[] => {
  const calls = answer.toolCalls ?? [];
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
  const usage = answer.usage;
  return [
    delta({ role: 'assistant', content: '', refusal: null }),
    ...(answer.reasoning ?? []).map((thought) => delta({ reasoning_content: thought })),
    ...(answer.text ?? []).map((text) => delta({ content: text })),
    ...toolDeltas(answer).map((call) => delta(call)),
    delta({}, finishReason(answer)),
    ...(usage && wantsUsage(request) ? [chunk({ choices: [], usage: usageObject(usage) })] : []),
    'data: [DONE]\n\n',
  ];
};

const document = (answer: SimulatedAnswer, request: SimulatedRequest): unknown => {
  const text = answer.text?.join('') ?? '';
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
          ...(answer.reasoning && { reasoning_content: answer.reasoning.join('') }),
          ...(answer.toolCalls?.length && {
            tool_calls: answer.toolCalls.map((call) => ({
              id: call.id,
              type: 'function',
              function: { name: call.name, arguments: call.arguments },
            })),
          }),
        },
        logprobs: null,
        finish_reason: finishReason(answer),
      },
    ],
    ...(answer.usage && { usage: usageObject(answer.usage) }),
    service_tier: 'default',
  };
};

const objection = (request: SimulatedRequest): string | null => {
  if (typeof request.body['model'] !== 'string' || request.body['model'] === '')
    return 'you must provide a model parameter';
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
