import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFolder } from './support.ts';

interface Next {
  readonly name: string;
  readonly cron: string | null;
  readonly timeZone: string;
  readonly enabled: boolean;
  readonly occurrences: readonly { readonly at: string; readonly local: string; readonly isMoved: boolean }[];
}

const sweep = ['--handler-key', 'acp.retention', '--target-name', '*'];

test('schedules next tells the times of a schedule on the wall clock of its zone, the one that the service waits for first', async (t) => {
  const folder = createFolder(t);
  const { url } = await folder.serve(['--set', 'Service:Scheduling:RunWorker=false']);
  const acp = (...args: string[]) => folder.acp([...args, '--url', url]);
  const save = async (name: string, ...more: string[]) => {
    const { code, stderr, stdout } = await acp('schedules', 'save', name, ...sweep, ...more, '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as { readonly nextRunAt: string | null };
  };
  const next = async (...args: string[]): Promise<Next> => {
    const { code, stdout, stderr } = await acp('schedules', 'next', ...args, '--json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout) as Next;
  };

  const { nextRunAt } = await save('mornings', '--cron', '0 7 * * MON-FRI', '--time-zone', 'europe/berlin');
  const { occurrences, ...told } = await next('mornings', '-n', '300');
  assert.deepEqual(told, { name: 'mornings', cron: '0 7 * * MON-FRI', timeZone: 'Europe/Berlin', enabled: true });
  assert.equal(occurrences.length, 300);
  assert.equal(occurrences[0]?.at, nextRunAt, 'what the service waits for');
  for (const [index, { at, local }] of occurrences.entries()) {
    assert.match(local, /T07:00:00\+0[12]:00\[Europe\/Berlin\]$/);
    assert.ok(Number(new Date(at).getUTCDay()) % 6 !== 0, `${at} is a working day`);
    if (index > 0) assert.ok(at > (occurrences[index - 1]?.at ?? ''), 'each is after the last');
  }
  const offsets = new Set(occurrences.map(({ local }) => /[+]0[12]:00/.exec(local)?.[0]));
  assert.equal(offsets.size, 2, 'over the clock changes of a year');

  const { code, stdout, stderr } = await acp('schedules', 'next', 'mornings');
  assert.deepEqual([code, stderr], [0, '']);
  const lines = stdout.trimEnd().split('\n');
  assert.equal(lines.length, 5);
  for (const line of lines)
    assert.match(
      line,
      /^(Mon|Tues|Wednes|Thurs|Fri)day \d+ [A-Z][a-z]+ 20\d\d, 07:00 Europe\/Berlin \(UTC\+0[12]:00\) +in /,
    );

  // On the last Sunday of March there is no half past two in Berlin.
  await save('spring', '--cron', '30 2 * 3 SUN', '--time-zone', 'Europe/Berlin');
  const moved = (await next('spring', '-n', '6')).occurrences.filter(({ isMoved }) => isMoved);
  assert.ok(moved.length > 0);
  for (const { local } of moved) assert.match(local, /T03:00:00\+02:00/);
  const springs = (await acp('schedules', 'next', 'spring', '-n', '6')).stdout.split('\n');
  const marked = springs.filter((line) => line.endsWith(', moved by a clock change'));
  assert.equal(marked.length, moved.length);
  for (const line of marked) assert.match(line, /03:00 Europe\/Berlin/);

  await save('paused', '--cron', '*/5 * * * *', '-f', folder.write('off.yaml', 'enabled: false\n'));
  const paused = await acp('schedules', 'next', 'paused', '-n', '1');
  assert.match(paused.stdout, /^[A-Z][a-z]+day .* \d\d:\d[05] UTC +in (less than a|[1-5]) minutes?\n$/);
  assert.match(paused.stderr, /paused is disabled: no job comes of it/);
  assert.equal((await next('paused', '-n', '1')).enabled, false);

  await save('by-hand');
  const manual = await acp('schedules', 'next', 'by-hand');
  assert.deepEqual([manual.code, manual.stdout], [0, '']);
  assert.match(manual.stderr, /by-hand has no cron/);
  assert.deepEqual((await next('by-hand')).occurrences, []);
});

test('schedules next refuses an unknown name and a count that is none', async (t) => {
  const folder = createFolder(t);
  const unknown = await folder.acp(['schedules', 'next', 'nothing']);
  assert.deepEqual([unknown.code, unknown.stdout], [4, '']);
  for (const count of ['0', '1001', '-1', 'five', '1.5', '']) {
    const wrong = await folder.acp(['schedules', 'next', 'nothing', `--count=${count}`]);
    assert.deepEqual([wrong.code, wrong.stdout], [2, ''], count);
    assert.match(wrong.stderr, /from 1 to 1000/, count);
  }
});

test('JOB-13 a declaration has the lane that it names, or the one of its key, also in another service', async (t) => {
  const folder = createFolder(t);
  const lanes = ['--set', 'Service:Scheduling:LaneByHandlerKey:acp.retention=sweeps'];
  const { url } = await folder.serve(lanes);
  const acp = async (...args: string[]) => {
    const { code, stdout, stderr } = await folder.acp([...args, '--url', url]);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const text = (lane: string) =>
    `kind: Schedule\nname: s\nhandlerKey: acp.retention\ntargetName: "*"\ncron: 0 7 * * *\n${lane}`;
  const apply = async (lane: string, ...more: string[]) => {
    folder.write('s.yaml', text(lane));
    return acp('apply', '-f', 's.yaml', ...more);
  };
  // `default` is a lane like any other where the key has one of its own.
  assert.match(await apply('lane: default\n'), /^created/);
  const printed = await acp('get', 'Schedule', 's');
  assert.match(printed, /^lane: default$/m);
  await acp('schedules', 'delete', 's');
  folder.write('printed.yaml', printed);
  assert.match(await acp('apply', '-f', 'printed.yaml'), /^created/);
  assert.equal(await acp('get', 'Schedule', 's'), printed);
  // What is left out is what the service puts there, and no more than that has changed.
  for (const dry of [['--dry-run'], []]) {
    const lines = (await apply('', '--diff', ...dry)).split('\n');
    assert.match(lines[0] ?? '', /^updated/);
    assert.deepEqual(
      lines.filter((line) => /^[-+]\w/.test(line)),
      ['-lane: default', '+lane: sweeps'],
    );
  }
  for (const lane of ['', 'lane: sweeps\n']) assert.match(await apply(lane), /^unchanged/);
  folder.write('s.yaml', text('').replace('0 7', '0 8'));
  assert.deepEqual(
    (await acp('apply', '-f', 's.yaml', '--diff')).split('\n').filter((line) => /^[-+]\w/.test(line)),
    ['-cron: 0 7 * * *', '+cron: 0 8 * * *'],
  );
});
