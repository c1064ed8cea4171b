import { isRecord } from '../../../contract/record.ts';
import type { SessionRequestRow } from '../../../db/tables/approvals.ts';
import type { QuestionAnswers } from '../../../engine/context/index.ts';

/** What is kept of a question until it is answered. */
interface Asked {
  readonly key: string;
  /** What the call goes on with; of several questions of a call one has it. */
  readonly state: string | null;
}

export const askedText = (key: string, state: string | null): string => JSON.stringify({ key, state } satisfies Asked);

const askedOf = ({ asked }: SessionRequestRow): Asked => JSON.parse(asked ?? '{"key":"","state":null}') as Asked;

const actions: ReadonlySet<unknown> = new Set(['accept', 'decline', 'cancel']);

/** Whether a text is what a person can say to a question: an action, and with `accept` what was filled in. */
export const isQuestionAnswer = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text);
    if (!isRecord(value) || !actions.has(value['action'])) return false;
    return value['content'] === undefined || value['content'] === null || isRecord(value['content']);
  } catch {
    // No JSON.
    return false;
  }
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
