import { stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/make-folder.ts';
import type { CommandHost } from '../command-host.ts';
import { jsonText } from '../output/print-reply.ts';

/** What a new folder gets, and the asset that it is copied from. */
const files: readonly (readonly [file: string, asset: string])[] = [
  ['service.yaml', 'samples/service.yaml'],
  ['agents/hello.yaml', 'samples/hello.yaml'],
  ['modules/clock.mjs', 'samples/clock.mjs'],
  ['scripts/demo.yaml', 'samples/scripted-demo.yaml'],
];

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
  const { readAsset } = await import('../../core/assets.ts');
  const targets = files.map(([file, asset]) => ({ path: join(folder, file), asset }));
  const present = await Promise.all(
    targets.map(async ({ path }) => ((await exists(path)) ? [relative(cwd, path)] : [])),
  );
  const taken = present.flat();
  if (taken.length > 0)
    throw new AcpError(
      'validation-failed',
      `${taken.join(', ')} ${taken.length === 1 ? 'exists' : 'exist'} already; nothing was written.`,
    );
  for (const { path, asset } of targets) {
    try {
      makeFolder(dirname(path));
      await writeFile(path, readAsset(asset), { flag: 'wx' });
    } catch (cause) {
      const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown error';
      throw new AcpError('validation-failed', `${path} cannot be written (${reason}).`, { cause });
    }
  }
  return targets.map(({ path }) => path);
};

/** `acp init`: the files that a service of one's own begins with. */
export const registerInit = (host: CommandHost): void => {
  host.program
    .command('init')
    .description('write a service.yaml, a sample agent and a sample tool; overwrites nothing')
    .argument('[folder]', 'where to', '.')
    .action(
      host.act(async ({ terminal, globals, cwd }, { args }) => {
        const folder = resolve(cwd, String(args[0]));
        const written = (await writeFiles(folder, cwd)).map((path) => relative(cwd, path));
        if (globals.json) {
          await terminal.writeJson(jsonText({ files: written }));
          return undefined;
        }
        await terminal.write(written.map((path) => `wrote  ${path}\n`).join(''));
        const { bold } = terminal.style;
        const inFolder = relative(cwd, folder);
        const steps = [
          ...(inFolder === '' ? [] : [`${bold(`cd ${inFolder}`)}`]),
          `${bold('acp serve')}                       start the service`,
          `${bold('acp agents apply -f agents')}      bring the agent in, in a second terminal`,
          `${bold('acp run hello "What time is it?"')}`,
        ];
        await terminal.write(`\nNext:\n${steps.map((step) => `  ${step}\n`).join('')}`);
        return undefined;
      }),
    );
};
