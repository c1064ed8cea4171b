import { readdir, readFile, readlink } from 'node:fs/promises';

/*
 * A process group holds what a program starts, unless a child makes a group or session of its own. On Linux such a child
 * is found as a descendant, by a variable in its environment that no other has, or by a working folder inside the program's
 * own. What breaks all three ties (orphaned, own session, environment cleared, moved elsewhere) cannot be told from any
 * other process of the same user. This is for systems that have no PID namespaces for scripts; see script-isolation.ts.
 */

const kill = (pid: number): void => {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already, or never ours to end: nothing is left to do for either.
  }
};

interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly isTied: boolean;
}

const readOrNull = async (path: string): Promise<string | null> => {
  try {
    return await readFile(path, 'latin1');
  } catch {
    // Processes end while they are looked at, and those of other users are closed.
    return null;
  }
};

/** By what the children of a program are known that have left its group. */
export interface ProcessTies {
  /** `NAME=value`, as the environment of the program has it and no other. */
  readonly variable: string;
  /** The program's alone; null: it has none. */
  readonly folder: string | null;
}

const look = async (pid: number, { variable, folder }: ProcessTies): Promise<Seen | null> => {
  const stat = await readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The name in parentheses may hold anything; the fields behind it are plain.
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  if (state === 'Z') return null;
  const variables = (await readOrNull(`/proc/${pid}/environ`)) ?? '';
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '');
  const isInside = folder !== null && (cwd === folder || cwd.startsWith(`${folder}/`));
  const isTied = variables.includes(variable) || isInside;
  return { pid, parent: Number(parent), isTied };
};

const tree = async (root: number, ties: ProcessTies): Promise<number[]> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const seen = (await Promise.all(pids.map((pid) => look(pid, ties)))).filter((entry) => entry !== null);
  const members = new Set([root, ...seen.filter(({ isTied }) => isTied).map(({ pid }) => pid)]);
  for (let before = 0; before !== members.size; ) {
    before = members.size;
    for (const { pid, parent } of seen) if (members.has(parent)) members.add(pid);
  }
  // Never this process or the one that started it, whatever the ties say.
  return seen.map(({ pid }) => pid).filter((pid) => members.has(pid) && pid !== process.pid && pid !== process.ppid);
};

// A process that starts others while it is looked for is found in the next round; after this many it is out of hand.
const maxRounds = 10;

/**
 * Ends a process, its group and what can be found of its children. Null: the first process of a namespace is in the group,
 * and the kernel ends the others.
 */
export const killTree = async (root: number, ties: ProcessTies | null): Promise<void> => {
  if (ties === null || process.platform !== 'linux') {
    kill(process.platform === 'win32' ? root : -root);
    return;
  }
  // Children are looked for while they still have their parent: killed first, they would be nobody's.
  for (let round = 0; round < maxRounds; round += 1) {
    const pids = await tree(root, ties);
    kill(-root);
    for (const pid of pids) kill(pid);
    if (pids.length === 0) return;
  }
};
