import type { SimulatedRequest } from '../scenario.ts';

interface Item {
  readonly type?: string;
  readonly role?: string;
  readonly id?: string;
  readonly call_id?: string;
  readonly content?: unknown;
}

const idsOf = (items: readonly Item[], type: string): Set<string | undefined> =>
  new Set(items.flatMap((item) => (item.type === type ? [item.call_id] : [])));

/** What the Responses API refuses of its input; null: it takes it. */
export const responsesObjection = ({ body }: SimulatedRequest): string | null => {
  if (!Array.isArray(body['input'])) return null;
  const items = body['input'] as readonly Item[];
  if (items.length === 0) return "Invalid 'input': empty array.";
  for (const [index, item] of items.entries()) {
    const { type, call_id: id, content } = item;
    if (type === 'function_call' && !idsOf(items.slice(index), 'function_call_output').has(id))
      return `No tool output found for function call ${id}.`;
    if (type === 'function_call_output' && !idsOf(items.slice(0, index), 'function_call').has(id))
      return `No tool call found for function call output with call_id ${id}.`;
    if (Array.isArray(content) && content.length === 0) return `Invalid 'input[${index}].content': empty array.`;
    const next = items[index + 1];
    if (type === 'reasoning' && (next === undefined || next.role === 'user' || next.type === 'function_call_output'))
      return `Item '${item.id}' of type 'reasoning' was provided without its required following item.`;
  }
  return null;
};
