import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { measureAgainst } from './against.ts';
import { judge } from './goals.ts';
import { measureOpenAi } from './openai.ts';
import { type Options, readOptions, usage } from './options.ts';
import { peakResidentBytes, residentBytes } from './process-usage.ts';
import { profileAcp, profileText } from './profile.ts';
import { profileFleets } from './profile-fleets.ts';
import { measureQuotaRules } from './quota-rules.ts';
import { measureRecordings } from './recordings.ts';
import { againstText, type Memory, type Results, reportText, type Starts } from './report.ts';
import { measureRunListing } from './run-listing.ts';
import { measureScaleOut } from './scale-out.ts';
import { scaleOutText } from './scale-out-report.ts';
import {
  builtProgram,
  type Program,
  programAt,
  type Server,
  startAcp,
  startSimulator,
  startYardstick,
  stopServersAtExit,
  timeCommand,
} from './servers.ts';
import { median } from './statistics.ts';
import { measureSession, measureStoredRun, type SessionTurn, type StoredRun } from './storage-growth.ts';
import { type Measurement, measureThroughput } from './throughput.ts';
import type { TurnsOptions } from './turns.ts';
import { acpCall, acpFolder, createAgents, temporaryFolder, yardstickCall } from './workspace.ts';
import { measureYoungGarbage } from './young-garbage.ts';

const root = join(import.meta.dirname, '..');
const storedRunsPerSecondOfLoad = 400;
// V8 gives memory back some eight seconds after the last allocations.
const idleSeconds = 15;
const turnSeconds = 0.5;
const notInstalled = 'PostgreSQL is not installed: there is no initdb on the path.';

// The table goes to stdout, so that it can be kept; what is going on goes to stderr.
const note = (text: string): void => void process.stderr.write(`  ${text}\n`);

const throughput = async (
  folder: string,
  program: Program,
  simulator: Server,
  options: Options,
): Promise<{ measurements: Measurement[]; memory: Memory[] }> => {
  const yardstick = await startYardstick(simulator, join(folder, 'yardstick.db'), folder);
  const { cwd } = acpFolder(folder, 'load', simulator);
  const acp = await startAcp(program, cwd);
  const watched = [simulator, yardstick, acp].map((server) => ({ server, before: residentBytes(server.pid) }));
  await createAgents(acp);
  const measurements = await measureThroughput({ simulator, yardstick, acp }, options, note);
  const after = watched.map(({ server, before }) => ({
    name: server.name,
    beforeBytes: before,
    afterBytes: residentBytes(server.pid),
    peakBytes: peakResidentBytes(server.pid),
  }));
  note(`memory after ${idleSeconds} s without load`);
  await delay(idleSeconds * 1000);
  const memory = after.map((one, index) => ({ ...one, idleBytes: residentBytes(watched[index]?.server.pid ?? 0) }));
  await Promise.all([yardstick.stop(), acp.stop()]);
  return { measurements, memory };
};

const storage = async (
  folder: string,
  program: Program,
  simulator: Server,
  options: Options,
): Promise<{ storedRuns: StoredRun[]; session: SessionTurn[] }> => {
  const runs = Math.ceil(options.seconds * storedRunsPerSecondOfLoad);
  const file = join(folder, 'yardstick-stored.db');
  note(`storage of ${runs} runs each`);
  const storedRuns = [
    await measureStoredRun(
      {
        target: '(b) yardstick',
        tools: false,
        store: file,
        start: () => startYardstick(simulator, file, folder),
        call: (server) => yardstickCall(server, 'sse'),
      },
      runs,
    ),
  ];
  for (const tools of [false, true]) {
    const { cwd, store } = acpFolder(folder, tools ? 'stored-tools' : 'stored', simulator);
    const first = await startAcp(program, cwd);
    await createAgents(first);
    await first.stop();
    const start = (): Promise<Server> => startAcp(program, cwd);
    const call = (server: Server) => acpCall(server, 'sse', tools);
    storedRuns.push(await measureStoredRun({ target: '(c) acp', tools, store, start, call }, runs));
  }
  if (options.turns === 0) return { storedRuns, session: [] };
  note(`a session of ${options.turns} turns`);
  const { cwd, store } = acpFolder(folder, 'session', simulator);
  const acp = await startAcp(program, cwd);
  await createAgents(acp);
  const session = await measureSession(acp, store, options.turns);
  await acp.stop();
  return { storedRuns, session };
};

/**
 * The executable as a user has it: copied to its place. Linux maps a file that a build has just written in larger pieces,
 * which counts as 20 MB more of resident memory.
 */
const installed = (program: Program, folder: string, name = basename(program.path)): Program => {
  if (program.kind !== 'executable') return program;
  const path = join(folder, name);
  copyFileSync(program.path, path);
  return { ...programAt(path), path: program.path };
};

