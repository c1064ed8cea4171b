import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpuMs, peakResidentBytes } from './process-usage.ts';
import { type Program, type Server, startAcp, timeCommand } from './servers.ts';
import { median, quantile } from './statistics.ts';
import { readStore } from './store-content.ts';

/** What it costs to work with what was recorded. A number that has no meaning for a line is NaN. */
export interface Recorded {
  readonly name: string;
  readonly repeats: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Until the first bytes of the answer's body. */
  readonly firstBytesMs: number;
  readonly cpuMs: number;
  readonly answerBytes: number;
  /** Bytes of values that one of them leaves in the store. */
  readonly storedBytes: number;
  /** How much the largest memory of the server grew. */
  readonly memoryBytes: number;
}

export interface RecordingSizes {
  /** Turns of the session that is read and branched; 0: none. */
  readonly history: number;
  /** Runs of the tree that is exported and replayed; 0: none, and no run either. */
  readonly tree: number;
}

const sessionRepeats = 50;
const runRepeats = 100;
const treeRepeats = 5;

const words = Array.from({ length: 20 }, (_, index) => `word${index}`).join(' ');

const script = (tree: number): string => {
  const call = (index: number) => ({ name: 'call_child', arguments: { message: `Question ${index}?` } });
  const rules = [
    { when: { model: 'boss', tool: 'call_child' }, reply: { text: words } },
    { when: { model: 'boss' }, reply: { toolCalls: Array.from({ length: tree }, (_, index) => call(index)) } },
    { when: { model: 'tooled', tool: 'lookup' }, reply: { text: words } },
    { when: { model: 'tooled' }, reply: { toolCalls: [{ name: 'lookup', arguments: { word: 'river' } }] } },
    { reply: { text: words } },
  ];
  return JSON.stringify({ rules });
};

const lookup = `export default { name: 'bench', tools: [{
  name: 'lookup', description: 'Looks a word up.', inputSchema: { type: 'object' }, execute: ({ word }) => ({ word }),
}] };
`;

/** A model that answers at once, and no limit that a large tree would meet. */
const settings = `Host: { Url: "http://127.0.0.1:0", LogLevel: warn, Modules: [./lookup.mjs] }
Service:
  Providers: { Scripted: { demo: { File: ./script.yaml } } }
  AgentGraph: { MaxTotalRuns: 0, MaxTotalTokens: 0 }
`;

const agents = [
  { name: 'plain', model: { provider: 'demo', model: 'plain' } },
  { name: 'child', model: { provider: 'demo', model: 'child' } },
  { name: 'tooled', model: { provider: 'demo', model: 'tooled' }, toolNames: ['lookup'] },
  { name: 'boss', model: { provider: 'demo', model: 'boss' }, callableAgentNames: ['child'] },
];

interface Answer {
  readonly totalMs: number;
  readonly firstBytesMs: number;
  readonly bytes: number;
  readonly text: string;
}

