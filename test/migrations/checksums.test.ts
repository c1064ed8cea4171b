import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { migrations } from '../../migrations/index.ts';

const folder = new URL('../../migrations/', import.meta.url);

test('a migration is not edited after its release: every checksum is that of its file', () => {
  const files = readdirSync(folder).filter((name) => /^\d{4}-/.test(name));
  const actual = files.sort().map((name) => {
    const checksum = createHash('sha256')
      .update(readFileSync(new URL(name, folder)))
      .digest('hex')
      .slice(0, 16);
    return { name: name.replace(/\.ts$/, ''), checksum };
  });
  assert.deepEqual(
    migrations.map(({ name, checksum }) => ({ name, checksum })),
    actual,
  );
});

/** The last one of the versions that know of no other than themselves. */
const lastAlone = '0032-partitions';

test('the previous version works on after every migration, and each says with which versions it goes', () => {
  const names = migrations.map(({ name }) => name);
  for (const { name, worksFrom } of migrations.slice(names.indexOf(lastAlone) + 1)) {
    assert.ok(worksFrom !== undefined, `${name} says from which version on it can be worked with (CONTRIBUTING.md)`);
    const from = names.indexOf(worksFrom);
    assert.ok(from >= 0 && from < names.indexOf(name), `${name} works from one before it`);
  }
});
