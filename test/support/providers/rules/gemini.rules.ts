import type { SimulatedRequest } from '../scenario.ts';

interface Part {
  readonly text?: string;
  readonly thoughtSignature?: string;
  readonly functionCall?: { readonly id?: string; readonly name: string };
  readonly functionResponse?: { readonly id?: string; readonly name: string };
}

interface Content {
  readonly role?: string;
  readonly parts?: readonly Part[];
}

const isEmpty = (part: Part): boolean =>
  Object.keys(part).length === 0 || (part.text === '' && part.thoughtSignature === undefined);

const callsOf = (content: Content | undefined) => (content?.parts ?? []).flatMap((part) => part.functionCall ?? []);

const responsesOf = (content: Content | undefined) =>
  (content?.parts ?? []).flatMap((part) => part.functionResponse ?? []);

const pairing = (contents: readonly Content[]): string | null => {
  for (const [index, content] of contents.entries()) {
    const before = contents[index - 1];
    const calls = callsOf(content);
    if (calls.length > 0 && before?.role !== 'user')
      return 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.';
    const responses = responsesOf(content);
    const made = callsOf(before);
    if (responses.length > 0 && made.length === 0)
      return 'Please ensure that function response turn comes immediately after a function call turn.';
    if (responses.length !== made.length || responses.some(({ name }, nth) => name !== made[nth]?.name))
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.';
  }
  return callsOf(contents.at(-1)).length > 0
    ? 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
    : null;
};

/** What Gemini refuses of a conversation; null: it takes it. */
export const geminiObjection = ({ body }: SimulatedRequest): string | null => {
  const contents = body['contents'] as readonly Content[] | undefined;
  const system = body['systemInstruction'] as Content | undefined;
  if (!Array.isArray(contents) || contents.length === 0) return 'contents is not specified';
  if (contents[0]?.role !== 'user') return 'Please ensure that the first content has the role user.';
  for (const { role, parts } of system === undefined ? contents : [...contents, { ...system, role: 'user' }]) {
    if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.';
    if (parts === undefined || parts.length === 0)
      return 'Unable to submit request because it must include at least one parts field.';
    if (parts.some(isEmpty)) return 'Unable to submit request because it has an empty text parameter.';
  }
  return pairing(contents);
};
