import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import type { Call } from './load.ts';
import type { Server } from './servers.ts';

const model = 'gpt-4.1-mini';

const toolModule = `export default {
  name: 'bench',
  tools: [{
    name: 'lookup',
    description: 'Looks a word up.',
    inputSchema: { type: 'object', properties: { word: { type: 'string' } }, required: ['word'], additionalProperties: false },
    execute: ({ word }) => ({ word, length: word.length }),
  }],
};
`;

/** A temporary folder that is gone when the process ends. */
export const temporaryFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

export interface FolderOptions {
  /** Further members of `Service`. */
  readonly settings?: string;
  /** The model of the agents is called by its name, too. */
  readonly exposesModels?: boolean;
}

/** Where one `acp` runs: its configuration with the simulator as the model provider, and a store of its own. */
export const acpFolder = (
  parent: string,
  name: string,
  simulator: Server,
  { settings, exposesModels = false }: FolderOptions = {},
): { cwd: string; store: string } => {
  const cwd = join(parent, name);
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'lookup.mjs'), toolModule);
  writeFileSync(
    join(cwd, 'service.yaml'),
    `Host: { Url: "http://127.0.0.1:0", LogLevel: warn, Modules: [./lookup.mjs]${exposesModels ? ', OpenAiCompat: { ExposeModels: true }' : ''} }
Service: { Providers: { OpenAI: { ApiKey: none, ${exposesModels ? `DefaultModel: ${model}, ` : ''}Endpoint: "${simulator.url.origin}/v1" } }${settings === undefined ? '' : `, ${settings}`} }
`,
  );
  return { cwd, store: join(cwd, 'data', 'acp.db') };
};

/** The agents that are run: one without tools, one whose model asks for a tool first. */
export const createAgents = async (acp: Server): Promise<void> => {
  for (const [name, toolNames] of [
    ['plain', []],
    ['tooled', ['lookup']],
  ] as const) {
    const response = await fetch(new URL('/api/agents', acp.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, toolNames, model: { provider: 'openai', model } }),
    });
    if (!response.ok) throw new Error(`The agent ${name} could not be created: ${await response.text()}`);
  }
};

export type Answer = 'sse' | 'json';
const message = 'Name twenty words that come to mind when you think of a river.';
// The simulator counts its words from 0.
const text = { firstToken: 'word0', complete: 'word19' };

/** A chat with a model, of whoever serves it under that name. */
export const modelCall = ({ url }: Server, answer: Answer, provider?: string): Call => ({
  url,
  path: '/v1/chat/completions',
  body: JSON.stringify({
    model: provider === undefined ? model : `${provider}/${model}`,
    messages: [{ role: 'user', content: message }],
    ...(answer === 'sse' && { stream: true, stream_options: { include_usage: true } }),
  }),
  firstToken: text.firstToken,
  complete: answer === 'sse' ? '[DONE]' : text.complete,
});

export const yardstickCall = (yardstick: Server, answer: Answer): Call => ({
  url: yardstick.url,
  path: '/',
  body: JSON.stringify({ message, stream: answer === 'sse' }),
  firstToken: text.firstToken,
  complete: answer === 'sse' ? '[DONE]' : text.complete,
});

export const acpCall = (acp: Server, answer: Answer, tools: boolean, sessionId?: string): Call => ({
  url: acp.url,
  path: `/api/agents/${tools ? 'tooled' : 'plain'}/run`,
  body: JSON.stringify({ message, stream: answer === 'sse', ...(sessionId !== undefined && { sessionId }) }),
  firstToken: text.firstToken,
  complete: answer === 'sse' ? 'event: run.completed' : '"status":"Completed"',
});

/** The same run as a streamed chat of the OpenAI API. */
export const chatCall = (acp: Server): Call => ({
  url: acp.url,
  path: '/v1/chat/completions',
  body: JSON.stringify({ model: 'plain', messages: [{ role: 'user', content: message }], stream: true }),
  firstToken: text.firstToken,
  complete: '[DONE]',
});
