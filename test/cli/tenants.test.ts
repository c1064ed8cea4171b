import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFolder } from './support.ts';

test('tenants set, list, current and delete', async (t) => {
  const folder = createFolder(t);
  const acp = async (...args: string[]) => {
    const { code, stdout, stderr } = await folder.acp(['tenants', ...args, '--json']);
    assert.equal(code, 0, stderr);
    return stdout === '' ? null : JSON.parse(stdout);
  };
  assert.deepEqual(await acp('current'), { tenantId: 'default' });
  assert.equal((await acp('set', 'blue', '--display-name', 'Blue team')).displayName, 'Blue team');
  assert.equal((await acp('set', 'red')).displayName, 'red');
  assert.deepEqual(
    (await acp('list')).map(({ slug }: { slug: string }) => slug),
    ['blue', 'red'],
  );
  await acp('delete', 'red');
  const { code, stderr } = await folder.acp(['tenants', 'delete', 'red']);
  assert.equal(code, 4);
  assert.match(stderr, /no such tenant/);
});
