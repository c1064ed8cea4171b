import assert from 'node:assert/strict';
import type { Answer, Body } from './api.ts';
import { rule } from './rule.ts';

const assertError = ({ status, headers, body }: Answer, expected: number, type: string, code: string): void => {
  assert.equal(status, expected);
  assert.equal(headers.get('content-type'), 'application/json');
  assert.deepEqual(Object.keys(body), ['error']);
  assert.deepEqual(Object.keys(body.error).sort(), ['code', 'message', 'param', 'type']);
  assert.deepEqual([body.error.type, body.error.code], [type, code]);
  assert.ok(headers.has('x-request-id'));
};

rule('OAI-1 OAI-2 OAI-3', 'every error below /v1 has the envelope of that API, whatever refuses it', async (api) => {
  assertError(await api.get('/v1/nothing'), 404, 'invalid_request_error', 'unknown_url');
  assertError(await api.get('/v1'), 404, 'invalid_request_error', 'unknown_url');
  assertError(await api.del('/v1/models'), 405, 'invalid_request_error', 'method_not_allowed');
  assertError(await api.as('wrong').get('/v1/models'), 401, 'authentication_error', 'unauthenticated');
  const body = { model: 'x', messages: [{ role: 'user', content: 'Hi' }] };
  const reader = await api.withKey('Reader', ['RunsRead']);
  assertError(await reader.post('/v1/chat/completions', body), 403, 'permission_error', 'insufficient_role');
  assertError(await api.post('/v1/chat/completions', body), 404, 'invalid_request_error', 'model_not_found');
  const options = { raw: '{', headers: { 'content-type': 'application/json' } };
  assertError(
    await api.post('/v1/chat/completions', undefined, options),
    400,
    'invalid_request_error',
    'malformed_json',
  );
});

rule('OAI-9 OAI-18 OAI-22', 'an agent is a model, and answers a chat', async (api) => {
  const agent = await api.agent();
  const { body: list } = await api.get('/v1/models');
  assert.ok(list.data.some(({ id }: Body) => id === agent));
  assert.equal((await api.get(`/v1/models/${agent}`)).body.owned_by, 'database');
  const messages = [{ role: 'user', content: 'Hi' }];
  const { status, body, headers } = await api.post('/v1/chat/completions', { model: agent, messages });
  assert.equal(status, 200);
  assert.equal(body.choices[0].finish_reason, 'stop');
  assert.equal(body.id, `chatcmpl-${headers.get('x-run-id')?.replaceAll('-', '')}`);
});

rule('OAI-26 OAI-36 OAI-37', 'a response is kept until it is removed', async (api) => {
  const agent = await api.agent();
  const { body: first } = await api.post('/v1/responses', { model: agent, input: 'Hi' });
  const { body: next } = await api.post('/v1/responses', {
    model: agent,
    input: 'And now?',
    previous_response_id: first.id,
  });
  assert.equal(next.previous_response_id, first.id);
  assert.deepEqual((await api.get(`/v1/responses/${first.id}`)).body, first);
  assert.equal((await api.get(`/v1/responses/${first.id}/input_items`)).body.data.length, 1);
  assert.equal((await api.post(`/v1/responses/${first.id}/cancel`)).body.status, 'completed');
  assert.equal((await api.del(`/v1/responses/${first.id}`)).status, 200);
  assertError(await api.get(`/v1/responses/${first.id}`), 404, 'invalid_request_error', 'response_not_found');
  assert.equal((await api.get(`/v1/responses/${next.id}`)).status, 200);
});

rule('OAI-40 OAI-41 OAI-44', 'a conversation is reserved, and has what its responses say', async (api) => {
  const agent = await api.agent();
  const { body: reserved } = await api.post('/v1/conversations', { metadata: { a: 'b' } });
  assert.deepEqual(reserved.metadata, { a: 'b' });
  await api.post('/v1/responses', { model: agent, input: 'Hi', conversation: reserved.id });
  const { body: items } = await api.get(`/v1/conversations/${reserved.id}/items?order=asc`);
  assert.deepEqual(
    items.data.map(({ role }: Body) => role),
    ['user', 'assistant'],
  );
  const { body: item } = await api.get(`/v1/conversations/${reserved.id}/items/${items.first_id}`);
  assert.deepEqual(item, items.data[0]);
  assertError(await api.get('/v1/conversations/nobodys'), 404, 'invalid_request_error', 'conversation_not_found');
});