const starts = async (folder: string, program: Program, simulator: Server, count: number): Promise<Starts | null> => {
  if (count === 0) return null;
  note(`${count} starts`);
  const { cwd } = acpFolder(folder, 'starts', simulator);
  const helpMs: number[] = [];
  const listeningMs: number[] = [];
  // The first start makes the store and fills caches; it is not counted.
  for (let index = 0; index <= count; index += 1) {
    const help = await timeCommand(program, ['--help'], cwd);
    const server = await startAcp(program, cwd);
    await server.stop();
    if (index > 0) {
      helpMs.push(help);
      listeningMs.push(server.startMs);
    }
  }
  return { helpMs: median(helpMs), listeningMs: median(listeningMs), starts: count };
};

const benchmark = async (options: Options, folder: string): Promise<Results> => {
  const built = options.acp === undefined ? builtProgram() : programAt(options.acp);
  const program = installed(built, folder);
  const [loadBefore = 0] = loadavg();
  const simulator = await startSimulator(folder);
  const { measurements, memory } = await throughput(folder, program, simulator, options);
  note('quota rules');
  const quotaRules = await measureQuotaRules(folder, program, simulator, inTurns(options));
  note('the API for clients of OpenAI');
  const openAi = await measureOpenAi(folder, program, simulator, inTurns(options), note);
  const { storedRuns, session } = await storage(folder, program, simulator, options);
  const started = await starts(folder, program, simulator, options.starts);
  note('what runs add to the old generation');
  const youngGarbage = await measureYoungGarbage(folder, simulator);
  await simulator.stop();
  const recordings = await measureRecordings(folder, program, options, note);
  if (options.listed > 0) note(`a list of ${options.listed} runs`);
  const listings = options.listed === 0 ? [] : await measureRunListing(folder, options.listed);
  const [cpu] = cpus();
  return {
    date: new Date().toISOString(),
    machine: `${cpus().length} × ${cpu?.model.trim() ?? 'unknown processor'}`,
    node: process.versions.node,
    loadBefore,
    program: `${program.kind} ${relative(root, program.path)}`,
    rounds: options.rounds,
    seconds: options.seconds,
    measurements,
    quotaRules,
    openAi,
    memory,
    storedRuns,
    session,
    starts: started,
    listings,
    listedRuns: options.listed,
    recordings,
    youngGarbage,
    goals: judge({
      measurements,
      quotaRules,
      openAi,
      memory,
      starts: started,
      listings,
      session,
      recordings,
      youngGarbage,
    }),
  };
};

/** Short turns follow each other closely, and many of them even out what the machine does besides. */
const inTurns = ({ rounds, seconds }: Options): TurnsOptions => ({
  rounds: Math.ceil((rounds * seconds) / turnSeconds),
  seconds: turnSeconds,
  concurrency: 16,
});

const compare = async (against: string, options: Options, folder: string): Promise<void> => {
  const simulator = await startSimulator(folder);
  const own = options.acp === undefined ? builtProgram() : programAt(options.acp);
  const programs = { 'the other': installed(programAt(against), folder, 'other'), this: installed(own, folder) };
  console.log(againstText(await measureAgainst(folder, simulator, programs, inTurns(options), note)));
  await simulator.stop();
};

const scaleOut = async (options: Options, folder: string): Promise<void> => {
  const program = installed(options.acp === undefined ? builtProgram() : programAt(options.acp), folder);
  const measured = await measureScaleOut(folder, program, inTurns(options), options.only, note);
  if (measured === null) throw new Error(notInstalled);
  console.log(scaleOutText(measured));
};

const profile = async (options: Options, folder: string): Promise<void> => {
  if (options.postgres) {
    const profiles = await profileFleets(folder, { acp: options.acp, results: dirname(options.json) }, note);
    if (profiles === null) throw new Error(notInstalled);
    for (const report of profiles) console.log(profileText(report));
    return;
  }
  const simulator = await startSimulator(folder);
  for (const [answer, tools] of [
    ['sse', false],
    ['json', false],
    ['sse', true],
    ['json', true],
  ] as const) {
    note(`profile of ${answer}${tools ? ' with a tool call' : ''}`);
    const settings = { answer, tools, acp: options.acp, results: dirname(options.json) };
    console.log(profileText(await profileAcp(folder, simulator, settings)));
  }
  await simulator.stop();
};

const main = async (): Promise<void> => {
  const options = readOptions(process.argv.slice(2), join(root, 'bench', 'results', 'latest.json'));
  if (options === null) {
    console.log(usage);
    return;
  }
  stopServersAtExit();
  const folder = temporaryFolder();
  if (options.profile) return profile(options, folder);
  if (options.postgres) return scaleOut(options, folder);
  if (options.against !== undefined) return compare(options.against, options, folder);
  const results = await benchmark(options, folder);
  mkdirSync(dirname(options.json), { recursive: true });
  writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
  console.log(reportText(results));
};

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
