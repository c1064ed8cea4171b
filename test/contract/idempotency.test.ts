import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { defineOperations, noContent } from '../../src/contract/operation.ts';
import { createDispatch, operationEntries } from '../../src/core/dispatch.ts';
import { operations } from '../../src/operations.ts';
import { start } from '../features/runs/run-calls.ts';
import { forEachService, type TestApp } from '../support/app.ts';

interface KeyedAnswer {
  readonly body?: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

/** A call of every operation that declares idempotency, under a key. */
const calls: Readonly<Record<string, (app: TestApp, key: string) => Promise<KeyedAnswer>>> = {
  'runs.start': ({ client }, key) => start(client, 'helper', 'Hi', { headers: { 'idempotency-key': key } }),
  'chatCompletions.create': ({ client }, key) =>
    client.chatCompletions.create({
      body: { model: 'helper', messages: [{ role: 'user', content: 'Hi' }] },
      headers: { 'idempotency-key': key },
    }),
  'responses.create': ({ client }, key) =>
    client.responses.create({ body: { model: 'helper', input: 'Hi' }, headers: { 'idempotency-key': key } }),
};

forEachService(
  'an operation that declares idempotency gives a repeat the answer of the first request',
  async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    const declared = operationEntries(operations).filter(({ operation }) => operation.idempotency === true);
    assert.deepEqual(Object.keys(calls).sort(), declared.map(({ id }) => id).sort());
    for (const [id, call] of Object.entries(calls)) {
      const first = await call(app, id);
      const repeat = await call(app, id);
      const other = await call(app, `${id}-2`);
      assert.deepEqual(repeat.body, first.body, id);
      assert.notDeepEqual(other.body, first.body, id);
      assert.deepEqual(
        [first, repeat, other].map(({ headers }) => headers['idempotency-replayed']),
        [undefined, 'true', undefined],
        id,
      );
    }
  },
);

test('an operation cannot take the header without what it promises, nor promise it without the header', () => {
  const plain = { tag: 'A', role: null, scope: null, method: 'GET', path: '/a', summary: 'A', errors: [] } as const;
  const headers = Type.Object({ 'idempotency-key': Type.Optional(Type.String()) });
  const made = (more: object) =>
    createDispatch(
      { a: defineOperations({ get: { ...plain, responses: { 204: null }, ...more } }) },
      { a: { get: async () => noContent() } },
    );
  assert.throws(() => made({ headers }), /a\.get must declare idempotency and its header/);
  assert.throws(() => made({ idempotency: true }), /a\.get must declare idempotency and its header/);
  assert.equal(made({ headers, idempotency: true }).entries.length, 1);
});
