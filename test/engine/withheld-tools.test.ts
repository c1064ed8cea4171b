import assert from 'node:assert/strict';
import { test } from 'node:test';
import { promptAsMade } from '../../src/engine/turn/model/withheld-tools.ts';
import type { ModelPrompt } from '../../src/providers/models/model-provider.ts';

// Providers such as Google name the tool of a result, and refuse one that was not declared.
test('a result of a tool that was to be looked for stands under the name that the model has called', () => {
  const call = (toolName: string) => ({ type: 'tool-call' as const, toolCallId: toolName, toolName, input: {} });
  const result = (toolName: string) => ({
    type: 'tool-result' as const,
    toolCallId: toolName,
    toolName,
    output: { type: 'text' as const, value: 'done' },
  });
  const prompt: ModelPrompt = [
    { role: 'assistant', content: [call('book'), call('look')] },
    { role: 'tool', content: [result('book'), result('look')] },
  ];
  const agent = { tools: new Map(), modelTools: [], withheldTools: [{ name: 'book', inputSchema: {} }] };
  const names = (made: ModelPrompt): string[] =>
    made.flatMap(({ content }) =>
      typeof content === 'string' ? [] : content.flatMap((part) => ('toolName' in part ? [part.toolName] : [])),
    );
  assert.deepEqual(names(promptAsMade(agent as never, prompt)), ['tools_call', 'look', 'tools_call', 'look']);
  assert.equal(promptAsMade({ ...agent, withheldTools: null } as never, prompt), prompt, 'nothing is withheld');
});
