import { randomBytes } from 'node:crypto';
import { stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import type { CommandHost } from '../command-host.ts';
import { faultCode } from '../files/file-fault.ts';

/** What a new folder gets, and the asset that it is copied from. */
const copies: readonly (readonly [file: string, asset: string])[] = [
  ['service.yaml', 'samples/service.yaml'],
  ['agents/hello.yaml', 'samples/hello.yaml'],
  ['modules/clock.mjs', 'samples/clock.mjs'],
  ['scripts/demo.yaml', 'samples/scripted-demo.yaml'],
];
const keyFile = 'acp.key';
const ignoreFile = '.gitignore';
// The key is the whole authority over the service: whoever may read the file is an administrator.
const keyMode = 0o600;
const usualMode = 0o666;

interface NewFile {
  readonly path: string;
  readonly content: string | Uint8Array;
  readonly mode: number;
}

const exists = async (path: string): Promise<boolean> => {
  try {
    await stat(path);
    return true;
  } catch {
    // Not there, or not to be seen; writing tells which.
    return false;
  }
};

/** Writes the files of a new service. Throws before anything is written when one of them is there already. */
const writeFiles = async (folder: string, cwd: string): Promise<string[]> => {
  const { readAsset } = await import('../../core/files/assets.ts');
  const targets: NewFile[] = [
    ...copies.map(([file, asset]) => ({ path: join(folder, file), content: readAsset(asset), mode: usualMode })),
    { path: join(folder, keyFile), content: `${randomBytes(32).toString('hex')}\n`, mode: keyMode },
  ];
  const present = await Promise.all(
    targets.map(async ({ path }) => ((await exists(path)) ? [relative(cwd, path)] : [])),
  );
  const taken = present.flat();
  if (taken.length > 0)
    throw new AcpError(
      'validation-failed',
      `${taken.join(', ')} ${taken.length === 1 ? 'exists' : 'exist'} already; nothing was written.`,
    );
  // The list of a repository that is there already is its owner's to change.
  if (!(await exists(join(folder, ignoreFile))))
    targets.push({ path: join(folder, ignoreFile), content: `${keyFile}\ndata/\n`, mode: usualMode });
  for (const { path, content, mode } of targets) {
    try {
      makeFolder(dirname(path));
      await writeFile(path, content, { flag: 'wx', mode });
    } catch (cause) {
      throw new AcpError('validation-failed', `${path} cannot be written (${faultCode(cause, 'unknown error')}).`, {
        cause,
      });
    }
  }
  return targets.map(({ path }) => path);
};

/** `acp init`: the files that a service of one's own begins with. */
export const registerInit = (host: CommandHost): void => {
  host.program
    .command('init')
    .description('write a service.yaml, its key, a sample agent and a sample tool; overwrites nothing')
    .argument('[folder]', 'target folder', '.')
    .action(
      host.act(async ({ terminal, globals, print, cwd }, { args }) => {
        const folder = resolve(cwd, String(args[0]));
        const files = (await writeFiles(folder, cwd)).map((path) => relative(cwd, path));
        if (globals.json) return print({ files });
        await terminal.write(files.map((path) => `wrote  ${path}\n`).join(''));
        terminal.note(`${keyFile} is the key of the service; commands in this folder use it by themselves.`);
        if (!files.some((path) => basename(path) === ignoreFile))
          terminal.note(`Add ${keyFile} to ${ignoreFile}: whoever has it is an administrator.`);
        const { bold } = terminal.style;
        const inFolder = relative(cwd, folder);
        const steps = [
          ...(inFolder === '' ? [] : [`${bold(`cd ${inFolder}`)}`]),
          `${bold('acp serve')}                       start the service`,
          `${bold('acp agents apply -f agents')}      bring the agent in, in a second terminal`,
          `${bold('acp run hello "What time is it?"')}`,
        ];
        await terminal.write(`\nNext:\n${steps.map((step) => `  ${step}\n`).join('')}`);
      }),
    );
};
