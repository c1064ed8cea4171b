import { agentModes } from '../../engine/context/index.ts';
import { type RegisteredTool, registeredTool } from '../../engine/tools/index.ts';
import type { MemoryDeps } from './memory.store.ts';

const schema = {
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
      inputSchema: schema,
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
