import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createToolRegistry, type ToolRegistry } from '../../../src/engine/tools/registry.ts';
import { ToolProblemsError } from '../../../src/engine/tools/tool-problem.ts';
import { loadDeclaredTools } from '../../../src/features/tools/declared-tools.ts';
import { createOutboundHttp } from '../../../src/providers/http/outbound.ts';

const folder = async (t: TestContext, files: Record<string, string | Uint8Array>): Promise<string> => {
  const path = await mkdtemp(join(tmpdir(), 'acp-tools-'));
  t.after(() => rm(path, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true });
    await writeFile(join(path, name), content);
  }
  return path;
};

const asked: string[] = [];

const load = async (t: TestContext, paths: string[]): Promise<ToolRegistry> => {
  const http = createOutboundHttp({ allowPrivate: false });
  t.after(() => http.close());
  const loaded = await loadDeclaredTools(paths, {
    http,
    allowPrivate: false,
    resolveReference: (kind, name) => {
      asked.push(`${kind}:${name}`);
      return name.includes('MISSING') ? null : 'resolved-value';
    },
  });
  return createToolRegistry(loaded.registrations, loaded.problems);
};

/** The report of one file, each line without the folder. */
const report = async (t: TestContext, text: string | Uint8Array): Promise<string[]> => {
  const path = await folder(t, { 'tools.yaml': text });
  try {
    await load(t, [join(path, 'tools.yaml')]);
  } catch (error) {
    assert.ok(error instanceof ToolProblemsError);
    return error.message
      .split('\n')
      .slice(1)
      .map((line) => line.trim().replace(`${path}/`, ''));
  }
  return [];
};

const weather = (name: string, request = '{ url: https://api.example/v1 }'): string => `
name: ${name}
description: Tells the weather
inputSchema: { type: object, properties: { city: { type: string } }, required: [city] }
request: ${request}
`;

test('TOOL-37 folders and files with many documents are read in order, hidden and other files are not', async (t) => {
  const path = await folder(t, {
    'b.yaml': `${weather('two')}---${weather('three')}---\n# nothing here\n`,
    'a/one.yml': weather('one'),
    'a/.hidden.yaml': 'not: a tool',
    'a/readme.md': '# Tools',
    'json/four.json': JSON.stringify({
      name: 'four',
      description: 'As JSON',
      inputSchema: { type: 'object' },
      request: { url: 'https://api.example' },
    }),
    'single.yaml': weather('five'),
  });
  const registry = await load(t, [
    join(path, 'a'),
    join(path, 'b.yaml'),
    join(path, 'json'),
    join(path, 'single.yaml'),
  ]);
  assert.deepEqual(
    registry.list().map(({ descriptor }) => descriptor.name),
    ['five', 'four', 'one', 'three', 'two'],
  );
});

test('TOOL-37 every field reaches the descriptor', async (t) => {
  const path = await folder(t, {
    'tool.yaml': `
name: book_table
description: Books a table
inputSchema:
  type: object
  properties: { people: { type: integer } }
effect: destructive
safeToRepeat: true
requiresApproval: false
requiredPermission: tables.book
timeout: 1m30s
maxOutputBytes: 4096
request: { method: post, url: https://api.example/tables, body: { people: "{{people}}" } }
`,
  });
  const registry = await load(t, [path]);
  assert.deepEqual(registry.get('book_table')?.descriptor, {
    name: 'book_table',
    description: 'Books a table',
    jsonSchema: { type: 'object', properties: { people: { type: 'integer' } } },
    kind: 'Code',
    source: null,
    effect: 'Destructive',
    requiresApproval: false,
    runsOnClient: false,
    requiredPermission: 'tables.book',
    timeoutMs: 90_000,
    maxOutputBytes: 4096,
    safeToRepeat: true,
  });
});

