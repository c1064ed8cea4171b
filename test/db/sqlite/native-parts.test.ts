import assert from 'node:assert/strict';
import { test } from 'node:test';
import Database from 'better-sqlite3';
import { assetPath } from '../../../src/core/files/assets.ts';

test('the native parts load from where npm put them', () => {
  const db = new Database(':memory:', { nativeBinding: assetPath('better_sqlite3.node') });
  try {
    db.loadExtension(assetPath('vec0'));
    assert.match(String(db.prepare('select vec_version()').pluck().get()), /^v\d/);
  } finally {
    db.close();
  }
});
