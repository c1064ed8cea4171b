import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { type OldSpace, oldSpaceFile } from './old-space.ts';
import { type Program, programAt, type Server, startAcp } from './servers.ts';
import { type Answer, acpCall, acpFolder, createAgents } from './workspace.ts';

/** What a run adds to V8's old generation: little where what it leaves behind dies young. */
export interface YoungGarbage {
  readonly answer: Answer;
  /** NaN where every turn had a full collection, which hides what came. */
  readonly oldBytesPerRun: number;
}

const runs = 300;
const turns = 3;
const tellTimeoutMs = 10_000;

const runOnce = async (acp: Server, answer: Answer): Promise<void> => {
  const { path, body, complete } = acpCall(acp, answer, false);
  const headers = { 'content-type': 'application/json' };
  const text = await (await fetch(new URL(path, acp.url), { method: 'POST', headers, body })).text();
  if (!text.includes(complete)) throw new Error(`A run did not complete: ${text.slice(-400)}`);
};

const lastTold = (cwd: string): OldSpace | null => {
  try {
    return JSON.parse(readFileSync(join(cwd, oldSpaceFile), 'utf8')) as OldSpace;
  } catch {
    // Not written yet, or only half.
    return null;
  }
};

const oldSpaceTeller = (acp: Server, cwd: string): (() => Promise<OldSpace>) => {
  let asked = 0;
  return async () => {
    asked += 1;
    process.kill(acp.pid, 'SIGUSR2');
    for (const deadline = performance.now() + tellTimeoutMs; performance.now() < deadline; await delay(10)) {
      const told = lastTold(cwd);
      if (told?.asked === asked) return told;
    }
    throw new Error(`acp did not tell what its old generation holds within ${tellTimeoutMs} ms`);
  };
};

/** The bundle, whatever else is measured: only Node takes the module that looks at the heap. */
const bundle = join(import.meta.dirname, '../dist/acp.mjs');
const watchedBundle = (): Program =>
  programAt(bundle, ['--max-semi-space-size=8', '--import', join(import.meta.dirname, 'old-space.ts')]);

export const measureYoungGarbage = async (folder: string, simulator: Server): Promise<YoungGarbage[]> => {
  if (!existsSync(bundle)) return [];
  const { cwd } = acpFolder(folder, 'young-garbage', simulator);
  const acp = await startAcp(watchedBundle(), cwd);
  await createAgents(acp);
  const oldSpace = oldSpaceTeller(acp, cwd);
  const measured: YoungGarbage[] = [];
  for (const answer of ['sse', 'json'] as const) {
    const many = async (): Promise<void> => {
      for (let count = 0; count < runs; count += 1) await runOnce(acp, answer);
    };
    await many();
    const seen: number[] = [];
    for (let turn = 0; turn < turns; turn += 1) {
      const before = await oldSpace();
      await many();
      const now = await oldSpace();
      if (now.collections === before.collections) seen.push((now.usedBytes - before.usedBytes) / runs);
    }
    measured.push({ answer, oldBytesPerRun: seen.length === 0 ? Number.NaN : Math.min(...seen) });
  }
  await acp.stop();
  return measured;
};
