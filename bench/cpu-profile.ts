import { fileURLToPath } from 'node:url';

/** Self time of a layer or a function, as a share of the time in which the processor worked. */
export interface TimeShare {
  readonly name: string;
  readonly share: number;
}

export interface ProfileSummary {
  readonly busyMs: number;
  readonly layers: readonly TimeShare[];
  readonly functions: readonly TimeShare[];
  /** Functions of this project, with all that they call. */
  readonly inclusive: readonly TimeShare[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  readonly children?: readonly number[];
}

/** The file that `node --cpu-prof` writes; times in microseconds. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** The first pattern that a file matches names its layer. */
const layers: readonly (readonly [string, RegExp])[] = [
  // Where a native function is charged to the function that calls it, SQLite's own time shows up in these files.
  ['SQLite and its driver', /node_modules\/better-sqlite3\/|\/src\/db\/sqlite\//],
  ['PostgreSQL: driver and group commit', /node_modules\/pg[\w-]*\/|\/src\/db\/(postgres\/|commit-lanes)/],
  ['recorder: event log and journal', /\/src\/engine\/(run-log|run-journal|event-pack)|\/src\/.*journal\.store\.ts$/],
  ['storage (src/db and stores)', /\/src\/db\/|\.store\.ts$|\/migrations\//],
  ['model provider (src/providers)', /\/src\/providers\//],
  ['engine', /\/src\/engine\//],
  ['HTTP of acp (src/http)', /\/src\/http\//],
  ['dispatch, validation, ids (src/core, src/contract)', /\/src\/(core|contract)\//],
  ['features', /\/src\/(features|scheduler|app|operations)/],
  ['acp, other', /\/src\//],
  ['AI SDK', /node_modules\/(@ai-sdk|ai|eventsource-parser|@standard-schema|zod)\//],
  ['undici', /node_modules\/undici\/|^node:internal\/deps\/undici/],
  [
    'Fastify',
    /node_modules\/(fastify|@fastify|find-my-way|avvio|light-my-request|fast-[\w-]+|secure-json-parse|pino|sonic-boom)\//,
  ],
  ['kysely', /node_modules\/kysely\//],
  ['typebox', /node_modules\/typebox\//],
  ['other packages', /node_modules\//],
  ['node: http', /^node:(_http|http|internal\/http)/],
  ['node: streams and sockets', /^node:(net|stream|internal\/(streams|stream_base|webstreams)|events|buffer)/],
  [
    'node: timers, ticks, promises, async context',
    /^node:(timers|async_hooks|internal\/(timers|process\/(task_queues|promises)|async))/,
  ],
  ['node: other', /^node:/],
];

const special: Readonly<Record<string, string>> = {
  '(garbage collector)': 'garbage collection',
  '(program)': 'native code outside JavaScript',
};
const isIdle = (node: ProfileNode): boolean => ['(idle)', '(root)'].includes(node.callFrame.functionName);

// Methods of Node's stream handles, each one or two system calls.
const socketWrites = new Set(['writev', 'writeBuffer', 'writeUtf8String', 'writeLatin1String', 'shutdown']);

const layerOf = (url: string): string => layers.find(([, pattern]) => pattern.test(url))?.[0] ?? 'evaluated code';

/** Native functions have no file; but for writes to sockets they count as part of their caller. */
const nodeLayer = (node: ProfileNode, parents: ReadonlyMap<number, ProfileNode>): string => {
  const { functionName, url } = node.callFrame;
  const named = special[functionName];
  if (named !== undefined) return named;
  if (url === '' && socketWrites.has(functionName)) return 'writes to sockets (system calls)';
  let current: ProfileNode | undefined = node;
  while (current !== undefined && current.callFrame.url === '') current = parents.get(current.id);
  return current === undefined ? 'native code outside JavaScript' : layerOf(current.callFrame.url);
};

const place = ({ callFrame }: ProfileNode, root: string): string => {
  const { url, functionName, lineNumber } = callFrame;
  const file = url.startsWith('file:') ? fileURLToPath(url).replace(root, '') : url;
  const name = functionName === '' ? '(anonymous)' : functionName;
  return file === '' ? name : `${name} ${file.replace(/^.*node_modules\//, '')}:${lineNumber + 1}`;
};

const add = (sums: Map<string, number>, name: string, value: number): void => {
  sums.set(name, (sums.get(name) ?? 0) + value);
};

const ranked = (sums: ReadonlyMap<string, number>, total: number): TimeShare[] =>
  [...sums].map(([name, value]) => ({ name, share: value / total })).sort((a, b) => b.share - a.share);

/** Sums the samples between two shares of the profile, so that start and end of the process stay out. */
export const summarizeProfile = (
  profile: CpuProfile,
  root: string,
  window: { readonly fromMs: number; readonly toMs: number },
): ProfileSummary => {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map(
    profile.nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node] as const)),
  );
  const self = new Map<ProfileNode, number>();
  let atMs = 0;
  for (const [index, id] of profile.samples.entries()) {
    const delta = (profile.timeDeltas[index] ?? 0) / 1000;
    atMs += delta;
    const node = nodes.get(id);
    if (node === undefined || isIdle(node) || atMs < window.fromMs || atMs > window.toMs) continue;
    self.set(node, (self.get(node) ?? 0) + delta);
  }
  const byLayer = new Map<string, number>();
  const byFunction = new Map<string, number>();
  const inclusive = new Map<string, number>();
  let busyMs = 0;
  for (const [node, ms] of self) {
    busyMs += ms;
    add(byLayer, nodeLayer(node, parents), ms);
    add(byFunction, place(node, root), ms);
    // A function that is on the stack twice counts once.
    const seen = new Set<string>();
    for (let on: ProfileNode | undefined = node; on !== undefined; on = parents.get(on.id)) {
      const name = place(on, root);
      if (!/\/src\//.test(on.callFrame.url) || seen.has(name)) continue;
      seen.add(name);
      add(inclusive, name, ms);
    }
  }
  return {
    busyMs,
    layers: ranked(byLayer, busyMs),
    functions: ranked(byFunction, busyMs),
    inclusive: ranked(inclusive, busyMs),
  };
};
