import assert from 'node:assert/strict';
import { test } from 'node:test';
import { officialServer } from '../support/mcp/mcp-server.ts';
import { createFolder } from './support.ts';

test('acp mcp doctor ends with 1 where a step has failed, and with 0 where none has', async (t) => {
  const folder = createFolder(t);
  const server = await officialServer(t, 'Stateless');
  const settings = ['--set', 'Service:Egress:AllowPrivateNetworkTargets=true'];
  const acp = (...args: string[]) => folder.acp([...args, ...settings]);
  assert.equal((await acp('mcp', 'save', 'weather', '--endpoint', server.endpoint)).code, 0);

  // What is true by default is switched off by a flag.
  const off = await acp(
    'mcp',
    'save',
    'off',
    '--endpoint',
    server.endpoint,
    '--no-requires-approval',
    '--no-enabled',
    '--json',
  );
  const { requiresApproval, enabled } = JSON.parse(off.stdout) as { requiresApproval: boolean; enabled: boolean };
  assert.deepEqual([requiresApproval, enabled], [false, false], off.stderr);
  const left = JSON.parse((await acp('mcp', 'get', 'weather', '--json')).stdout) as { enabled: boolean };
  assert.equal(left.enabled, true, 'a flag that is not given says nothing');

  const sound = await acp('mcp', 'doctor', 'weather');
  assert.equal(sound.code, 0, sound.stdout);
  assert.match(sound.stdout, /Tools\s+Passed/);

  assert.equal((await acp('mcp', 'save', 'weather', '--endpoint', 'http://127.0.0.1:9/mcp')).code, 0);
  const broken = await acp('mcp', 'doctor', 'weather', '--json');
  assert.equal(broken.code, 1, broken.stdout);
  const steps = JSON.parse(broken.stdout) as readonly { readonly outcome: string; readonly mend: string | null }[];
  assert.ok(steps.some(({ outcome, mend }) => outcome === 'Failed' && mend !== null));
});

test('MCP-24 values by name are options: arguments of a prompt, and maps of a record', async (t) => {
  const folder = createFolder(t);
  const server = await officialServer(t, 'Stateless');
  const settings = ['--set', 'Service:Egress:AllowPrivateNetworkTargets=true'];
  const acp = (...args: string[]) => folder.acp([...args, ...settings]);
  const maps = ['--headers', 'x-team=blue', '--headers', 'x-note=a=b', '--effects', 'look=Destructive'];
  const saved = await acp('mcp', 'save', 'weather', '--endpoint', server.endpoint, ...maps, '--json');
  const { headers, effects, labels } = JSON.parse(saved.stdout) as Record<string, unknown>;
  assert.deepEqual([headers, effects, labels], [{ 'x-team': 'blue', 'x-note': 'a=b' }, { look: 'Destructive' }, {}]);
  for (const [option, told] of [
    [['--effects', 'look'], /--effects takes name=value, not "look"\./],
    [['--effects', 'look=Never'], /effects/],
  ] as const) {
    const refused = await acp('mcp', 'save', 'weather', '--endpoint', server.endpoint, ...option);
    assert.deepEqual([refused.code, told.test(refused.stderr)], [2, true], refused.stderr);
  }
  const lacking = await acp('mcp', 'prompt', 'weather', 'greet');
  assert.match(lacking.stderr, /arguments\.city is required/);
  const filled = await acp('mcp', 'prompt', 'weather', 'greet', '--arguments', 'city=Vienna', '--json');
  assert.match((JSON.parse(filled.stdout) as { text: string }).text, /Vienna/);
});
