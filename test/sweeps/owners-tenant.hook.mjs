/**
 * Loaded before a test file (`node --import`): the operation that `ACP_SWEEP_OPERATION` names answers every caller as one of the
 * default tenant, so its tenant condition is gone. `ACP_SWEEP_SEEN` names a file that gets a line for each such call.
 */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import process from 'node:process';

const { ACP_SWEEP_OPERATION: broken = '', ACP_SWEEP_SEEN: seen = '' } = process.env;

globalThis.acpSweepTenant = (operation, tenantId) => {
  if (operation !== broken || tenantId === 'default') return tenantId;
  appendFileSync(seen, `${operation}\n`);
  return 'default';
};

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith('/src/core/dispatch.ts')) return loaded;
    const source = String(loaded.source);
    const changed = source.replace(
      'const call = { requestId, tenantId,',
      'const call = { requestId, tenantId: globalThis.acpSweepTenant(entry.id, tenantId),',
    );
    if (changed === source) throw new Error('The hook does not find where an operation gets its tenant.');
    return { ...loaded, source: changed };
  },
});
