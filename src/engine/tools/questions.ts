import type { Json } from '../../contract/schema.ts';

/** What whoever offers a remote tool asks a person before the call goes on. */
export interface ToolQuestion {
  /** The name that the asker gives it, by which the answer goes back. */
  readonly key: string;
  /** `form`: values that fit the schema. `url`: the person goes to an address, which nobody here opens. */
  readonly mode: 'form' | 'url';
  readonly message: string;
  readonly requestedSchema: Json | null;
  readonly url: string | null;
}

/** What a person has said; a result of null: the question was not answered. */
export interface QuestionAnswer {
  readonly key: string;
  /** JSON text, as it was given. */
  readonly result: string | null;
}

/** A call that goes on with what was said. */
export interface ContinuedCall {
  /** What the body has left when it asked. */
  readonly state: string;
  readonly answers: readonly QuestionAnswer[];
}

/** Thrown by a body of the service itself: the call waits for answers, and is made again with them and with `state`. */
export class ToolQuestions extends Error {
  readonly questions: readonly ToolQuestion[];
  readonly state: string;

  constructor(questions: readonly ToolQuestion[], state: string) {
    super('The call waits for answers.');
    this.name = 'ToolQuestions';
    this.questions = questions;
    this.state = state;
  }
}

/** The questions as they may be shown; null: they cannot be shown without what the guards have taken from them. */
export const inspectedQuestions = async (
  { questions, state }: ToolQuestions,
  inspect: ((text: string) => Promise<string>) | undefined,
): Promise<ToolQuestions | null> => {
  if (inspect === undefined) return new ToolQuestions(questions, state);
  const shown: ToolQuestion[] = [];
  for (const question of questions) {
    const message = await inspect(question.message);
    // A schema or an address with a mark in it is another one.
    const rest = JSON.stringify([question.requestedSchema, question.url]);
    if ((await inspect(rest)) !== rest) return null;
    shown.push({ ...question, message });
  }
  return new ToolQuestions(shown, state);
};
