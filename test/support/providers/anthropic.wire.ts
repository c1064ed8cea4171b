import { anthropicObjection } from './rules/anthropic.rules.ts';
import {
  countsAsTexts,
  doneFrame,
  eventFrame,
  pieces,
  type SimulatedAnswer,
  type SimulatedRequest,
  type SimulatedUsage,
  type VendorFault,
  type Wire,
} from './scenario.ts';

const errors: Record<VendorFault, { type: string; message: string }> = {
  server: { type: 'api_error', message: 'Internal server error' },
  overloaded: { type: 'overloaded_error', message: 'Overloaded' },
  'rate-limit': { type: 'rate_limit_error', message: 'This request would exceed your rate limit' },
  'bad-key': { type: 'authentication_error', message: 'invalid x-api-key' },
  'bad-request': { type: 'invalid_request_error', message: 'top_p: Input should be less than or equal to 1' },
  // The API has no code for this one.
  context: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
  filter: { type: 'invalid_request_error', message: 'Output blocked by content filtering policy' },
};

const stopReasons = { stop: 'end_turn', length: 'max_tokens', filter: 'refusal', pause: 'pause_turn' } as const;

/** Cached tokens stand beside the input here, not in it. */
const usageObject = (usage: SimulatedUsage) => ({
  input_tokens: usage.input - (usage.cached ?? 0),
  cache_creation_input_tokens: 0,
  ...(usage.cached !== undefined && { cache_read_input_tokens: usage.cached }),
  output_tokens: usage.output,
  ...(usage.reasoning !== undefined && { output_tokens_details: { thinking_tokens: usage.reasoning } }),
  service_tier: 'standard',
});

const stopReason = (answer: SimulatedAnswer): string | null => {
  if (answer.reason !== undefined) return answer.reason;
  return answer.toolCalls?.length ? 'tool_use' : stopReasons[answer.finish ?? 'stop'];
};

const odd = (usage: object, { oddities }: SimulatedAnswer): unknown =>
  oddities?.countsAsTexts === true ? countsAsTexts(usage) : usage;

interface Block {
  readonly [member: string]: unknown;
  readonly type: string;
}

