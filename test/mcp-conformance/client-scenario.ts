import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { callsOf, catalogName, clientSecret, nameOf } from './scenarios.ts';
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
  readonly context: {
    readonly toolCalls?: readonly { readonly name: string; readonly arguments: object }[];
    /** Of a client that the authorization server knows already. */
    readonly client_id?: string;
    readonly client_secret?: string;
  };
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

/** The document that the suite takes for that of this client. */
const clientDocument = 'https://conformance-test.local/client-metadata.json';

const oauthOf = ({ name, context }: ClientScenario): object => {
  if (!name.startsWith('auth/')) return {};
  const { client_id: known, client_secret: secret } = context;
  const id = known ?? (name === 'auth/basic-cimd' ? clientDocument : null);
  return {
    oauthEnabled: true,
    ...(id === null ? {} : { oauthClientId: id }),
    ...(secret === undefined ? {} : { oauthClientSecretConfigurationKey: clientSecret.key }),
  };
};

let people = 0;

/** As a person does who agrees to all of it; nobody does where the service sends no person anywhere. */
const authorize = async (server: string): Promise<void> => {
  const { status, body } = await ask<{ authorizationUri: string }>('POST', `${server}/oauth/start`);
  if (status >= 300) return;
  const answer = await fetch(body.authorizationUri, { redirect: 'manual' });
  const back = answer.headers.get('location');
  if (back === null) return;
  // More people come than one address may send in a minute.
  people += 1;
  const headers = { 'x-forwarded-for': `192.0.2.${people}` };
  await ask('GET', `${server}/oauth/callback${new URL(back).search}`, undefined, headers);
};

interface RunAnswer {
  readonly status?: string;
  readonly sessionId?: string;
  readonly clientToolCalls?: readonly { readonly callId: string; readonly elicitation?: object }[];
}

const run = async (agent: string, body: object): Promise<RunAnswer> =>
  (await ask<RunAnswer>('POST', `/api/agents/${agent}/run`, { ...body, stream: false })).body;

/** As a person does who agrees to whatever a server asks. */
const answerAll = async (agent: string, asked: RunAnswer): Promise<RunAnswer> => {
  if (asked.status !== 'AwaitingInput') return asked;
  const result = JSON.stringify({ action: 'accept', content: { confirmed: true } });
  const toolResults = (asked.clientToolCalls ?? []).map(({ callId }) => ({ callId, result }));
  return answerAll(agent, await run(agent, { sessionId: asked.sessionId, toolResults }));
};

const stateOf = async (name: string): Promise<string | undefined> =>
  (await must<{ servers: readonly { state: string }[] }>('POST', `/api/mcp-servers/refresh?name=${name}`)).servers[0]
    ?.state;

/** The service saves the server of a scenario, and an agent calls its tools. */
export const runClientScenario = async (scenario: ClientScenario): Promise<void> => {
  const name = nameOf(scenario.name);
  const server = `/api/mcp-servers/${name}`;
  await must('PUT', server, { endpoint: scenario.endpoint, requiresApproval: false, ...oauthOf(scenario) });
  const isAuthorized = scenario.name.startsWith('auth/');
  if (isAuthorized) await authorize(server);
  const state = await stateOf(name);
  // Where OAuth goes wrong on purpose, the suite looks at what was not sent.
  if (!isAuthorized) assert.equal(state, 'Connected');
  const tools = (await must<Tool[]>('GET', '/api/tools')).filter(({ source }) => source === name);
  if (tools.length > 0) {
    // All of them, so that one which should not be there could be called.
    await saveAgent(
      name,
      name,
      tools.map((tool) => tool.name),
    );
    const call = async ([tool, given]: readonly [string, unknown]): Promise<unknown> => {
      const message = `call ${tool} ${JSON.stringify(argumentsOf(scenario, tool, given, tools))}`;
      return answerAll(name, await run(name, { message, sessionId: randomUUID() }));
    };
    for (const entry of Object.entries(callsOf(scenario.name))) {
      const answer = JSON.stringify(await call(entry));
      if (!isAuthorized || !answer.includes('answered 403')) continue;
      // A person reads that it was refused, and agrees to what the server wants besides.
      await authorize(server);
      await call(entry);
    }
  }
  // Or the server has gone over to another issuer meanwhile.
  if (isAuthorized && (await stateOf(name)) === 'AuthorizationRequired') {
    await authorize(server);
    await stateOf(name);
  }
  if (state === 'Connected') await readAll(server);
  // The next one of this name is another server, and knows nothing of what this one wanted.
  if (isAuthorized) await ask('DELETE', server);
};
