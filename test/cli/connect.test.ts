import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createFolder, helloAgent } from './support.ts';

const token = 'token-of-this-service-0123456789';

test('acp connect prints what each client is told, and says whether it works with this credential', async (t) => {
  const folder = createFolder(t);
  folder.write('agents/hello.yaml', helloAgent);
  const open = [
    '--set',
    `Host:AuthToken=${token}`,
    '--set',
    'Host:Agents:0=./agents',
    '--set',
    'Host:McpServer:Agents:0=hello',
  ];
  const { url } = await folder.serve(open);
  const at = (secret: string, ...args: string[]) =>
    folder.acp([...args, '--url', url], { env: secret === '' ? {} : { ACP_TOKEN: secret } });

  for (const [client, ...parts] of [
    ['openai', `export OPENAI_BASE_URL=${url}/v1\n`, 'OPENAI_API_KEY="$ACP_TOKEN"'],
    ['claude-code', `claude mcp add --transport http acp ${url}/mcp --header "Authorization: Bearer $ACP_TOKEN"`],
    ['cursor', `"url": "${url}/mcp"`, '"Authorization": "Bearer $' + '{env:ACP_TOKEN}"'],
    ['vscode', `"url": "${url}/mcp"`, '"Authorization": "Bearer $' + '{input:acp-token}"'],
  ] as const) {
    const { code, stdout, stderr } = await at(token, 'connect', client);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^(For|To be run once)\b.*:$/m, 'where it goes');
    for (const part of parts) assert.ok(stdout.includes(part), stdout);
    assert.match(stderr, /It works/);
    assert.doesNotMatch(stderr, /ACP_TOKEN has to be set/);
    assert.ok(!`${stdout}${stderr}`.includes(token));
    if (client === 'cursor' || client === 'vscode') JSON.parse(stdout);
  }

  const key = async (...scopes: string[]): Promise<string> => {
    const { code, stdout, stderr } = await at(
      token,
      'keys',
      'create',
      scopes.join('-'),
      ...scopes.flatMap((one) => ['--scope', one]),
    );
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const problem = async (secret: string, client: string, ...args: string[]): Promise<string> => {
    const { code, stdout } = await at(secret, 'connect', client, ...args, '--json');
    const told = JSON.parse(stdout) as { readonly problem: string; readonly snippet: string };
    assert.equal(code, 1, stdout);
    assert.ok(told.snippet.includes(url));
    return told.problem;
  };
  const noteOf = (stderr: string): string =>
    stderr.split('\n').find((line) => /ACP_TOKEN has to be set/.test(line)) ?? '';
  // The check was made with the file's token; the snippet names the variable all the same.
  folder.write('token', token);
  const withFile = await at('another-token-0123456789', 'connect', 'openai', '--token-file', 'token');
  assert.equal(withFile.code, 0, withFile.stderr);
  assert.ok(!`${withFile.stdout}${withFile.stderr}`.includes(token));
  // What the note says makes a key with which it works.
  const [, ...words] = /\$\((acp keys create [^)]*)\)/.exec(noteOf(withFile.stderr))?.[1]?.split(' ') ?? [];
  const made = await at(token, ...words);
  assert.equal(made.code, 0, `${words}: ${made.stderr}`);
  const noted = made.stdout.trim();
  assert.equal((await at(noted, 'connect', 'openai')).code, 0);
  const runsOf = await fetch(`${url}/v1/responses/resp_0`, { headers: { authorization: `Bearer ${noted}` } });
  assert.equal(runsOf.status, 404, 'and which may read its responses');

  assert.match(await problem('', 'openai'), /wants a credential/);
  assert.match(await problem('another-token-0123456789', 'cursor'), /does not accept/);
  const lists = await key('AgentsRead');
  assert.match(await problem(lists, 'openai'), /may list models and not start runs/);
  const reader = await at(
    token,
    'keys',
    'create',
    'reader',
    '--role',
    'Reader',
    '--scope',
    'AgentsRead',
    '--scope',
    'RunsWrite',
  );
  assert.equal(reader.code, 0, reader.stderr);
  assert.match(await problem(reader.stdout.trim(), 'openai'), /may list models and not start runs/);
  assert.match(await problem(await key('RunsWrite'), 'openai'), /lacks the role or the scope: AgentsRead/);
  assert.match(await problem(lists, 'vscode'), /lacks the role or the scope: ExternalInvoke/);
  assert.match(await problem(token, 'claude-code', '--path', '/elsewhere'), /no such door.*another Path/);
  assert.equal((await at(await key('AgentsRead', 'RunsWrite'), 'connect', 'openai')).code, 0);
  assert.equal((await at(await key('ExternalInvoke'), 'connect', 'cursor')).code, 0);
  for (const wrong of [['emacs'], ['openai', '--path', '/v2'], ['cursor', '--path', 'mcp']]) {
    const { code, stdout } = await at(token, 'connect', ...wrong);
    assert.deepEqual([code, stdout], [2, '']);
  }
});

test('acp connect says which door is closed, and does not take another program for the service', async (t) => {
  const folder = createFolder(t);
  const { code } = await folder.acp(['connect', 'openai']);
  assert.equal(code, 8, 'no service runs');
  const sharing = ['Provider=Postgres', 'Postgres:ConnectionString=postgres://nobody@127.0.0.1:9/none'];
  const shared = await folder.acp([
    'connect',
    'openai',
    ...sharing.flatMap((one) => ['--set', `Service:Persistence:${one}`]),
  ]);
  assert.equal(shared.code, 8);
  assert.match(shared.stderr, /store is one that processes share[\s\S]*--url or ACP_URL/);
  const { url } = await folder.serve(['--set', 'Host:OpenAi:Enabled=false']);
  // The owner of the store is found without an address.
  const closed = await folder.acp(['connect', 'openai']);
  assert.equal(closed.code, 1);
  assert.ok(closed.stdout.includes(`${url}/v1`));
  assert.match(closed.stderr, /no such door.*Host:OpenAi:Enabled is false/);
  assert.match((await folder.acp(['connect', 'vscode'])).stderr, /Host:McpServer offers neither/);
  // The variable that a snippet names has no value here; that of VS Code asks for it.
  assert.match(
    (await folder.acp(['connect', 'cursor'])).stderr,
    /ACP_TOKEN has to be set.*acp keys create cursor --scope ExternalInvoke\)"/,
  );
  assert.doesNotMatch((await folder.acp(['connect', 'vscode'])).stderr, /ACP_TOKEN/);

  const other = createServer((_request, response) => response.end('<html></html>'));
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  const { stderr } = await folder.acp(['connect', 'cursor', '--url', `http://127.0.0.1:${port}`]);
  assert.match(stderr, /is not this service/);
});
