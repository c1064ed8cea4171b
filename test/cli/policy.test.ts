import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outcome } from '../support/warm-program.ts';
import { createFolder } from './support.ts';

const quotaFile = `
- { agentName: hello, period: daily, maxRuns: 1 }
`;
const ruleFile = `
requireApproval: [clock_now]
`;
const config = `
Service:
  ContentGuard:
    Pattern: { deniedTerms: [there], MaskedPii: All }
  Pricing:
    Currency: EUR
    demo: { demo-1: { input: 1, output: 2 } }
`;

test('policy test: the command reports the same in process as over HTTP, and fails a gate when asked to', async (t) => {
  const folder = createFolder(t);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  await folder.acp(['run', 'hello', 'Hi']);
  await folder.acp(['run', 'hello', 'time']);
  folder.write('quota.yaml', quotaFile);
  folder.write('rule.yaml', ruleFile);
  folder.write('new.yaml', config);
  folder.write('other.yaml', 'Service: { Quotas: { Enabled: true } }');
  const until = new Date().toISOString();
  const policy = (...args: string[]) => [
    'policy',
    'test',
    ...args,
    '--since',
    '2020-01-01T00:00:00Z',
    '--until',
    until,
  ];
  const commands: [args: string[], code: number][] = [
    [policy('--guard', 'new.yaml'), 0],
    [policy('--guard', 'new.yaml', '--fail-on-match'), 10],
    [policy('--rule', 'rule.yaml', '--fail-on-match'), 10],
    [policy('--quota', 'quota.yaml', '--json'), 0],
    [policy('--price', 'new.yaml', '--take', '1'), 0],
    [policy('--price', 'other.yaml'), 2],
    [policy('--quota', 'rule.yaml'), 2],
    [policy('--quota', 'quota.yaml', '--rule', 'rule.yaml'), 2],
    [policy('--quota', 'quota.yaml', '--take', '0'), 2],
    [['policy', 'test'], 2],
    [['policy', 'test', '--guard', 'nowhere.yaml'], 2],
    [['policy', 'test', '--guard', 'new.yaml', '--since', 'yesterday'], 2],
    [['policy', 'test', '--guard', 'new.yaml', '--since', '7'], 2],
  ];
  const local: Outcome[] = [];
  for (const [args] of commands) local.push(await folder.acp(args));
  assert.deepEqual(
    local.map(({ code }) => code),
    commands.map(([, code]) => code),
    local.map(({ stderr }) => stderr).join('\n'),
  );
  assert.match(local[0]?.stdout ?? '', /Would have blocked 1 run and masked text in 0/);
  assert.match(local[0]?.stdout ?? '', /denied-term:0 +Block +1 +1/);
  assert.match(local[2]?.stdout ?? '', /WouldAsk/);
  assert.match(local[4]?.stdout ?? '', /would cost 0|without a cost would cost 0\.\d+ EUR/);
  assert.match(local[5]?.stderr ?? '', /no section Service:Pricing/);
  assert.match(local[6]?.stderr ?? '', /quota\[0\]\.period is required|quota\[0\]\.requireApproval/);
  const { quota } = JSON.parse(local[3]?.stdout ?? '{}') as { quota: { refused: number } };
  assert.equal(quota.refused, 1);
  await folder.serve();
  for (const [index, [args]] of commands.entries())
    assert.deepEqual(await folder.acp(args), local[index], args.join(' '));
  const input = 'DeniedTerms: [there]\n';
  const piped = await folder.acp(['policy', 'test', '--guard', '-', '--since', '7d', '--json'], { input });
  assert.equal((JSON.parse(piped.stdout) as { matches: number }).matches, 1);
});

test('policy test: a gate can also fail on what could not be looked at', async (t) => {
  const folder = createFolder(t);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  await folder.acp(['run', 'hello', 'time', '--set', 'Service:RunRecording:RecordToolPayloads=false']);
  const call = ['policy', 'test', '--guard', '-', '--fail-on-match', '--fail-on-gap'];
  const { code, stdout } = await folder.acp(call, { input: 'DeniedTerms: [nothing of that]' });
  assert.equal(code, 11, stdout);
  assert.match(stdout, /Not looked at\n.*\nToolArguments +NotStored +1/);
});