test('TOOL-37 all mistakes of all documents are reported together, with file, line and field', async (t) => {
  const lines = await report(
    t,
    `name: bad name
descripton: Tells
inputSchema:
  type: object
  properties:
    city:
      type: strng
effect: Reads
timeout: 10
maxOutputBytes: 56
requiresApproval: sometimes
request:
  methd: GET
  method: FETCH
  url: https://api.example
  headers:
    Host: evil.example
---
- a list
---
name: second
description: Fine
inputSchema: { type: object }
request: nothing
---
name: third
description: No request
inputSchema: { type: object }
`,
  );
  assert.deepEqual(lines.sort(), [
    'tools.yaml:1 (bad name): description must be text that is not empty',
    'tools.yaml:1 (bad name): name must be 1 to 64 of A-Z a-z 0-9 _ -',
    'tools.yaml:10 (bad name): maxOutputBytes must be a whole number from 57 up',
    'tools.yaml:11 (bad name): requiresApproval must be true or false',
    'tools.yaml:13 (bad name): request.methd is not a known field; did you mean method?',
    'tools.yaml:14 (bad name): request.method must be one of GET, HEAD, POST, PUT, PATCH, DELETE',
    'tools.yaml:17 (bad name): request.headers.Host is a header that the service sets itself',
    'tools.yaml:19: must be a mapping',
    'tools.yaml:2 (bad name): descripton is not a known field; did you mean description?',
    'tools.yaml:24 (second): request must be a mapping',
    'tools.yaml:26 (third): request is required',
    'tools.yaml:7 (bad name): inputSchema.properties.city.type must be one of array, boolean, integer, null, number, object, string, or a list of them',
    'tools.yaml:8 (bad name): effect must be one of Read, Write, Destructive, External',
    'tools.yaml:9 (bad name): timeout must be a duration such as 500ms, 10s or 2m, at most 1d',
  ]);
});

test('TOOL-37 a duplicate name points at both places', async (t) => {
  const lines = await report(t, `${weather('same')}---${weather('same')}`);
  assert.equal(lines.length, 1);
  assert.match(
    lines[0] ?? '',
    /^tools\.yaml:7 \(same\): name is taken: .*tools\.yaml:2 registers a tool of this name$/,
  );
});

test('TOOL-37 broken YAML, bytes that are no text and missing files are problems with their place', async (t) => {
  assert.match((await report(t, 'name: [1\nfoo: bar'))[0] ?? '', /^tools\.yaml:\d: is not valid YAML: /);
  assert.match(
    (await report(t, 'name: a\nname: b'))[0] ?? '',
    /^tools\.yaml:2: is not valid YAML: A field is given twice/,
  );
  assert.match(
    (await report(t, 'name: !!js/function x'))[0] ?? '',
    /^tools\.yaml:1: is not valid YAML: A tag is not known/,
  );
  assert.match((await report(t, new Uint8Array([0xff, 0xfe, 0x00])))[0] ?? '', /^tools\.yaml: is not UTF-8 text$/);
  await assert.rejects(load(t, ['/nowhere/tools.yaml']), /\/nowhere\/tools\.yaml: does not exist/);
});

test('TOOL-37 aliases that would explode are a problem and not a hang', async (t) => {
  const levels = Array.from({ length: 12 }, (_, n) => `l${n + 1}: &l${n + 1} [${`*l${n},`.repeat(9)}]`).join('\n');
  assert.deepEqual(await report(t, `l0: &l0 [x]\n${levels}`), ['tools.yaml:1: has aliases that repeat too much']);
  const endless = weather('w', '\n  method: POST\n  url: https://api.example\n  body: &b { a: *b }');
  assert.deepEqual(await report(t, endless), ['tools.yaml:2: has aliases that repeat too much']);
});

