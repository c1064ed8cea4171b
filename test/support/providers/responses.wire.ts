import { chatWire } from './chat.wire.ts';
import { responsesObjection } from './rules/responses.rules.ts';
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

const codes: Record<VendorFault, string> = {
  server: 'server_error',
  overloaded: 'server_is_overloaded',
  'rate-limit': 'rate_limit_exceeded',
  'bad-key': 'invalid_api_key',
  'bad-request': 'invalid_value',
  context: 'context_length_exceeded',
  filter: 'content_filter',
};

const usageObject = (usage: SimulatedUsage) => ({
  input_tokens: usage.input,
  ...(usage.cached !== undefined && { input_tokens_details: { cached_tokens: usage.cached } }),
  output_tokens: usage.output,
  ...(usage.reasoning !== undefined && { output_tokens_details: { reasoning_tokens: usage.reasoning } }),
  total_tokens: usage.input + usage.output,
});

interface Item {
  readonly [member: string]: unknown;
  readonly id: string;
  readonly type: string;
}

const outputItems = (answer: SimulatedAnswer): Item[] => {
  const items: Item[] = [];
  if (answer.reasoning)
    items.push({
      id: 'rs_68af4030baa48193b0b43b4c2a176a1a',
      type: 'reasoning',
      summary: [{ type: 'summary_text', text: answer.reasoning.join('') }],
      encrypted_content: 'gAAAAABo-encrypted-thoughts',
    });
  if (answer.search) {
    const { query, pages } = answer.search;
    const sources = (pages ?? []).map(({ url }) => ({ type: 'url', url }));
    items.push({
      id: 'ws_68af4034d8b08193',
      type: 'web_search_call',
      status: pages === null ? 'failed' : 'completed',
      action: { type: 'search', query, queries: [query], sources },
    });
  }
  if (answer.text && answer.text.length > 0)
    items.push({
      id: 'msg_68af40337e58819392e935fb404414d0',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', annotations: [], logprobs: [], text: answer.text.join('') }],
    });
  for (const [index, call] of (answer.toolCalls ?? []).entries())
    items.push({
      id: `fc_68af403${index}`,
      type: 'function_call',
      status: 'completed',
      call_id: call.id,
      name: call.name,
      arguments: answer.oddities?.argumentsInOtherType === true ? JSON.parse(call.arguments) : call.arguments,
    });
  return items;
};

const responseObject = (answer: SimulatedAnswer, request: SimulatedRequest, done: boolean) => {
  const length = answer.finish === 'length' ? { reason: 'max_output_tokens' } : null;
  const own = answer.finish === 'filter' ? { reason: 'content_filter' } : length;
  const incomplete = typeof answer.reason === 'string' ? { reason: answer.reason } : own;
  const status = answer.oddities?.status ?? (incomplete ? 'incomplete' : 'completed');
  const counts = done && answer.usage ? usageObject(answer.usage) : null;
  return {
    id: 'resp_68af4030592c81938ec0a5fbab4a3e9f05438e46b5f69a3b',
    object: 'response',
    created_at: 1756315696,
    status: done ? status : 'in_progress',
    background: false,
    error: null,
    incomplete_details: done ? incomplete : null,
    instructions: null,
    max_output_tokens: null,
    model: `${request.model}-2025-04-14`,
    output: done ? outputItems(answer) : [],
    parallel_tool_calls: true,
    store: request.body['store'] ?? true,
    tool_choice: 'auto',
    tools: [],
    usage: answer.oddities?.countsAsTexts === true ? countsAsTexts(counts) : counts,
    user: null,
    metadata: {},
  };
};

const document = (answer: SimulatedAnswer, request: SimulatedRequest): unknown => {
  const body = responseObject(answer, request, true);
  return body.usage === null ? { ...body, usage: undefined } : body;
};

type Emit = (type: string, data: object) => void;

