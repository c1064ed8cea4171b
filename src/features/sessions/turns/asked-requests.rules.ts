import { isRecord } from '../../../contract/record.ts';
import type { Json } from '../../../contract/schema.ts';
import type { SessionRequestRow } from '../../../db/tables/approvals.ts';
import type { QuestionAnswers } from '../../../engine/context/index.ts';
import { argumentsChecker, readForeignSchema, type ToolQuestion } from '../../../engine/tools/index.ts';

/** What is kept of a question until it is answered. */
interface Asked {
  readonly key: string;
  /** What the call goes on with; of several questions of a call one has it. */
  readonly state: string | null;
  /** Of a form: what is filled in has to fit it. Absent in rows that an earlier version wrote. */
  readonly schema?: Json;
}

export const askedText = ({ key, requestedSchema }: ToolQuestion, state: string | null): string =>
  JSON.stringify({ key, state, ...(requestedSchema === null ? {} : { schema: requestedSchema }) } satisfies Asked);

const askedOf = ({ asked }: SessionRequestRow): Asked => JSON.parse(asked ?? '{"key":"","state":null}') as Asked;

const actions: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel']);

/** What a person can say to a question: an action, and with `accept` what was filled in; null: the text is neither. */
const answerIn = (text: string): { readonly action: unknown; readonly content: Json } | null => {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value) || !actions.has(value['action'])) return null;
    const content = value['content'] ?? {};
    return isRecord(content) ? { action: value['action'], content: content as Json } : null;
  } catch {
    // No JSON.
    return null;
  }
};

const formOfAnswers = 'must be {"action":"accept","content":{…}} as text, or the same with decline or cancel';

/** Why a text does not answer the question; empty: it does. A schema that nobody can read is its server's to check. */
export const answerProblems = (row: SessionRequestRow, text: string): readonly string[] => {
  const answer = answerIn(text);
  if (answer === null) return [formOfAnswers];
  const { schema } = askedOf(row);
  if (schema === undefined || answer.action !== 'accept') return [];
  const read = readForeignSchema(schema);
  if ('problem' in read) return [];
  const check = argumentsChecker(read.schema as Json, {
    whole: 'content',
    member: 'field',
    recursion: 'through-members',
  });
  return check(answer.content).map((problem) => `does not fit what was asked for: ${problem}`);
};

/** With what a call goes on: its questions, each with its answer by the id of its request. */
export const questionAnswers = (
  rows: readonly SessionRequestRow[],
  resultOf: (row: SessionRequestRow) => string | null,
): QuestionAnswers => ({
  type: 'QuestionAnswers',
  state: rows.map((row) => askedOf(row).state).find((state) => state !== null) ?? '',
  answers: rows.map((row) => ({ key: askedOf(row).key, result: resultOf(row) })),
});
