import Type, { type TSchema } from 'typebox';
import { nullable } from '../../contract/schema.ts';
import { type Checker, compileChecker } from '../../core/validate.ts';

const Message = Type.Object({ role: Type.String(), contents: Type.Array(Type.Object({ type: Type.String() })) });
const Messages = Type.Array(Message);
const ToolCall = Type.Object({ toolCallId: Type.String(), toolName: Type.String() });
const Tool = Type.Object({ name: Type.String(), inputSchema: Type.Object({}) });

/** What a replay relies on, by the part of a run; members that it does not look at may be anything. */
const shapes: Readonly<Record<string, TSchema>> = {
  definitions: Type.Object({ name: Type.String(), content: Type.Object({ name: Type.String() }) }),
  record: Type.Object({
    id: Type.String(),
    tenantId: Type.String(),
    agentName: Type.String(),
    status: Type.String(),
    depth: Type.Integer(),
    error: nullable(Type.Object({ type: Type.String(), class: Type.String() })),
  }),
  start: Type.Object({
    parameters: Type.Record(Type.String(), Type.String()),
    input: nullable(Messages),
    history: nullable(Messages),
    historySummary: Type.Optional(
      nullable(
        Type.Object({
          message: Message,
          until: Type.Integer(),
          except: Type.Array(Type.Integer()),
          prompt: Type.String(),
        }),
      ),
    ),
    resources: Type.Optional(Type.Array(Type.Object({ name: Type.String(), content: Type.String() }))),
    openResults: nullable(Type.Array(ToolCall)),
    compiled: nullable(Type.Object({ instructions: nullable(Type.String()), tools: Type.Array(Tool) })),
    summaries: Type.Array(nullable(Type.String())),
    inputs: Type.Array(Type.String()),
    attachments: Type.Record(Type.String(), nullable(Type.Object({ kind: Type.String(), sha256: Type.String() }))),
    missing: Type.Array(Type.String()),
  }),
  steps: Type.Object({
    number: Type.Integer(),
    prompt: nullable(Type.Record(Type.String(), Type.String())),
    answer: nullable(
      Type.Object({ text: Type.String(), toolCalls: Type.Array(ToolCall), finishReason: Type.String() }),
    ),
    failure: nullable(Type.Object({ class: Type.String(), type: Type.String(), message: Type.String() })),
    fallbacks: Type.Array(Type.Object({})),
    missing: nullable(Type.String()),
  }),
  tools: Type.Object({ toolName: Type.String(), arguments: nullable(Type.String()), succeeded: Type.Boolean() }),
  events: Type.Object({ type: Type.String() }),
};

const checkers = new Map<string, Checker>();

/** What is wrong with a value of a part, such as `input must be array`; null when a replay can work with it. */
export const shapeError = (part: string, value: unknown): string | null => {
  const schema = shapes[part];
  if (schema === undefined) return null;
  const checker = checkers.get(part) ?? compileChecker(schema);
  checkers.set(part, checker);
  if (checker.check(value)) return null;
  const [error] = checker.errors(value);
  return error === undefined ? 'it has another shape' : `${error.path} ${error.message}`.trim();
};
