/**
 * What the suite starts for each scenario of a client, with the address of its server: the service saves that server, and an
 * agent calls its tools.
 */
import process from 'node:process';
import { callsOf, catalogName, nameOf } from './scenarios.ts';
import { ask, must, saveAgent } from './service-calls.ts';

interface Tool {
  readonly name: string;
  readonly source: string | null;
  readonly inputSchema: unknown;
}

const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const endpoint = process.argv[2] ?? '';
const name = nameOf(scenario);
const server = `/api/mcp-servers/${name}`;
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: unknown }[];
};

const argumentsOf = (tool: string, given: unknown, tools: readonly Tool[]): unknown => {
  const told = context.toolCalls?.find((call) => call.name === tool)?.arguments;
  if (told !== undefined) return told;
  if (tool !== 'json_schema_echo') return given;
  const focal = tools.find((one) => one.name === catalogName(scenario, 'json_schema_2020_12_tool'));
  return { schema: focal?.inputSchema };
};

/** Prompts and resources are for people, over the API. */
const readAll = async (): Promise<void> => {
  const { body: prompts } = await ask<{ name: string }[]>('GET', `${server}/prompts`);
  if (Array.isArray(prompts))
    for (const prompt of prompts) await ask('POST', `${server}/prompts/${encodeURIComponent(prompt.name)}`);
  const { body: resources } = await ask<{ uri: string }[]>('GET', `${server}/resources`);
  if (Array.isArray(resources))
    for (const { uri } of resources) await ask('GET', `${server}/resources/read?uri=${encodeURIComponent(uri)}`);
};

const needsConsent = scenario.startsWith('auth/');
await must('PUT', server, { endpoint, requiresApproval: false, oauthEnabled: needsConsent });
await must('POST', `/api/mcp-servers/refresh?name=${name}`);
const tools = (await must<Tool[]>('GET', '/api/tools')).filter(({ source }) => source === name);
const calls = callsOf(scenario);
const called = Object.keys(calls).filter((tool) => tools.some((one) => one.name === catalogName(scenario, tool)));
if (tools.length > 0) {
  // All of them, so that one which should not be there could be called.
  await saveAgent(
    name,
    name,
    tools.map((tool) => tool.name),
  );
  for (const tool of called)
    await must('POST', `/api/agents/${name}/run`, {
      message: `call ${tool} ${JSON.stringify(argumentsOf(tool, calls[tool], tools))}`,
    });
}
if (!needsConsent) await readAll();
