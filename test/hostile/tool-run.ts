import assert from 'node:assert/strict';

/** The scripted model calls the tool, and says nothing of what it got: to repeat it would be no cost of the service. */
export const scriptOf = (tool: string) => [
  { when: { tool }, reply: { text: 'done' } },
  { when: { message: 'Hi' }, reply: { toolCalls: [{ name: tool, arguments: {} }] } },
];

/** A run of the agent `caller`. Its answer is read and not parsed, since the caller is a part of the same process. */
export const calledTool = async (url: string): Promise<void> => {
  const response = await fetch(`${url}/api/agents/caller/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"message":"Hi"}',
  });
  await response.arrayBuffer();
  assert.equal(response.status, 200);
};
