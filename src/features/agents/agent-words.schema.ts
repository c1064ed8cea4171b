import Type from 'typebox';

/** Longer than any word that is misspelt: the rules quote it. */
const maxWord = 256;

/** A word that a request may get wrong without being unreadable: the agent rules report it. */
export const openWord = <const V extends readonly string[]>(values: V) =>
  Type.Unsafe<V[number]>({
    type: 'string',
    maxLength: maxWord,
    description: `One of ${values.join(', ')}`,
    examples: values,
  });

/** Makes the schema of a member with a closed set of words: open in requests, closed in answers. */
export type WordSchema = <const V extends readonly string[]>(values: V) => ReturnType<typeof openWord<V>>;
