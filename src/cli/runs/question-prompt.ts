import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import type { ClientToolCall } from '../../contract/tool-approval.ts';
import { visibleLine } from '../../text/text-width.ts';
import { askKey, askLine, type Left } from '../output/prompt.ts';
import type { Terminal } from '../output/terminal.ts';
import { type QuestionField, questionFields, readField } from './question-fields.ts';

type Question = NonNullable<ClientToolCall['elicitation']>;

const left: Left = { left: true, exitCode: null };

const presetText = ({ preset, choices }: QuestionField): string => {
  if (typeof preset === 'boolean') return preset ? 'y' : 'n';
  const titleOf = (value: unknown): string =>
    choices.find((choice) => choice.value === value)?.title ??
    (typeof value === 'string' ? value : JSON.stringify(value));
  return Array.isArray(preset) ? preset.map(titleOf).join(', ') : titleOf(preset);
};

/** Whatever a server has written stands on lines that nothing of this program does. */
const shown = ({ description, choices }: QuestionField): string =>
  [...(description === null ? [] : [description]), ...choices.map(({ title }, index) => `${index + 1}  ${title}`)]
    .map((line) => `  ${visibleLine(line)}\n`)
    .join('');

const askField = async (
  terminal: Terminal,
  field: QuestionField,
): Promise<{ readonly value: Json | undefined } | Left> => {
  const { style } = terminal;
  await terminal.write(`${style.bold(visibleLine(field.title))}\n${shown(field)}`);
  const enter =
    field.preset !== undefined
      ? `Enter: ${visibleLine(presetText(field))}`
      : field.isRequired
        ? 'required'
        : 'Enter: none';
  for (;;) {
    const line = await askLine(`${visibleLine(field.expected)} (${enter}): `);
    if (typeof line !== 'string') return line;
    const answer = readField(line, field);
    if ('value' in answer) return answer;
    await terminal.write(`${visibleLine(answer.problem)}\n`);
  }
};

const askFields = async (terminal: Terminal, fields: readonly QuestionField[]): Promise<Json | Left> => {
  const content: Record<string, Json> = {};
  for (const field of fields) {
    const answer = await askField(terminal, field);
    if ('left' in answer) return answer;
    if (answer.value !== undefined) content[field.name] = answer.value;
  }
  return content;
};

const isLeft = (value: unknown): value is Left => isRecord(value) && value['left'] === true && 'exitCode' in value;

const askJson = async (terminal: Terminal): Promise<Json | Left> => {
  for (;;) {
    const line = await askLine('Content as JSON: ');
    if (typeof line !== 'string') return line;
    try {
      const content = JSON.parse(line) as Json;
      if (isRecord(content)) return content as Json;
    } catch {
      // Said below, as for JSON that is no object.
    }
    await terminal.write('This takes a JSON object on one line.\n');
  }
};

const acceptance = async (terminal: Terminal, fields: readonly QuestionField[] | null): Promise<Json | Left> => {
  const content = fields === null ? await askJson(terminal) : await askFields(terminal, fields);
  return isLeft(content) ? content : { action: 'accept', content };
};

/** Asks a person what a server wants to know, value by value; the answer as the text of a result. */
export const askQuestion = async (terminal: Terminal, { mode, requestedSchema }: Question): Promise<string | Left> => {
  const isForm = mode === 'form';
  const fields = isForm ? questionFields(requestedSchema) : null;
  const accepting = isForm ? 'a answer' : 'a I have been there';
  const json = fields === null ? '' : ' · j answer as JSON';
  const question = `${accepting}${json} · d decline · c cancel the call · q leave it waiting\nAnswer? `;
  const key = await askKey(question, fields === null ? ['a', 'd', 'c', 'q'] : ['a', 'j', 'd', 'c', 'q']);
  if (typeof key !== 'string') return key;
  if (key === 'q') return left;
  if (key === 'd') return JSON.stringify({ action: 'decline' });
  if (key === 'c') return JSON.stringify({ action: 'cancel' });
  const answer = isForm ? await acceptance(terminal, key === 'j' ? null : fields) : { action: 'accept' };
  return isLeft(answer) ? answer : JSON.stringify(answer);
};
