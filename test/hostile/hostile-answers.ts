import { ProblemError } from '../../src/client/problem.ts';
import { ModelCallError } from '../../src/providers/models/index.ts';
import { isComplete } from './completeness.ts';
import { anyJson, filledArray, type HostileJson, longTexts, repeatedElement } from './hostile-json.ts';
import { firstOfWorst, isChosen, report } from './hostile-mode.ts';
import { isExcessive, measured, measuredText } from './standstill.ts';

const mebibyte = 1_048_576;

/** Where the hostile part stands in a template. */
const place = '*';

/** Elements of lists in answers: as many tools, parts, rows or choices as fit. */
const elements: readonly HostileJson[] = [
  repeatedElement('rows', '{"id":"a","name":"a","type":"text","text":"a"}'),
  filledArray('tools', (at) => `{"name":"t${at.toString(36)}","inputSchema":{"type":"object"}}`),
];

const values: readonly HostileJson[] = [...anyJson, ...elements, ...longTexts];

/** JSON as a text within JSON, as models write arguments. */
const quoted = ({ name, make }: HostileJson): HostileJson => ({
  name: `text of ${name}`,
  make: (bytes) => JSON.stringify(make(Math.floor(bytes / 2))),
});

/** What the service says of an answer that it does not take; anything else is a fault of the test or the service. */
const refusal = (error: unknown): void => {
  if (!(error instanceof ModelCallError || (error instanceof ProblemError && error.code !== 'internal'))) throw error;
};

export interface Answers {
  /** Who answers what. */
  readonly what: string;
  /** The answer with `"*"` where the hostile part stands. */
  readonly template: string;
  /** Makes the service ask, and answers it with this. What the service then says of it does not matter. */
  readonly ask: (document: Buffer) => Promise<unknown>;
  /** The largest answer that is read; default: a mebibyte of it is sent. */
  readonly bytes?: number;
  /** The hostile part is JSON in a text. */
  readonly isQuoted?: true;
}

/** What of the hostile answers stops the event loop for too long, or takes too much memory. */
export const excesses = async ({ what, template, ask, bytes = mebibyte, isQuoted }: Answers): Promise<string[]> => {
  const found: string[] = [];
  const mark = JSON.stringify(place);
  if (!template.includes(mark)) throw new Error(`${template} has no place for the hostile part.`);
  if (!isChosen(`${what} ${template}`)) return found;
  const shapes = isQuoted === true ? values.map(quoted) : values;
  for (const value of isComplete ? shapes : firstOfWorst(shapes, ({ name }) => name)) {
    const document = Buffer.from(template.replace(mark, () => value.make(bytes - template.length)));
    const cost = await measured(document.byteLength, () => ask(document).catch(refusal));
    report(`${what} ${template.slice(0, 80)} ${value.name}`, document.byteLength, cost);
    if (isExcessive(cost)) found.push(`${what} ${template.slice(0, 80)} ${value.name}: ${measuredText(cost)}`);
  }
  return found;
};

/** The same for several. */
export const allExcesses = async (answers: readonly Answers[]): Promise<string[]> => {
  const found: string[] = [];
  for (const one of answers) found.push(...(await excesses(one)));
  return found;
};
