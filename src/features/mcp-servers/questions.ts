import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import { isNestedTooDeep } from '../../core/documents/json-depth.ts';
import type { QuestionAnswer, ToolQuestion } from '../../engine/tools/index.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { hidesText, visibleSchema } from './visible-schema.ts';

// What one answer of a server may ask: a person reads all of it.
const maxQuestions = 16;
const maxBytes = 65_536;
const longestUrl = 2048;

const webAddress = (value: unknown): string | null => {
  if (typeof value !== 'string' || value.length > longestUrl || !URL.canParse(value)) return null;
  const { protocol, href } = new URL(value);
  return protocol === 'https:' || protocol === 'http:' ? href : null;
};

const questionOf = (key: string, request: unknown): ToolQuestion | null => {
  if (!isRecord(request) || request['method'] !== 'elicitation/create' || !isRecord(request['params'])) return null;
  const { mode = 'form', message, requestedSchema, url } = request['params'];
  if (typeof message !== 'string') return null;
  const words = { key, message: visibleText(message) };
  if (mode === 'url') {
    const address = webAddress(url);
    return address === null ? null : { ...words, mode, requestedSchema: null, url: address };
  }
  if (mode !== 'form' || !isRecord(requestedSchema) || hidesText(requestedSchema as never)) return null;
  return { ...words, mode, requestedSchema: visibleSchema(requestedSchema as never) as Json, url: null };
};

/** What a server asks of a person; null: it asks for something else, or in a way that nobody can be shown. */
export const questionsIn = (requests: unknown): readonly ToolQuestion[] | null => {
  if (!isRecord(requests) || isNestedTooDeep(requests) || Buffer.byteLength(JSON.stringify(requests)) > maxBytes)
    return null;
  const entries = Object.entries(requests);
  if (entries.length === 0 || entries.length > maxQuestions) return null;
  const questions = entries.map(([key, request]) => questionOf(key, request));
  return questions.every((question) => question !== null) ? questions : null;
};

/** The answers as their server gets them; null: one is none any more, as guards have left it. */
export const responsesOf = (answers: readonly QuestionAnswer[]): Readonly<Record<string, Json>> | null => {
  const responses: [string, Json][] = [];
  for (const { key, result } of answers) {
    if (result === null) responses.push([key, { action: 'cancel' }]);
    else
      try {
        const { action, content } = JSON.parse(result) as { action: Json; content?: Json };
        const isGiven = action === 'accept' && content !== undefined && content !== null;
        responses.push([key, { action, ...(isGiven ? { content } : {}) }]);
      } catch {
        // Masked in the middle of its JSON.
        return null;
      }
  }
  return Object.fromEntries(responses);
};
