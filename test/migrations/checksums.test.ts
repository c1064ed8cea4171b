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
