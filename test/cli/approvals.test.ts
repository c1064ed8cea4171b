import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { openTerminal, withoutTmux } from '../tui/terminal.ts';
import { approvalFolder } from './approval-folder.ts';

const transports = ['in process', 'over HTTP'] as const;
/** High enough that nothing scrolls away. */
const size = { columns: 100, rows: 60, env: { NO_COLOR: '1' } };
const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/g;

/** The words that a POSIX shell makes of the command line behind a label, without `acp`. */
const commandOf = (stderr: string, label: string): string[] => {
  const line = stderr.split('\n').find((text) => text.startsWith(`  ${label} `)) ?? '';
  const { stdout } = spawnSync('sh', ['-c', `printf '%s\\n' ${line.trim().slice(label.length)}`], { encoding: 'utf8' });
  const [program, ...words] = stdout.trimEnd().split('\n');
  assert.equal(program, 'acp', stderr);
  return words;
};

describe('a run that waits, without a terminal', () => {
  for (const transport of transports)
    test(`TOOL-29 ${transport}: says what waits, ends with 10, and its commands decide it`, async (t) => {
      const folder = await approvalFolder(t);
      if (transport === 'over HTTP') await folder.serve();
      const asked = await folder.acp(['run', 'clerk', 'refund', '-s', 'a'], { ownProcess: true });
      assert.equal(asked.code, 10, asked.stderr);
      assert.match(asked.stderr, /^waits for an approval/m);
      assert.match(
        asked.stderr,
        /^approval \S+ is needed for refund\n│ Give 5 back\.\\u\{1b\}\[31m\n│ Order 7\n│ \{\n/m,
      );
      assert.match(asked.stderr, /"note": "a\\u\{202e\}b \\u001b\[2J"/);
      assert.deepEqual(folder.done(), []);

      const approve = commandOf(asked.stderr, 'approve');
      assert.deepEqual(approve, ['run', 'clerk', '--session', 'a', '--approve', 'all']);
      const approved = await folder.acp(approve);
      assert.deepEqual([approved.code, approved.stdout], [0, 'Result: gave 5 back.\n']);
      const listed = async (...flags: string[]) =>
        (JSON.parse((await folder.acp(['runs', 'list', '--json', ...flags])).stdout) as readonly object[]).length;
      // A question with three answers: not asked, true and false.
      assert.deepEqual([await listed(), await listed('--continued'), await listed('--no-continued')], [2, 1, 1]);
      assert.deepEqual(folder.done(), ['refund 5']);
      const again = await folder.acp(approve);
      assert.deepEqual([again.code, again.stderr], [2, 'error: Session "a" waits for no approval.\n']);

      const refused = await folder.acp(['run', 'clerk', 'refund', '-s', "b:it's"]);
      assert.equal(refused.code, 2);
      const second = await folder.acp(['run', 'clerk', 'refund', '-s', 'b', '--no-stream']);
      assert.equal(second.code, 10);
      const reject = commandOf(second.stderr, 'reject');
      assert.deepEqual(reject.slice(0, 8), ['run', 'clerk', '--session', 'b', '--reject', 'all', '--reason', 'TEXT']);
      const rejected = await folder.acp(reject);
      assert.deepEqual([rejected.code, rejected.stdout], [0, 'Result: Not approved: TEXT.\n']);
      assert.deepEqual(folder.done(), ['refund 5']);
    });

  test('TOOL-34 both transports: client-side calls are answered with --tool-result or --tool-error', async (t) => {
    const folder = await approvalFolder(t);
    for (const transport of transports) {
      if (transport === 'over HTTP') await folder.serve();
      const session = transport.replace(' ', '-');
      const asked = await folder.acp(['run', 'clerk', 'print', '-s', session]);
      assert.equal(asked.code, 10, asked.stderr);
      assert.match(asked.stderr, /^call \S+ waits for the result of ask_printer\n│ \{\n│ {3}"tray": "upper"\n│ \}$/m);
      const answered = await folder.acp(commandOf(asked.stderr, 'result').map((word) => word.replace('TEXT', 'a=b c')));
      assert.deepEqual([answered.code, answered.stdout], [0, 'Printer: a=b c.\n']);
      const failing = await folder.acp(['run', 'clerk', 'print', '-s', `${session}-2`]);
      const failed = await folder.acp(commandOf(failing.stderr, 'or error'));
      assert.equal(failed.code, 0);
      assert.match(failed.stdout, /^Printer: .*TEXT/);
    }
  });

  test('RUN-31 one request may be refused and all others approved; what contradicts itself is refused', async (t) => {
    const folder = await approvalFolder(t);
    const asked = await folder.acp(['run', 'clerk', 'both', '-s', 'a', '--json']);
    const { approvals } = JSON.parse(asked.stdout) as { approvals: { requestId: string }[] };
    const [first, second] = approvals.map(({ requestId }) => requestId) as [string, string];
    const turn = ['run', 'clerk', '-s', 'a'];
    const wrong: readonly (readonly [string[], RegExp])[] = [
      [[...turn, '--approve', first], /approve all/],
      [[...turn, '--approve', 'nothing', '--reject', 'all'], /not known/],
      [[...turn, '--approve', 'all', '--reject', 'all'], /both name "all"/],
      [[...turn, '--approve', 'all', '--reason', 'why'], /--reason goes with --reject/],
      [[...turn, '--approve', 'all', '--tool-result', 'c=x'], /different runs/],
      [[...turn, '--tool-result', 'c'], /CALL=TEXT/],
      [['run', 'clerk', '--approve', 'all'], /--session/],
    ];
    for (const [args, told] of wrong) {
      const { code, stderr } = await folder.acp(args);
      assert.equal(code, 2, `${args.join(' ')}: ${stderr}`);
      assert.match(stderr, told);
    }
    const { code } = await folder.acp([...turn, '--approve', 'all', '--reject', second, '--reason', 'too much']);
    assert.equal(code, 0);
    assert.deepEqual(folder.done(), ['refund 5']);
  });

  test('TOOL-29 --json carries the same: the answer on stdout, the commands on stderr, in process and over HTTP', async (t) => {
    const folder = await approvalFolder(t);
    const told: unknown[] = [];
    for (const transport of transports) {
      if (transport === 'over HTTP') await folder.serve();
      for (const flags of [['--json'], ['--json', '--stream'], []]) {
        const session = `${transport.replace(' ', '-')}-${flags.length}`;
        const { code, stdout, stderr } = await folder.acp(['run', 'clerk', 'refund', '-s', session, ...flags]);
        assert.equal(code, 10);
        const plain = (text: string): string =>
          text
            .replace(uuid, 'ID')
            .replaceAll(session, 'S')
            .replace(/[\d.]+m?s /g, '');
        told.push([flags, plain(stderr)]);
        if (flags.length === 0) continue;
        const pause = JSON.parse(stderr) as { approvals: unknown[]; next: { answer: string; words: string[] }[] };
        assert.equal(pause.approvals.length, 1);
        const last = JSON.parse(flags.length === 1 ? stdout : (stdout.trim().split('\n').at(-1) ?? '')) as object;
        assert.deepEqual((last as { approvals: unknown }).approvals, pause.approvals);
        const [approve] = pause.next;
        assert.equal(approve?.answer, 'approve');
        const approved = await folder.acp((approve?.words ?? []).slice(1));
        assert.equal(approved.code, 0, approved.stderr);
      }
    }
    assert.deepEqual(told.slice(3), told.slice(0, 3));
    assert.equal(folder.done().length, 4);
  });

  test('APPR-12 without a session the call fails, and the way out is named', async (t) => {
    const folder = await approvalFolder(t);
    const { code, stdout, stderr } = await folder.acp(['run', 'clerk', 'refund']);
    assert.equal(code, 0);
    assert.match(stdout, /approval-needs-session/);
    assert.match(stderr, /hint: .*--session/);
  });

  test('APPR-11 a queued run that is followed names the commands of the mailbox', async (t) => {
    const folder = await approvalFolder(t);
    await folder.serve();
    const asked = await folder.acp(['run', 'payer', 'both', '-s', 'a', '--queued', '--follow']);
    assert.equal(asked.code, 10, asked.stderr);
    const commands = asked.stderr.split('\n').filter((line) => line.startsWith('  approve'));
    assert.equal(commands.length, 2);
    for (const line of commands) {
      const { code, stderr } = await folder.acp(line.trim().split(/\s+/).slice(2));
      assert.equal(code, 0, stderr);
    }
    const blocked = await folder.acp(['approvals', 'list', '--json']);
    assert.deepEqual(JSON.parse(blocked.stdout), []);
  });

  test('APPR-10 APPR-30 the mailbox lists and decides what a run asked in its answer', async (t) => {
    const folder = await approvalFolder(t);
    await folder.serve();
    const asked = await folder.acp(['run', 'clerk', 'both', '-s', 'a', '--json']);
    const { runId } = JSON.parse(asked.stdout) as { runId: string };
    type Row = { readonly id: string; readonly runId: string; readonly inBand: boolean };
    const listed = JSON.parse((await folder.acp(['approvals', 'list', '--json'])).stdout) as Row[];
    assert.deepEqual(
      listed.map((row) => [row.runId, row.inBand]),
      [
        [runId, true],
        [runId, true],
      ],
    );
    const [second, first] = listed;
    assert.equal((await folder.acp(['approvals', 'approve', first?.id ?? ''])).code, 0);
    const late = await folder.acp(['run', 'clerk', '-s', 'a', '--approve', 'all']);
    assert.equal(late.code, 5);
    assert.match(late.stderr, /waits for a decision in the mailbox[\s\S]*acp approvals list/);
    const rejected = await folder.acp(['approvals', 'reject', second?.id ?? '', '--reason', 'too much']);
    const goesOn = /acp runs tail (\S+)/.exec(rejected.stderr)?.[1] ?? '';
    const end = await folder.acp(['runs', 'tail', goesOn]);
    assert.equal(end.code, 0, end.stderr);
    assert.deepEqual(folder.done(), ['refund 5']);
    assert.equal((await folder.acp(['run', 'clerk', '-s', 'a', '--approve', 'all'])).code, 2);
  });

  test('runs tail of a paused run tells the request and ends with 10', async (t) => {
    const folder = await approvalFolder(t);
    const { stdout } = await folder.acp(['run', 'clerk', 'refund', '-s', 'a', '--json']);
    const { runId, approvals } = JSON.parse(stdout) as { runId: string; approvals: { requestId: string }[] };
    const tail = await folder.acp(['runs', 'tail', runId]);
    assert.equal(tail.code, 10);
    assert.ok(tail.stdout.includes('approval needed: refund {"amount":5'), tail.stdout);
    assert.ok(tail.stdout.includes(`· Give 5 back.�[31m · request ${approvals[0]?.requestId}\n`), tail.stdout);
    assert.match(tail.stdout, /waits for an approval/);
  });
});

describe('a run that waits, on a terminal', { skip: withoutTmux }, () => {
  for (const transport of transports)
    test(`TOOL-30 ${transport}: asks about each call, and the answers start the next run`, async (t) => {
      const folder = await approvalFolder(t);
      if (transport === 'over HTTP') await folder.serve();
      const terminal = await openTerminal(t, folder.path, ['run', 'clerk', 'both'], size);
      const screen = await terminal.until(/Approve\?\s*$/);
      assert.match(screen, /clerk wants to call \(1 of 2\) refund\n│ Give 5 back\.\\u\{1b\}\[31m\n│ Order 7\n/);
      await terminal.press('x', 'Enter');
      await terminal.until(/Approve\? x\n[\s\S]*Approve\?\s*$/);
      await terminal.press('y', 'Enter');
      await terminal.until(/\(2 of 2\)[\s\S]*Approve\?\s*$/);
      assert.deepEqual(folder.done(), []);
      await terminal.press('n', 'Enter');
      await terminal.until(/Reason for the model \(Enter: none\):\s*$/);
      await terminal.press('too much', 'Enter');
      const end = await terminal.until(/ended \d+/);
      assert.match(end, /ended 0/);
      assert.match(end, /Reason for the model \(Enter: none\): too much\n/, 'each key is shown once');
      assert.match(end, /go on with: acp run clerk --session cli-[0-9a-f]{16} \.\.\./);
      assert.deepEqual(folder.done(), ['refund 5']);
    });

  test('APPR-18 a and A make standing rules: for the tool, or for these arguments', async (t) => {
    const folder = await approvalFolder(t);
    const terminal = await openTerminal(t, folder.path, ['run', 'clerk', 'both', '-s', 'a'], size);
    await terminal.until(/Approve\?\s*$/);
    await terminal.press('A', 'Enter');
    await terminal.until(/\(2 of 2\)[\s\S]*Approve\?\s*$/);
    await terminal.press('a', 'Enter');
    assert.match(await terminal.until(/ended \d+/), /ended 0/);
    const { stdout } = await folder.acp(['approvals', 'rules', 'list', '--json']);
    const rules = JSON.parse(stdout) as { agentName: string; toolName: string; argumentsHash: string | null }[];
    assert.deepEqual(
      rules.map(({ agentName, toolName, argumentsHash }) => [agentName, toolName, argumentsHash === null]).sort(),
      [
        ['clerk', 'refund', false],
        ['clerk', 'refund', true],
      ],
    );
    assert.equal((await folder.acp(['run', 'clerk', 'refund'])).code, 0);
    assert.deepEqual(folder.done(), ['refund 5', 'refund 6', 'refund 5']);
  });

  test('APPR-18 without the authority for a rule nothing is decided, and the same is asked again', async (t) => {
    const folder = await approvalFolder(t);
    await folder.serve();
    const key = await folder.acp([
      ...['keys', 'create', 'operator', '--role', 'operator', '--expires', '1d'],
      ...['--scope', 'runswrite', '--scope', 'runsread'],
    ]);
    assert.equal(key.code, 0, key.stderr);
    folder.write('token', key.stdout);
    const args = ['run', 'clerk', 'refund', '--token-file', 'token'];
    const terminal = await openTerminal(t, folder.path, args, size);
    await terminal.until(/Approve\?\s*$/);
    await terminal.press('a', 'Enter');
    const again = await terminal.until(/Nothing was decided\.[\s\S]*Approve\?\s*$/);
    assert.match(again, /y yes · n no · q leave it waiting\nApprove\?\s*$/);
    assert.deepEqual(folder.done(), []);
    await terminal.press('y', 'Enter');
    assert.match(await terminal.until(/ended \d+/), /ended 0/);
    assert.deepEqual(folder.done(), ['refund 5']);
  });

  for (const [key, code] of [
    ['q', 10],
    ['C-d', 10],
    ['C-c', 130],
  ] as const)
    test(`${key} leaves the calls waiting, ends with ${code} and names the command`, async (t) => {
      const folder = await approvalFolder(t);
      const terminal = await openTerminal(t, folder.path, ['run', 'clerk', 'refund', '-s', 'a'], size);
      await terminal.until(/Approve\?\s*$/);
      await terminal.press(key, ...(key === 'q' ? ['Enter'] : []));
      const end = await terminal.until(/ended \d+/);
      assert.match(end, new RegExp(`approve {3,}acp run clerk --session a --approve all\\n[\\s\\S]*ended ${code}`));
      assert.equal((await folder.acp(['run', 'clerk', '-s', 'a', '--approve', 'all'])).code, 0);
      assert.deepEqual(folder.done(), ['refund 5']);
    });

  test('what was typed before the question is no answer to it', async (t) => {
    const folder = await approvalFolder(t);
    const terminal = await openTerminal(t, folder.path, ['run', 'clerk', 'refund', '-s', 'a'], size);
    // The program is not even loaded; the terminal keeps the line for whoever reads next.
    await terminal.press('y', 'Enter');
    await terminal.until(/Approve\?\s*$/);
    await terminal.press('q', 'Enter');
    assert.match(await terminal.until(/ended \d+/), /ended 10/);
    assert.deepEqual(folder.done(), []);
  });

  test('TOOL-34 a client-side call is answered with a result or an error, and the run goes on', async (t) => {
    const folder = await approvalFolder(t);
    const terminal = await openTerminal(t, folder.path, ['run', 'clerk', 'print', '--no-stream'], size);
    const screen = await terminal.until(/Answer with\?\s*$/);
    assert.match(screen, /clerk waits for the result of ask_printer\n│ \{\n│ {3}"tray": "upper"\n│ \}\n/);
    await terminal.press('r', 'Enter');
    await terminal.until(/^Result:\s*$/m);
    await terminal.press('out of paper', 'Enter');
    const end = await terminal.until(/ended \d+/);
    assert.match(end, /^Printer: out of paper\.$/m);
    assert.match(end, /ended 0/);
  });

  test('runs tail says which command decides', async (t) => {
    const folder = await approvalFolder(t);
    const { stdout } = await folder.acp(['run', 'clerk', 'refund', '-s', 'a', '--json']);
    const { runId } = JSON.parse(stdout) as { runId: string };
    const terminal = await openTerminal(t, folder.path, ['runs', 'tail', runId], size);
    const end = await terminal.until(/ended \d+/);
    assert.match(end, /approve {3,}acp run clerk --session a --approve all\n/);
    assert.match(end, /ended 10/);
  });

  test('APPR-30 runs tail names the mailbox once a call of the run was decided there', async (t) => {
    const folder = await approvalFolder(t);
    const { stdout } = await folder.acp(['run', 'clerk', 'both', '-s', 'a', '--json']);
    const { runId } = JSON.parse(stdout) as { runId: string };
    const [second, first] = JSON.parse((await folder.acp(['approvals', 'list', '--json'])).stdout) as { id: string }[];
    assert.equal((await folder.acp(['approvals', 'approve', first?.id ?? ''])).code, 0);
    const terminal = await openTerminal(t, folder.path, ['runs', 'tail', runId], size);
    const end = await terminal.until(/ended \d+/);
    assert.match(end, new RegExp(`approve {3,}acp approvals approve ${second?.id}\\n`));
    assert.doesNotMatch(end, /--approve all/);
  });
});