/** Reads the answer as it comes; a wrong one ends the benchmark. `keep`: its text is of interest. */
const request = async (server: Server, path: string, body?: unknown, keep = false): Promise<Answer> => {
  const start = performance.now();
  const response = await fetch(new URL(path, server.url), {
    method: body === undefined ? 'GET' : 'POST',
    ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  let firstBytesMs = 0;
  let bytes = 0;
  const parts: Uint8Array[] = [];
  for await (const part of response.body ?? []) {
    if (firstBytesMs === 0) firstBytesMs = performance.now() - start;
    bytes += part.length;
    if (keep) parts.push(part);
  }
  return { totalMs: performance.now() - start, firstBytesMs, bytes, text: Buffer.concat(parts).toString() };
};

interface Subject {
  readonly name: string;
  readonly repeats: number;
  readonly server: Server;
  readonly store: string;
  send(): Promise<Answer>;
}

const measure = async ({ name, repeats, server, store, send }: Subject): Promise<Recorded> => {
  // What is compiled and cached once is no part of it.
  await send();
  const before = { values: readStore(store).valueBytes, peak: peakResidentBytes(server.pid), cpu: cpuMs(server.pid) };
  const answers: Answer[] = [];
  for (let index = 0; index < repeats; index += 1) answers.push(await send());
  const cpu = cpuMs(server.pid) - before.cpu;
  const times = answers.map(({ totalMs }) => totalMs).sort((a, b) => a - b);
  return {
    name,
    repeats,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    firstBytesMs: median(answers.map(({ firstBytesMs }) => firstBytesMs)),
    cpuMs: cpu / repeats,
    answerBytes: median(answers.map(({ bytes }) => bytes)),
    storedBytes: (readStore(store).valueBytes - before.values) / repeats,
    memoryBytes: peakResidentBytes(server.pid) - before.peak,
  };
};

const runOf = async (server: Server, agent: string, more: object = {}): Promise<string> => {
  const { text } = await request(
    server,
    `/api/agents/${agent}/run`,
    { message: 'Go on.', stream: false, ...more },
    true,
  );
  return (JSON.parse(text) as { runId: string }).runId;
};

const sessionLines = async (server: Server, store: string, turns: number): Promise<Recorded[]> => {
  const sessionId = 'history';
  for (let turn = 0; turn < turns; turn += 1) await runOf(server, 'plain', { sessionId });
  const path = `/api/sessions/${sessionId}`;
  const subject = { repeats: sessionRepeats, server, store };
  return [
    await measure({ ...subject, name: `reading a session of ${turns} turns`, send: () => request(server, path) }),
    await measure({
      ...subject,
      name: `branching a session of ${turns} turns`,
      send: () => request(server, `${path}/branch`, {}),
    }),
  ];
};

/** The commands as a user runs them: their own start is part of the time. */
const commandLine = async (name: string, run: () => Promise<number>, bytes: () => number): Promise<Recorded> => {
  const times: number[] = [];
  for (let index = 0; index < treeRepeats; index += 1) times.push(await run());
  times.sort((a, b) => a - b);
  return {
    name,
    repeats: treeRepeats,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    firstBytesMs: Number.NaN,
    cpuMs: Number.NaN,
    answerBytes: bytes(),
    storedBytes: Number.NaN,
    memoryBytes: Number.NaN,
  };
};

const runLines = async (
  server: Server,
  program: Program,
  folder: { readonly cwd: string; readonly store: string },
  tree: number,
): Promise<Recorded[]> => {
  const { cwd, store } = folder;
  const source = await runOf(server, 'tooled');
  const root = await runOf(server, 'boss');
  const name = `a tree of ${tree + 1} runs`;
  const single = { repeats: runRepeats, server, store };
  const bundle = (runId: string) => () => request(server, `/api/runs/${runId}/bundle`);
  const file = join(cwd, 'tree.acp');
  const url = server.url.origin;
  return [
    await measure({
      ...single,
      name: 'replaying a run with a tool call',
      send: () => request(server, `/api/runs/${source}/replay`, {}),
    }),
    await measure({ ...single, name: 'exporting a run with a tool call', send: bundle(source) }),
    await measure({ repeats: treeRepeats, server, store, name: `exporting ${name}`, send: bundle(root) }),
    await commandLine(
      `acp runs export, ${name}`,
      () => timeCommand(program, ['runs', 'export', root, '-o', file, '--force', '--url', url], cwd),
      () => statSync(file).size,
    ),
    // Anything but an identical replay ends with a code and so ends the benchmark.
    await commandLine(
      `acp replay, ${name}`,
      () => timeCommand(program, ['replay', file], cwd),
      () => statSync(file).size,
    ),
  ];
};

/** Reading, branching, replaying and exporting, each on its own. */
export const measureRecordings = async (
  parent: string,
  program: Program,
  sizes: RecordingSizes,
  note: (text: string) => void,
): Promise<Recorded[]> => {
  if (sizes.history === 0 && sizes.tree === 0) return [];
  const cwd = join(parent, 'recordings');
  mkdirSync(cwd);
  for (const [file, text] of [
    ['service.yaml', settings],
    ['script.yaml', script(sizes.tree)],
    ['lookup.mjs', lookup],
  ] as const)
    writeFileSync(join(cwd, file), text);
  const store = join(cwd, 'data', 'acp.db');
  const server = await startAcp(program, cwd);
  for (const agent of agents) await request(server, '/api/agents', agent);
  const lines: Recorded[] = [];
  if (sizes.history > 0) {
    note(`a session of ${sizes.history} turns, read and branched`);
    lines.push(...(await sessionLines(server, store, sizes.history)));
  }
  if (sizes.tree > 0) {
    note(`a tree of ${sizes.tree + 1} runs, exported and replayed`);
    lines.push(...(await runLines(server, program, { cwd, store }, sizes.tree)));
  }
  await server.stop();
  return lines;
};
