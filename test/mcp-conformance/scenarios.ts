/** Calls of remote tools that an agent makes for a scenario of the suite: names as the server gives them, with their arguments. */
const calledTools: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  tools_call: { add_numbers: { a: 5, b: 3 } },
  'elicitation-sep1034-client-defaults': { test_client_elicitation_defaults: {} },
  'sse-retry': { test_reconnection: {} },
  'sep-2322-client-request-state': {
    test_mrtr_echo_state: {},
    test_mrtr_no_state: {},
    test_mrtr_unrelated: {},
    test_mrtr_no_result_type: {},
  },
  'http-standard-headers': { test_headers: {}, 'my-hyphenated-tool': {} },
  // With the arguments that the suite gives.
  'http-custom-headers': { test_custom_headers: {}, test_custom_headers_null: {} },
  'http-invalid-tool-headers': { valid_tool: { region: 'eu' } },
  'json-schema-ref-no-deref': { lookup_user: { id: 'ada' } },
  // With the schema of the other tool.
  'json-schema-2020-12-preservation': { json_schema_echo: {} },
};

/** Of the client that the authorization server of the suite knows, and where the service finds it. */
export const clientSecret = { key: 'Service:McpSecrets:suite', value: 'pre-registered-secret' } as const;

export const callsOf = (scenario: string): Readonly<Record<string, unknown>> =>
  calledTools[scenario] ?? (scenario.startsWith('auth/') ? { 'test-tool': {} } : {});

/** Of the server and of the agent of a scenario, in the characters and at the length of both. */
export const nameOf = (scenario: string): string => scenario.replace(/[^A-Za-z0-9_-]/g, '-').slice(-32);

/** As the catalog names a tool of a scenario's server. */
export const catalogName = (scenario: string, tool: string): string => `${nameOf(scenario)}_${tool}`;

interface Rule {
  readonly when?: Readonly<Record<string, string | number>>;
  readonly reply: Readonly<Record<string, unknown>>;
}

export const throughName = 'through';
const sum = { name: `${throughName}_add_numbers`, arguments: { a: 5, b: 3 } };

/** What the agents do whom the suite calls, by the models of their bindings; a second turn says what the first one got. */
const exposed: readonly Rule[] = [
  {
    when: { model: 'steps' },
    reply: { toolCalls: Array.from({ length: 3 }, () => ({ name: 'step', arguments: {} })) },
  },
  { when: { model: 'change' }, reply: { toolCalls: [{ name: 'change_tools', arguments: {} }] } },
  { when: { model: 'fails' }, reply: { error: 'provider_error' } },
  { when: { model: 'adds' }, reply: { toolCalls: [sum] } },
  { when: { model: 'adds-often' }, reply: { toolCalls: [sum, sum, sum] } },
];

/** The script of the model, in JSON, which is YAML. */
export const scriptFor = (scenarios: readonly string[]): string => {
  const remote = scenarios.flatMap((scenario) =>
    Object.keys(callsOf(scenario)).map(
      (tool): Rule => ({
        when: { model: nameOf(scenario), message: `/^call ${tool} (?<args>.*)$/s` },
        reply: { toolCalls: [{ name: catalogName(scenario, tool), arguments: '{{args}}' }] },
      }),
    ),
  );
  // Also of a run that goes on after a question, whose first turn is its own.
  const answers = scenarios.flatMap((scenario) =>
    Object.keys(callsOf(scenario)).map(
      (tool): Rule => ({ when: { tool: catalogName(scenario, tool) }, reply: { text: '{{last}}' } }),
    ),
  );
  const answer: Rule = { when: { call: 2 }, reply: { text: '{{last}}' } };
  return JSON.stringify({ rules: [...answers, answer, ...remote, ...exposed, { reply: { text: 'Hello.' } }] });
};
