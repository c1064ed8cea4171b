import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CpuProfile, summarizeProfile } from './cpu-profile.ts';
import { applyToAll, persistence, startFleet, stopAll, warmUp, warmUpSpread } from './fleets.ts';
import { startPostgres } from './postgres-server.ts';
import { marginMs, type ProfileOptions, type ProfileReport, root } from './profile.ts';
import { programAt, sourceProgram, startSimulator } from './servers.ts';

const processes = 4;

const loads = [
  { name: 'json', answer: 'json', thinksMs: 0, limits: { concurrency: 16, seconds: 8 } },
  { name: 'sse-500', answer: 'sse', thinksMs: 1000, limits: { concurrency: 125, seconds: 8, spreadMs: 1000 } },
] as const;

/** The sources of acp as one of four processes on PostgreSQL; null where that is not installed. */
export const profileFleets = async (
  folder: string,
  { acp, results }: Pick<ProfileOptions, 'acp' | 'results'>,
  note: (text: string) => void,
): Promise<ProfileReport[] | null> => {
  const postgres = await startPostgres(folder);
  if (postgres === null) return null;
  mkdirSync(results, { recursive: true });
  const reports: ProfileReport[] = [];
  for (const { name, answer, thinksMs, limits } of loads) {
    note(`profile of ${name} on PostgreSQL`);
    const simulator = await startSimulator(folder, { thinksMs });
    const profiles = join(folder, `profiles-${name}`);
    mkdirSync(profiles);
    const flags = ['--cpu-prof', `--cpu-prof-dir=${profiles}`, '--cpu-prof-interval=200'];
    const program = acp === undefined ? sourceProgram(flags) : programAt(acp, flags);
    const url = await postgres.createDatabase(`profile_${name.replace('-', '_')}`);
    const [first, ...others] = await startFleet({ folder, program, simulator }, name, processes - 1, persistence(url));
    // The last to start is the one that is looked at: a profile begins with its process.
    const startedAt = performance.now();
    const [watched] = await startFleet({ folder, program, simulator }, `${name}-watched`, 1, persistence(url), false);
    const servers = [first, ...others, watched].filter((server) => server !== undefined);
    if (thinksMs === 0) await warmUp(servers, answer);
    else await warmUpSpread(servers, answer, limits.concurrency, thinksMs);
    const fromMs = performance.now() - startedAt;
    const ran = await applyToAll(servers, answer, limits);
    const toMs = performance.now() - startedAt;
    await stopAll([...servers, simulator]);
    const written = readdirSync(profiles).find((file) => file.split('.').includes(String(watched?.pid)));
    if (written === undefined) throw new Error('Node wrote no profile');
    const file = join(results, `acp-postgres-${name}.cpuprofile`);
    copyFileSync(join(profiles, written), file);
    const profile = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
    const summary = summarizeProfile(profile, root, { fromMs: fromMs + marginMs, toMs: toMs - marginMs });
    const runs = ran.at(-1)?.runs ?? 0;
    reports.push({
      name: `${name} on PostgreSQL, one of ${processes} processes of ${limits.concurrency} clients each`,
      file,
      runs,
      busyMsPerRun: summary.busyMs / (runs * (1 - (2 * marginMs) / (toMs - fromMs))),
      summary,
    });
  }
  await postgres.stop();
  return reports;
};
