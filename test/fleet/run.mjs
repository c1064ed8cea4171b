/**
 * `npm run test:fleet -- --minutes 15 --processes 4`: starts a server of PostgreSQL unless `ACP_TEST_POSTGRES` names one,
 * and does there what `soak-main.ts` says.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import process from 'node:process';
import { ensureInstalled, pinnedNode, root } from '../../bin/setup.mjs';
import { startPostgres } from '../postgres.mjs';

await ensureInstalled();
const postgres = await startPostgres({});
try {
  const child = spawn(pinnedNode(), [join(root, 'test/fleet/soak-main.ts'), ...process.argv.slice(2)], {
    cwd: root,
    env: { ...process.env, ...postgres?.variables },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'close');
  process.exitCode = code ?? 1;
} finally {
  await postgres?.stop();
}