const searchBlocks = ({ search }: SimulatedAnswer): Block[] => {
  if (search === undefined) return [];
  const id = 'srvtoolu_014hJH82Qum7Td6UV8gDXThB';
  const pages = search.pages?.map((page) => ({
    type: 'web_search_result',
    ...page,
    encrypted_content: 'EqgfCioIARgBIiQ3YTAwMjY1',
    page_age: 'April 30, 2025',
  }));
  const failure = { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' };
  return [
    ...(search.half === 'result'
      ? []
      : [{ type: 'server_tool_use', id, name: 'web_search', input: { query: search.query } }]),
    ...(search.half === 'call' ? [] : [{ type: 'web_search_tool_result', tool_use_id: id, content: pages ?? failure }]),
  ];
};

/** A search that is not over is the last thing of its answer. */
const isOpen = ({ search }: SimulatedAnswer): boolean => search?.half === 'call';

const contentBlocks = (answer: SimulatedAnswer): object[] => [
  ...(answer.reasoning
    ? [{ type: 'thinking', thinking: answer.reasoning.join(''), signature: 'EqQBCgIYAhIM-signature' }]
    : []),
  ...(isOpen(answer) ? [] : searchBlocks(answer)),
  ...(answer.text ? [{ type: 'text', text: answer.text.join('') }] : []),
  ...(isOpen(answer) ? searchBlocks(answer) : []),
  ...(answer.toolCalls ?? []).map((call) => ({
    type: 'tool_use',
    id: call.id,
    name: call.name,
    input: answer.oddities?.argumentsInOtherType === true ? call.arguments : JSON.parse(call.arguments),
  })),
];

const message = (answer: SimulatedAnswer, request: SimulatedRequest) => ({
  id: 'msg_01XFDUDYJgAACzvnptvVoYEL',
  type: 'message',
  role: 'assistant',
  model: `${request.model}-20250929`,
  content: contentBlocks(answer),
  stop_reason: stopReason(answer),
  stop_sequence: null,
  usage: odd(usageObject(answer.usage ?? { input: 0, output: 0 }), answer),
});

const block = (index: number, start: object, deltas: readonly object[]): string[] => [
  eventFrame('content_block_start', { index, content_block: start }),
  ...deltas.map((delta) => eventFrame('content_block_delta', { index, delta })),
  eventFrame('content_block_stop', { index }),
];

const frames = (answer: SimulatedAnswer, request: SimulatedRequest): string[] => {
  const usage = usageObject(answer.usage ?? { input: 0, output: 0 });
  const start = {
    ...message(answer, request),
    content: [],
    stop_reason: null,
    usage: odd({ ...usage, output_tokens: 1, output_tokens_details: undefined }, answer),
  };
  const blocks: string[][] = [];
  if (answer.reasoning)
    blocks.push(
      block(blocks.length, { type: 'thinking', thinking: '', signature: '' }, [
        ...answer.reasoning.map((thinking) => ({ type: 'thinking_delta', thinking })),
        { type: 'signature_delta', signature: 'EqQBCgIYAhIM-signature' },
      ]),
    );
  const search = (): void => {
    for (const { input, ...start } of searchBlocks(answer)) {
      const deltas = input === undefined ? [] : ['', JSON.stringify(input)];
      blocks.push(
        block(
          blocks.length,
          input === undefined ? start : { ...start, input: {} },
          deltas.map((partialJson) => ({ type: 'input_json_delta', partial_json: partialJson })),
        ),
      );
    }
  };
  if (!isOpen(answer)) search();
  if (answer.text)
    blocks.push(
      block(
        blocks.length,
        { type: 'text', text: '' },
        answer.text.map((text) => ({ type: 'text_delta', text })),
      ),
    );
  if (isOpen(answer)) search();
  for (const call of answer.toolCalls ?? []) {
    const input = answer.oddities?.argumentsInOtherType === true ? JSON.stringify(call.arguments) : call.arguments;
    const deltas = ['', ...pieces(input, 4)].map((piece) => ({
      type: 'input_json_delta',
      partial_json: piece,
    }));
    blocks.push(block(blocks.length, { type: 'tool_use', id: call.id, name: call.name, input: {} }, deltas));
  }
  return [
    eventFrame('message_start', { message: start }),
    eventFrame('ping', {}),
    ...blocks.flat(),
    eventFrame('message_delta', {
      delta: { stop_reason: stopReason(answer), stop_sequence: null },
      usage: odd(
        {
          ...(answer.oddities?.zeroInputAtEnd === true && { input_tokens: 0, cache_read_input_tokens: 0 }),
          output_tokens: usage.output_tokens,
          output_tokens_details: usage.output_tokens_details,
        },
        answer,
      ),
    }),
    eventFrame('message_stop', {}),
    ...(answer.oddities?.saysDone === true ? [doneFrame] : []),
  ];
};

/** Anthropic messages. */
export const anthropicWire: Wire = {
  frames,
  document: message,
  error: (fault) => ({ type: 'error', error: errors[fault], request_id: 'req_011CSHoEeqs5C35K2UUqR7Fy' }),
  errorFrame: (fault) => eventFrame('error', { error: errors[fault] }),
  objection(request) {
    if (request.headers['anthropic-version'] === undefined) return 'anthropic-version: header is required';
    if (typeof request.body['max_tokens'] !== 'number') return 'max_tokens: Field required';
    const text = JSON.stringify(request.body['messages']);
    const tools = JSON.stringify(request.body['tools'] ?? []);
    if (text.includes('"server_tool_use"') && !tools.includes('"web_search_20250305"'))
      return 'messages: server_tool_use blocks need their tool in `tools`';
    return anthropicObjection(request);
  },
};
