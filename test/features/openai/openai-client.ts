import OpenAI from 'openai';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import type { AppSetup, TestApp } from '../../support/app.ts';
import { tool } from '../runs/run-calls.ts';

export const token = 'token-of-the-clients-0123456789';

/** The official client, as a program has it that has only changed its address and key. */
export const officialClient = ({ url }: Pick<TestApp, 'url'>, options: { readonly apiKey?: string } = {}): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0, ...options });

/** A tool that the caller's own program executes. */
const clientTool = (name: string): ToolDefinition => ({
  name,
  description: `The tool ${name} of the caller`,
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
  runsOnClient: true,
});

export const local = { provider: 'local', model: 'any' };

/** An agent of a simulated provider with a tool of the service, one of its caller, and one that needs an approval. */
export const helperSetup = (setup: AppSetup = {}): AppSetup => ({
  host: { AuthToken: token },
  token,
  simulator: {},
  tools: [
    tool('add', async () => 'four'),
    clientTool('weather'),
    tool('wipe', async () => 'wiped', {
      requiresApproval: true,
      inputSchema: { type: 'object', properties: { disk: { type: 'string' } } },
    }),
  ],
  agents: [{ name: 'helper', model: local, instructions: 'Be brief.', toolNames: ['add', 'weather', 'wipe'] }],
  ...setup,
});
