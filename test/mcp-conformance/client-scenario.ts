import assert from 'node:assert/strict';
import { callsOf, catalogName, nameOf } from './scenarios.ts';
import { ask, must, saveAgent } from './service-calls.ts';

interface Tool {
  readonly name: string;
  readonly source: string | null;
  readonly jsonSchema: unknown;
}

export interface ClientScenario {
  readonly name: string;
  /** Of the server of the suite. */
  readonly endpoint: string;
  readonly context: { readonly toolCalls?: readonly { readonly name: string; readonly arguments: object }[] };
}

const argumentsOf = (
  { name: scenario, context }: ClientScenario,
  tool: string,
  given: unknown,
  tools: readonly Tool[],
): unknown => {
  const told = context.toolCalls?.find((call) => call.name === tool)?.arguments;
  // The suite has null for what a call leaves out; the schemas of its tools do not allow it, and so neither does the service.
  if (told !== undefined) return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== null));
  if (tool !== 'json_schema_echo') return given;
  const focal = tools.find((one) => one.name === catalogName(scenario, 'json_schema_2020_12_tool'));
  return { schema: focal?.jsonSchema };
};

/** Prompts and resources are for people, over the API. */
const readAll = async (server: string): Promise<void> => {
  for (const { name } of await must<{ name: string }[]>('GET', `${server}/prompts`))
    await ask('POST', `${server}/prompts/${encodeURIComponent(name)}`);
  for (const { uri } of await must<{ uri: string }[]>('GET', `${server}/resources`))
    await ask('GET', `${server}/resources/read?uri=${encodeURIComponent(uri)}`);
};

/** The service saves the server of a scenario, and an agent calls its tools. */
export const runClientScenario = async (scenario: ClientScenario): Promise<void> => {
  const name = nameOf(scenario.name);
  const server = `/api/mcp-servers/${name}`;
  await must('PUT', server, {
    endpoint: scenario.endpoint,
    requiresApproval: false,
    oauthEnabled: scenario.name.startsWith('auth/'),
  });
  const looked = await must<{ servers: readonly { state: string }[] }>('POST', `/api/mcp-servers/refresh?name=${name}`);
  assert.equal(looked.servers[0]?.state, 'Connected');
  const tools = (await must<Tool[]>('GET', '/api/tools')).filter(({ source }) => source === name);
  if (tools.length > 0) {
    // All of them, so that one which should not be there could be called.
    await saveAgent(
      name,
      name,
      tools.map((tool) => tool.name),
    );
    for (const [tool, given] of Object.entries(callsOf(scenario.name)))
      await ask('POST', `/api/agents/${name}/run`, {
        message: `call ${tool} ${JSON.stringify(argumentsOf(scenario, tool, given, tools))}`,
      });
  }
  await readAll(server);
};
