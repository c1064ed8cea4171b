import assert from 'node:assert/strict';
import { test } from 'node:test';
import { McpFailure } from '../../../src/providers/mcp/mcp-failure.ts';
import { versionOfDiscovery, versionOfFailure } from '../../../src/providers/mcp/negotiation.ts';
import { visibleText } from '../../../src/providers/mcp/visible-text.ts';
import { decodeHeaderValue, encodeHeaderValue } from '../../../src/providers/mcp/wire/header-value.ts';
import { parseMessage } from '../../../src/providers/mcp/wire/json-rpc.ts';
import { mirroredArguments, parameterHeaders } from '../../../src/providers/mcp/wire/parameter-headers.ts';
import { finalErrorCode } from '../../../src/providers/mcp/wire/protocol.ts';

const http = (status: number) => new McpFailure('http', { status });
const rpc = (code: number, status = 200, data?: unknown) => new McpFailure('rpc', { code, status, data });

test('MCP-34 a discovery that lists a version chooses the newest common one', () => {
  assert.equal(versionOfDiscovery({ supportedVersions: ['2027-01-01', '2026-07-28'] }).version, '2026-07-28');
  assert.deepEqual(versionOfDiscovery({ supportedVersions: ['2025-03-26', '2025-06-18'] }), {
    generation: 'Handshake',
    version: '2025-06-18',
  });
  assert.throws(() => versionOfDiscovery({ supportedVersions: ['2024-11-05'] }), { kind: 'no-common-version' });
  for (const broken of ['2026-07-28', null])
    assert.throws(() => versionOfDiscovery({ supportedVersions: broken }), { kind: 'broken' });
});

test('MCP-34 a server that answers a discovery and speaks of no versions answers every method, and is one of the handshake', () => {
  assert.deepEqual(versionOfDiscovery({}), { generation: 'Handshake', version: '2025-11-25' });
});

test('MCP-34 what an old server answers chooses the handshake generation, and nothing else does', () => {
  for (const failure of [
    rpc(-32601),
    rpc(-32601, 404),
    http(400),
    http(404),
    http(405),
    rpc(-32000, 400),
    rpc(-32602, 200),
    rpc(-32000),
    rpc(-32001),
    rpc(-32000, 200),
  ])
    assert.equal(
      versionOfFailure(failure)?.generation,
      'Handshake',
      `${failure.kind} ${failure.code} ${failure.status}`,
    );
  for (const status of [401, 403, 406, 429, 500, 502, 503])
    assert.equal(versionOfFailure(http(status)), null, String(status));
  for (const code of [-32020, -32021]) assert.equal(versionOfFailure(rpc(code, 400)), null);
  for (const status of [401, 403, 429, 500, 503]) assert.equal(versionOfFailure(rpc(-32000, status)), null);
  assert.equal(versionOfFailure(rpc(-32603)), null);
  assert.equal(versionOfFailure(new McpFailure('no-answer')), null);
  assert.equal(versionOfFailure(new McpFailure('broken')), null);
  assert.equal(versionOfFailure(new McpFailure('unauthorized', { status: 401 })), null);
});

test('MCP-34 an unsupported version chooses the newest of the list that comes with it', () => {
  const unsupported = (data?: unknown) => versionOfFailure(rpc(-32022, 400, data));
  assert.equal(unsupported({ supported: ['2025-03-26', '2025-11-25'] })?.version, '2025-11-25');
  assert.equal(unsupported(undefined), null);
  assert.throws(() => unsupported({ supported: ['1999-01-01'] }), { kind: 'no-common-version' });
});

test('MCP-34 numbers from before the final revision count with the same data, and without it mean what they meant', () => {
  assert.equal(finalErrorCode(-32004, { supported: [] }), -32022);
  assert.equal(finalErrorCode(-32003, { requiredCapabilities: {} }), -32021);
  assert.equal(finalErrorCode(-32001, { header: 'Mcp-Method' }), -32020);
  for (const code of [-32001, -32003, -32004]) assert.equal(finalErrorCode(code, undefined), code);
  assert.equal(finalErrorCode(-32004, { other: 1 }), -32004);
});

test('MCP-35 values that are not plain ASCII are encoded, and every text comes back', () => {
  for (const plain of ['look', 'a b', 'x'.repeat(100)]) assert.equal(encodeHeaderValue(plain), plain);
  for (const text of ['Köln', '', ' a', 'a ', 'a\nb', '=?base64?YQ==?=', '\u{1f600}']) {
    const encoded = encodeHeaderValue(text);
    assert.match(encoded, /^=\?base64\?.*\?=$/);
    assert.equal(decodeHeaderValue(encoded), text);
  }
  assert.equal(decodeHeaderValue('=?base64?*?='), null);
  assert.equal(decodeHeaderValue('=?base64?/w==?='), null);
});

const object = (properties: object) => ({ type: 'object', properties });

test('MCP-18 MCP-35 annotations are valid on properties of properties that are text, integer or boolean', () => {
  const schema = object({
    a: { type: 'string', 'x-mcp-header': 'A' },
    b: object({ c: { type: 'integer', 'x-mcp-header': 'C' } }),
  });
  const mirrored = mirroredArguments(schema);
  assert.ok(mirrored !== null);
  assert.deepEqual(parameterHeaders(mirrored, { a: 'x', b: { c: 7 } }), { 'mcp-param-a': 'x', 'mcp-param-c': '7' });
  assert.deepEqual(parameterHeaders(mirrored, { a: null, b: {} }), {});
  assert.deepEqual(parameterHeaders(mirrored, { a: ['x'], b: { c: 1.5 } }), {});
  for (const wrong of [
    object({ a: { type: 'number', 'x-mcp-header': 'A' } }),
    object({ a: { type: 'object', 'x-mcp-header': 'A' } }),
    object({ a: { 'x-mcp-header': 'A' } }),
    object({ a: { type: 'string', 'x-mcp-header': '' } }),
    object({ a: { type: 'string', 'x-mcp-header': 'A B' } }),
    object({ a: { type: 'string', 'x-mcp-header': 1 } }),
    object({ a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } }),
    object({ a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } }),
    { type: 'object', anyOf: [object({ a: { type: 'string', 'x-mcp-header': 'A' } })] },
    { type: 'string', 'x-mcp-header': 'A' },
  ])
    assert.equal(mirroredArguments(wrong), null, JSON.stringify(wrong));
  assert.deepEqual(mirroredArguments(object({ a: { const: { 'x-mcp-header': 1 } } })), []);
});

test('MCP-35 a message of the other side is one of JSON-RPC 2.0, or none', () => {
  for (const text of [
    '',
    '{',
    '[]',
    '[{"jsonrpc":"2.0","id":1,"result":{}}]',
    '{"id":1,"result":{}}',
    '{"jsonrpc":"2.0","id":1,"result":[]}',
    '{"jsonrpc":"2.0","result":{}}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}',
    '{"jsonrpc":"2.0","id":{},"method":"a"}',
  ])
    assert.equal(parseMessage(text), null, text);
  assert.equal(parseMessage('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}')?.kind, 'error');
  assert.equal(parseMessage('{"jsonrpc":"2.0","method":"a"}')?.kind, 'notification');
});

test('MCP-20 what is hidden in a text is written out, and what is shown stays', () => {
  assert.equal(
    visibleText('a\u202eb\u200bc\u0000\u{e0041}\ufeff'),
    'a\\u{202e}b\\u{200b}c\\u{0000}\\u{e0041}\\u{feff}',
  );
  const shown = 'Grüße, \u{1f600}\tand\r\nmore — “quoted” 日本';
  assert.equal(visibleText(shown), shown);
});
