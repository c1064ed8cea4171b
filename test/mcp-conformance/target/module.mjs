/** Tools of the agents that the suite calls; plain JavaScript, so that any build of the service loads it. */
import process from 'node:process';

const api = process.env.ACP_MCP_CONFORMANCE_URL;
const sometimes = 'test_sometimes';
const inputSchema = { type: 'object', properties: {} };

export default () => ({
  name: 'mcp-conformance',
  tools: [
    { name: 'step', description: 'A step of work', inputSchema, execute: async () => 'done' },
    {
      name: 'change_tools',
      description: 'Offers one agent more, or one less',
      inputSchema,
      async execute() {
        const { status } = await fetch(`${api}/api/agents/${sometimes}`, { method: 'DELETE' });
        if (status !== 404) return 'one less';
        await fetch(`${api}/api/agents`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ name: sometimes, model: { provider: 'demo', model: sometimes } }),
        });
        return 'one more';
      },
    },
  ],
});
