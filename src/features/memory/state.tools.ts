import { agentModes } from '../../engine/context/index.ts';
import { type RegisteredTool, registeredTool } from '../../engine/tools/index.ts';
import { type MemoryDeps, type TodoEntry, todoStatuses } from './memory.store.ts';

const maxEntries = 100;
const longestEntry = 500;
const none = { type: 'object', properties: {}, additionalProperties: false } as const;

const writeSchema = {
  type: 'object',
  properties: {
    todos: {
      type: 'array',
      maxItems: maxEntries,
      description: 'The whole list in order; it replaces the one before',
      items: {
        type: 'object',
        properties: {
          text: { type: 'string', minLength: 1, maxLength: longestEntry, description: 'What is to be done' },
          status: { enum: todoStatuses },
        },
        required: ['text', 'status'],
        additionalProperties: false,
      },
    },
  },
  required: ['todos'],
  additionalProperties: false,
} as const;

const asJson = (todos: readonly TodoEntry[]) => ({ todos: todos.map(({ text, status }) => ({ text, status })) });

export const todoTools = ({ store, now }: MemoryDeps): readonly RegisteredTool[] => [
  registeredTool(
    {
      name: 'todo_list',
      description: 'Returns your todo list in its order.',
      inputSchema: none,
      effect: 'Read',
      execute: async (_args, owner) => asJson(await store.todos(owner)),
    },
    { kind: 'BuiltIn' },
  ),
  registeredTool(
    {
      name: 'todo_write',
      description: 'Replaces your todo list. Send every entry, also those that did not change.',
      inputSchema: writeSchema,
      effect: 'Write',
      async execute(args, owner) {
        const { todos } = args as unknown as { readonly todos: readonly TodoEntry[] };
        await store.saveTodos(owner, todos, now());
        return asJson(todos);
      },
    },
    { kind: 'BuiltIn', storesArguments: true },
  ),
];

const modeSchema = {
  type: 'object',
  properties: { mode: { enum: agentModes, description: 'plan: read, think and ask; act: carry the task out' } },
  required: ['mode'],
  additionalProperties: false,
} as const;

export const modeTools = ({ store, now }: MemoryDeps): readonly RegisteredTool[] => [
  registeredTool(
    {
      name: 'set_mode',
      description: 'Changes the mode in which you work; it stays until you change it again.',
      inputSchema: modeSchema,
      effect: 'Write',
      async execute(args, owner) {
        const { mode } = args as { readonly mode: string };
        await store.saveMode(owner, mode, now());
        return { mode };
      },
    },
    { kind: 'BuiltIn' },
  ),
];
