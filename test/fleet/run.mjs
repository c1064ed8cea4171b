/**
 * `npm run test:fleet -- --minutes 15 --processes 4`: starts a server of PostgreSQL unless `ACP_TEST_POSTGRES` names one,
 * and does there what `soak-main.ts` says; with `--storms --processes 8 --rounds 4` what `storms.test.ts` says, so often;
 * with `--arrivals --minutes 10` what `arrivals-main.ts` says.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { ensureInstalled, pinnedNode, root } from '../../bin/setup.mjs';
import { startPostgres } from '../postgres.mjs';

await ensureInstalled();
const postgres = await startPostgres({});
try {
  const { values } = parseArgs({
    options: {
      storms: { type: 'boolean' },
      arrivals: { type: 'boolean' },
      processes: { type: 'string', default: '4' },
      rounds: { type: 'string', default: '4' },
    },
    strict: false,
  });
  const { processes, rounds } = values;
  const program = values.storms
    ? { args: ['test/fleet/storms.test.ts'], env: { ACP_STORM_PROCESSES: processes, ACP_STORM_ROUNDS: rounds } }
    : { args: [`test/fleet/${values.arrivals ? 'arrivals' : 'soak'}-main.ts`, ...process.argv.slice(2)], env: {} };
  const child = spawn(pinnedNode(), program.args, {
    cwd: root,
    env: { ...process.env, ...postgres?.variables, ...program.env },
    stdio: 'inherit',
  });
  const [code] = await once(child, 'close');
  process.exitCode = code ?? 1;
} finally {
  await postgres?.stop();
}
