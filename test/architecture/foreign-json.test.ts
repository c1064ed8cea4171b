import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');
const parses = /\bJSON\s*\.\s*parse\b|\.json\(\)|from 'secure-json-parse'/;

const codeOf = (file: string): string => readFileSync(join(root, file), 'utf8').replaceAll(/^\s*(\/?\*|\/\/).*$/gm, '');

/** Where bytes of other systems arrive: the adapters, the engine that reads the output of models, and the features that send requests. */
const readsOthers = (file: string, code: string): boolean =>
  /^src\/(providers|engine)\//.test(file) || /from '[^']*providers\/(?!models\/)/.test(code);

// What is parsed there has another origin than an answer.
const ofTheService: Readonly<Record<string, string>> = {
  'src/engine/control/tool-hold.ts': 'the record of a call',
  'src/engine/record/event-pack.ts': 'events, as they were recorded',
  'src/engine/record/payload.ts': 'a payload, as it was recorded',
  'src/engine/record/run-listeners.ts': 'an event of the run itself',
  'src/engine/record/run-log-unit.ts': 'the terminal event of the run itself',
  'src/engine/tools/arguments.ts': 'arguments of a model, counted on the line before',
  'src/engine/tools/definition.ts': 'a copy of a schema',
  'src/engine/tools/registry.ts': 'a copy of a schema',
  'src/features/mcp-servers/connections.ts': 'a stored record',
  'src/features/mcp-servers/listed-tools.ts': 'a stored list',
  'src/features/mcp-servers/oauth/module-grants.ts': 'a grant that the service has saved',
  'src/features/mcp-servers/questions.ts': 'the answer of a caller, a body that was counted',
  'src/features/mcp-servers/remote-rounds.ts': 'the state of a call that the service has saved',
  'src/features/remote-agents/card-changes.rules.ts': 'stored cards',
  'src/providers/models/embeddings.ts': 'tokens of the request',
  'src/providers/models/scripted/script-template.ts': 'a file of the host',
  'src/providers/models/transport/scoped-fetch.ts': 'the body of the request',
};

test('JSON of other systems is parsed in one place, which counts it before', () => {
  const files = globSync('src/**/*.{ts,tsx}', { cwd: root }).map((file) => file.replaceAll('\\', '/'));
  const parsing = files.filter((file) => {
    const code = codeOf(file);
    return parses.test(code) && readsOthers(file, code);
  });
  assert.deepEqual(parsing.toSorted(), Object.keys(ofTheService).toSorted(), 'parseForeignJson does it');
  const users = files.filter((file) => /\bparseForeignJson\(/.test(codeOf(file)));
  assert.ok(users.length >= 10, 'the rule sees files');
});
