import assert from 'node:assert/strict';
import { retentionTargets } from '../../../src/features/retention/retention.schema.ts';
import { overHttp } from '../../support/app.ts';

overHttp('RET-2 RET-12 RET-25 each target goes by what is configured for it', async (open) => {
  const targets = retentionTargets.filter((target) => target !== 'IdempotencyKeys');
  const configured = targets.map((target, index) => [target, { MaxAgeDays: 400 + index, MaxRows: 700 + index }] as const);
  const app = await open({ service: { Retention: { Enabled: true, ...Object.fromEntries(configured) } } });
  const archiving = await open({
    service: {
      Retention: {
        Enabled: true,
        ...Object.fromEntries(configured.map(([target, section]) => [target, { ...section, Archive: true }])),
      },
    },
  });
  for (const target of targets) {
    const params = { query: { target } };
    const [plain] = (await app.client.retention.preview(params)).body;
    const [archived] = (await archiving.client.retention.preview(params)).body;
    const expected = Object.fromEntries(configured)[target];
    assert.deepEqual(
      [plain?.source, plain?.maxAgeDays, plain?.maxRows, plain?.archive, archived?.archive],
      ['Configuration', expected?.MaxAgeDays, expected?.MaxRows, false, true],
      target,
    );
  }
});