test('TOOL-38 scheme and host may not contain a placeholder', async (t) => {
  const urls: [url: string, message: RegExp][] = [
    ['https://{{city}}/x', /must not have a placeholder in its scheme or host/],
    ['https://api{{city}}.example/x', /must not have a placeholder in its scheme or host/],
    ['https://api.example{{city}}', /must not have a placeholder in its scheme or host/],
    ['https://api.example:{{city}}/x', /must not have a placeholder in its scheme or host/],
    ['{{city}}', /must not have a placeholder in its scheme or host/],
    ['//api.example/x', /must be an absolute http or https URL/],
    ['ftp://api.example/x', /must be an absolute http or https URL/],
    ['https:///x', /must be an absolute http or https URL/],
    ['https://user:pw@api.example/x', /must not hold a user name or password/],
    ['https://api.example/x#{{city}}', /must not have a fragment/],
    ['http://127.1/x', /leads to a private address/],
    ['http://localhost:8080/x', /leads to a private address/],
    ['https://api.example/{{town}}', /uses the argument town, which inputSchema does not declare/],
    ['https://api.example/{{ci ty}}', /has the placeholder \{\{ci ty}}, which is no argument name/],
    ['https://api.example/{{city', /has a \{\{ without an argument name and }}/],
    [`https://api.example/\${env:MISSING}`, /has the reference \$\{env:MISSING}, which has no value/],
    [`https://api.example/\${vault:X}`, /has the reference \$\{vault:X}; references are/],
    [`https://api.example/\${env:X`, /has a reference without its closing brace/],
  ];
  for (const [url, message] of urls) {
    const lines = await report(t, weather('w', `\n  url: ${JSON.stringify(url)}`));
    assert.equal(lines.length, 1, `${url}: ${lines.join(' ')}`);
    assert.match(lines[0] ?? '', /^tools\.yaml:6 \(w\): request\.url /);
    assert.match(lines[0] ?? '', message);
  }
});

test('TOOL-38 mistakes in headers, query and body are found before the first call', async (t) => {
  const requests: [request: string, message: RegExp][] = [
    ['headers: { "bad name": x }', /request\.headers\.bad name is no header name/],
    ['headers: { Accept: a, accept: b }', /request\.headers\.accept is given twice/],
    ['headers: { X-A: "a\\r\\nX-B: c" }', /request\.headers\.X-A must not hold control characters/],
    ['headers: { Idempotency-Key: x }', /is a header that the service sets itself/],
    ['headers: { Proxy-Authorization: x }', /is a header that the service sets itself/],
    ['headers: { X-A: {{city}} }', /request\.headers\.X-A must be text; quote a value that starts with \{\{/],
    ['headers: [a]', /request\.headers must be a mapping of names to texts/],
    ['query: { q: [1] }', /request\.query\.q must be text/],
    ['body: { a: 1 }', /request\.body is not sent with GET/],
    ['method: POST\n  body: hello', /request\.body must be a mapping, or JSON text/],
    ['method: POST\n  body: \'{"a": "{{city}}"}\'', /request\.body must be a mapping, or JSON text/],
    ["method: POST\n  body: '{ {{city}}: 1 }'", /request\.body must be a mapping, or JSON text/],
    ['method: POST\n  body: { "{{city}}": 1 }', /must not be a placeholder; only values may be/],
    ['method: POST\n  body: { a: [{ b: "{{town}}" }] }', /request\.body\.a\[0]\.b uses the argument town/],
    ['method: POST\n  headers: { Content-Type: text/plain }\n  body: {}', /bodies are sent as JSON/],
  ];
  for (const [request, message] of requests) {
    const lines = await report(t, weather('w', `\n  url: https://api.example\n  ${request}`));
    assert.equal(lines.length, 1, `${request}: ${lines.join(' ')}`);
    assert.match(lines[0] ?? '', message);
  }
});

test('TOOL-38 file references are relative to the document, and the value never stands in a report', async (t) => {
  asked.length = 0;
  const path = await folder(t, {
    'sub/tool.yaml': weather(
      'w',
      `\n  url: https://api.example/\${nope:x}\n  headers: { A: "\${file:key.txt}", B: "\${file:/abs/key}", C: "\${key:Service:X:Y}" }`,
    ),
  });
  await assert.rejects(load(t, [path]), (error) => {
    assert.ok(error instanceof ToolProblemsError);
    assert.doesNotMatch(error.message, /resolved-value/);
    return true;
  });
  assert.deepEqual(asked, [`file:${join(path, 'sub/key.txt')}`, 'file:/abs/key', 'key:Service:X:Y']);
});
