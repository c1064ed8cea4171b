import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import process from 'node:process';
import { environment } from '../../core/environment.ts';

/*
 * A script's children can leave its group, its session, its folder and its environment; they cannot leave a PID
 * namespace. When the first process of one ends, the kernel ends all others in it, before its end is told.
 * Design: docs/design/agents-and-skills.md.
 */

/** Command and first arguments that start what follows as the second process of a PID namespace of its own. */
export interface ScriptNamespace {
  readonly command: string;
  readonly arguments: readonly string[];
}

/** Where scripts are kept together; null: by their process group and what can be found of their children. */
export type ScriptIsolation = ScriptNamespace | null;

/*
 * The first process of a namespace ignores signals that it has not asked for, so that a script in its place could not
 * end itself by one. This is constant text; the command of the script comes as arguments and is not read as a program.
 * The line on descriptor 3 says that the namespace is there; without it an answer of `unshare` is none of the script's.
 * The shell's own words ("Killed") are no output of the script, and its variables none that a script gets.
 */
const firstProcess = 'echo >&3; exec 3>&2 2>/dev/null; unset PWD OLDPWD SHLVL; (exec "$@" 2>&3 3>&-); exit $?';
const shell = '/bin/sh';

const withShell = (options: readonly string[]): readonly string[] => [
  ...options,
  '--',
  shell,
  '-c',
  firstProcess,
  shell,
];

// Without privileges a namespace of users comes with it, in which this user keeps its number.
const ways: readonly (readonly string[])[] = [
  ['--pid', '--fork', '--kill-child'],
  // Those of BusyBox know no more; killing the group ends the first process as well.
  ['--pid', '--fork'],
  ['--user', '--map-current-user', '--pid', '--fork', '--kill-child'],
];

const probeTimeoutMs = 5000;
const expectedCode = 40 + 2;

/** True when a process started so is the second of its namespace, and its exit code comes through. */
const holds = (command: string, options: readonly string[]): Promise<boolean> =>
  new Promise((resolve) => {
    // Descriptor 3 is not open here, and the shell goes on without it.
    const args = [...withShell(options), shell, '-c', 'exit $((40 + $$))'];
    execFile(command, args, { env: {}, timeout: probeTimeoutMs, killSignal: 'SIGKILL' }, (error) =>
      resolve(error !== null && error.code === expectedCode),
    );
  });

const findProgram = async (name: string): Promise<string | null> => {
  for (const folder of (environment()['PATH'] ?? '').split(delimiter)) {
    if (!isAbsolute(folder)) continue;
    const path = join(folder, name);
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder.
    }
  }
  return null;
};

/** Tries what this system has. Nothing is assumed about its version, container or rights. */
export const findIsolation = async (): Promise<ScriptIsolation> => {
  if (process.platform !== 'linux') return null;
  const command = await findProgram('unshare');
  if (command === null) return null;
  for (const options of ways) if (await holds(command, options)) return { command, arguments: withShell(options) };
  return null;
};

/** What holds here, as `acp doctor` says it. */
export const describeIsolation = (isolation: ScriptIsolation): string =>
  isolation === null
    ? 'no PID namespace can be made here (unshare): a script ends with its process group and the children that can be found; one that hides stays'
    : `each in a PID namespace of its own (${isolation.command}): all that a script starts ends with it`;

/** Thrown at start: without isolation the scripts must not run. */
export class IsolationMissingError extends Error {
  constructor() {
    super(
      `Service:Skills:Scripts:Isolation is Required, and ${describeIsolation(null)}. Install unshare (util-linux) and allow namespaces, or set Isolation: Auto.`,
    );
    this.name = 'IsolationMissingError';
  }
}
