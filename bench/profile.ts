import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CpuProfile, type ProfileSummary, summarizeProfile, type TimeShare } from './cpu-profile.ts';
import { applyLoad } from './load.ts';
import { programAt, type Server, sourceProgram, startAcp } from './servers.ts';
import { type Answer, acpCall, acpFolder, createAgents } from './workspace.ts';

export const requestsAtOnce = 16;
const warmUpSeconds = 3;
const loadSeconds = 8;
// V8 needs time to stop its profiler and to write the file, which belongs to no run.
export const marginMs = 200;
export const root = join(import.meta.dirname, '..');

export interface ProfileReport {
  /** What was done. */
  readonly name: string;
  /** The profile itself, for a viewer. */
  readonly file: string;
  readonly runs: number;
  readonly busyMsPerRun: number;
  readonly summary: ProfileSummary;
}

export interface ProfileOptions {
  readonly answer: Answer;
  readonly tools: boolean;
  readonly acp: string | undefined;
  /** Where the profile is kept. */
  readonly results: string;
}

/** Runs the sources of acp on plain Node, so that the profile names the files as they are written. */
export const profileAcp = async (
  folder: string,
  simulator: Server,
  { answer, tools, acp, results }: ProfileOptions,
): Promise<ProfileReport> => {
  const name = `acp-${answer}${tools ? '-tools' : ''}`;
  const { cwd } = acpFolder(folder, name, simulator);
  const profiles = join(cwd, 'profiles');
  mkdirSync(profiles);
  const flags = ['--cpu-prof', `--cpu-prof-dir=${profiles}`, '--cpu-prof-interval=200'];
  const program = acp === undefined ? sourceProgram(flags) : programAt(acp, flags);
  const startedAt = performance.now();
  const server = await startAcp(program, cwd);
  await createAgents(server);
  const call = acpCall(server, answer, tools);
  await applyLoad(call, { concurrency: requestsAtOnce, seconds: warmUpSeconds });
  const fromMs = performance.now() - startedAt;
  const load = await applyLoad(call, { concurrency: requestsAtOnce, seconds: loadSeconds });
  const toMs = performance.now() - startedAt;
  await server.stop();
  const [written] = readdirSync(profiles);
  if (written === undefined) throw new Error('Node wrote no profile');
  mkdirSync(results, { recursive: true });
  const file = join(results, `${name}.cpuprofile`);
  copyFileSync(join(profiles, written), file);
  const profile = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const summary = summarizeProfile(profile, root, { fromMs: fromMs + marginMs, toMs: toMs - marginMs });
  return {
    name: `${answer}${tools ? ', a tool call' : ''}, concurrency ${requestsAtOnce}`,
    file,
    runs: load.runs,
    busyMsPerRun: summary.busyMs / (load.runs * (1 - (2 * marginMs) / (toMs - fromMs))),
    summary,
  };
};

const lines = (title: string, shares: readonly TimeShare[], count: number): string =>
  [
    title,
    ...shares
      .filter(({ share }) => share >= 0.003)
      .slice(0, count)
      .map(({ name, share }) => `  ${(share * 100).toFixed(1).padStart(5)} %  ${name}`),
    '',
  ].join('\n');

export const profileText = ({ name, file, runs, busyMsPerRun, summary }: ProfileReport): string =>
  [
    `acp, ${name}: ${runs} runs, main thread busy ${busyMsPerRun.toFixed(2)} ms a run (with the profiler)\n${file}\n`,
    lines('By layer (self time)', summary.layers, 40),
    lines('By function (self time)', summary.functions, 60),
    lines('Functions of acp with all that they call', summary.inclusive, 60),
  ].join('\n');
