/** Tools of the conformance suite; plain JavaScript, so that any build of the service loads it. */
const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });

export default {
  name: 'conformance',
  tools: [
    {
      name: 'add',
      description: 'Adds two numbers',
      inputSchema: object({ a: { type: 'number' }, b: { type: 'number' } }),
      execute: async ({ a, b }) => a + b,
    },
    {
      name: 'echo',
      description: 'Gives its text back',
      inputSchema: object({ text: { type: 'string' } }),
      execute: async ({ text }) => text,
    },
    {
      name: 'broken',
      description: 'Always fails',
      inputSchema: object({}),
      execute: async () => {
        throw new Error('a secret of the tool');
      },
    },
    {
      name: 'slow',
      description: 'Answers when it is told to stop',
      inputSchema: object({}),
      timeoutMs: 200,
      execute: (_args, { signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', () => resolve('late'), { once: true })),
    },
    {
      name: 'long',
      description: 'Answers more than it may',
      inputSchema: object({}),
      maxOutputBytes: 200,
      execute: async () => 'ä'.repeat(1000),
    },
  ],
};
