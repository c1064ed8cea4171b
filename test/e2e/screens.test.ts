import assert from 'node:assert/strict';
import { test } from 'node:test';
import { executableFile, openWorkplace } from '../support/executable.ts';
import { openTerminal, withoutTmux } from '../tui/terminal.ts';

test('the executable shows runs on a terminal, on the store and over HTTP', { skip: withoutTmux }, async (t) => {
  const place = openWorkplace();
  t.after(() => place.close());
  const started = await place.call(['quickstart', '--once', '--set', 'Host:Url=http://127.0.0.1:0']);
  assert.equal(started.code, 0, started.stderr);
  const alone = await openTerminal(t, place.folder, ['tui'], { program: [executableFile] });
  await alone.until(/no service[\s\S]*▸ \w+ +✓ completed/);
  await alone.press('Enter');
  await alone.until(/→ clock_now[\s\S]*✓ \d+ms/);
  await alone.press('q');
  await alone.until(/ended 0/);
  const { url } = await place.serve();
  const served = await openTerminal(t, place.folder, ['tui', '--url', url], { program: [executableFile] });
  await served.until(/● connected[\s\S]*▸ \w+ +✓ completed/);
  await served.press('q');
  await served.until(/ended 0/);
});