const reasoningFrames = (emit: Emit, item: Item, index: number, thoughts: readonly string[]): void => {
  const place = { item_id: item.id, output_index: index, summary_index: 0 };
  emit('response.output_item.added', {
    output_index: index,
    item: { ...item, summary: [], encrypted_content: 'gAAAAABo-first' },
  });
  emit('response.reasoning_summary_part.added', { ...place, part: { type: 'summary_text', text: '' } });
  for (const delta of thoughts) emit('response.reasoning_summary_text.delta', { ...place, delta });
  emit('response.reasoning_summary_text.done', { ...place, text: thoughts.join('') });
  emit('response.reasoning_summary_part.done', { ...place, part: { type: 'summary_text', text: thoughts.join('') } });
  emit('response.output_item.done', { output_index: index, item });
};

const messageFrames = (emit: Emit, item: Item, index: number, text: readonly string[]): void => {
  const place = { item_id: item.id, output_index: index, content_index: 0 };
  const part = { type: 'output_text', annotations: [], logprobs: [] };
  emit('response.output_item.added', { output_index: index, item: { ...item, status: 'in_progress', content: [] } });
  emit('response.content_part.added', { ...place, part: { ...part, text: '' } });
  for (const delta of text) emit('response.output_text.delta', { ...place, delta, logprobs: [] });
  emit('response.output_text.done', { ...place, text: text.join(''), logprobs: [] });
  emit('response.content_part.done', { ...place, part: { ...part, text: text.join('') } });
  emit('response.output_item.done', { output_index: index, item });
};

const searchFrames = (emit: Emit, item: Item, index: number): void => {
  const place = { item_id: item.id, output_index: index };
  const { action: _later, ...started } = item;
  emit('response.output_item.added', { output_index: index, item: { ...started, status: 'in_progress' } });
  emit('response.web_search_call.in_progress', place);
  emit('response.web_search_call.searching', place);
  emit('response.web_search_call.completed', place);
  emit('response.output_item.done', { output_index: index, item });
};

const callFrames = (emit: Emit, item: Item, index: number): void => {
  const place = { item_id: item.id, output_index: index };
  const input = typeof item['arguments'] === 'string' ? item['arguments'] : JSON.stringify(item['arguments']);
  emit('response.output_item.added', { output_index: index, item: { ...item, status: 'in_progress', arguments: '' } });
  for (const delta of pieces(input, 4)) emit('response.function_call_arguments.delta', { ...place, delta });
  emit('response.function_call_arguments.done', { ...place, arguments: input });
  emit('response.output_item.done', { output_index: index, item });
};

const frames = (answer: SimulatedAnswer, request: SimulatedRequest): string[] => {
  const list: string[] = [];
  const emit: Emit = (type, data) => {
    list.push(eventFrame(type, { sequence_number: list.length, ...data }));
  };
  emit('response.created', { response: responseObject(answer, request, false) });
  emit('response.in_progress', { response: responseObject(answer, request, false) });
  for (const [index, item] of outputItems(answer).entries()) {
    if (item.type === 'reasoning') reasoningFrames(emit, item, index, answer.reasoning ?? []);
    else if (item.type === 'message') messageFrames(emit, item, index, answer.text ?? []);
    else if (item.type === 'web_search_call') searchFrames(emit, item, index);
    else callFrames(emit, item, index);
  }
  const last = responseObject(answer, request, true);
  // Without a reason of its end such a server sends no last event either.
  if (answer.reason !== null) emit(`response.${last.status}`, { response: last });
  return answer.oddities?.saysDone === true ? [...list, doneFrame] : list;
};

/** The Responses API. */
export const responsesWire: Wire = {
  frames,
  document,
  error: chatWire.error,
  errorFrame: (fault) =>
    eventFrame('error', { sequence_number: 9, code: codes[fault], message: 'The request failed', param: null }),
  objection(request) {
    return typeof request.body['model'] !== 'string' || request.body['input'] === undefined
      ? 'model and input are required'
      : responsesObjection(request);
  },
};
