import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { operationEntries } from '../../src/core/dispatch.ts';
import { operations } from '../../src/operations.ts';
import { callsOf, operationsWithBodies } from './hostile-calls.ts';
import { protocolCalls } from './protocol-bodies.ts';

test('every operation that reads a body has hostile ones for each property of it, and grows them to the size that is asked for', () => {
  assert.ok(operationsWithBodies.length > 30, 'the table is read');
  for (const entry of operationsWithBodies) {
    const calls = callsOf(entry);
    assert.ok(calls.length >= 10, entry.id);
    for (const { body } of calls.slice(0, 5)) assert.ok(body.make(10_000).length > 5000, `${entry.id} ${body.name}`);
    const properties = (entry.operation.body as { properties?: object } | undefined)?.properties ?? {};
    for (const [name, schema] of Object.entries(properties)) {
      if (!/"(?:string|array|object|number|integer)"/.test(JSON.stringify(schema))) continue;
      assert.ok(
        calls.some(({ body }) => body.name.startsWith(`${name}.`)),
        `${entry.id} ${name}`,
      );
    }
  }
});

test('each operation whose protocol reads its body has bodies of that protocol', () => {
  const own = operationEntries(operations).filter(({ operation }) => operation.ownProtocol ?? operation.signed);
  assert.deepEqual(Object.keys(protocolCalls).toSorted(), own.map(({ id }) => id).toSorted());
});

const root = resolve(import.meta.dirname, '../..');

/** Which tests send hostile answers to the code that reads them; a text: why none does. */
const readers: Readonly<Record<string, string>> = {
  'src/cli/remote-agent.ts': 'a command, which nobody waits for but its user',
  'src/core/documents/json-depth.ts': 'texts within answers: arguments in model-answers.test.ts',
  'src/engine/context/turn-resume.ts': 'arguments that the service has stored',
  'src/engine/turn/loop/judge.ts': 'a text of a model, bounded as its answer in model-answers.test.ts',
  'src/features/remote-agents/agent-cards.ts': 'protocol-answers.test.ts',
  'src/features/security/index.ts': 'identity-answers.test.ts',
  'src/features/tools/declared-tool.request.ts': 'tool-answers.test.ts',
  'src/providers/mcp/oauth/oauth-web.ts': 'identity-answers.test.ts',
  'src/providers/mcp/wire/json-rpc.ts': 'protocol-answers.test.ts',
  'src/providers/models/call-failure.ts': 'model-answers.test.ts',
  'src/providers/models/chat-completions/chat-answer.ts': 'model-answers.test.ts',
  'src/providers/models/embeddings.ts': 'model-answers.test.ts',
  'src/providers/models/model-list.ts': 'model-answers.test.ts',
  'src/providers/models/transport/wire-response.ts': 'model-answers.test.ts',
  'src/providers/models/vendor-error.ts': 'model-answers.test.ts',
};

test('every reader of answers of other systems gets hostile ones', () => {
  const files = globSync('src/**/*.{ts,tsx}', { cwd: root }).map((file) => file.replaceAll('\\', '/'));
  const reading = files.filter((file) =>
    /\bparseForeignJson\(|\bnew AnswerShape\(/.test(readFileSync(join(root, file), 'utf8')),
  );
  assert.deepEqual(reading.toSorted(), Object.keys(readers).toSorted());
  for (const test of Object.values(readers))
    if (test.endsWith('.test.ts') && !test.includes(' ')) readFileSync(join(import.meta.dirname, test));
});
