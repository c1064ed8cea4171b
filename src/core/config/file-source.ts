import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { isAbsolute, relative, resolve } from 'node:path';
import { systemCode } from '../files/system-code.ts';
import type { ConfigProblem } from './problem.ts';
import type { ConfigSource, RawMap } from './raw-value.ts';
import { parseYaml } from './yaml-source.ts';

/** Ten times the example file; what is larger is not a configuration. */
const maxFileBytes = 524_288;

export interface ConfigFile {
  /** Absolute path, null when there is no file. */
  readonly path: string | null;
  readonly values: RawMap | null;
  readonly problems: readonly ConfigProblem[];
}

export interface FileChoice {
  /** Path that was asked for on the command line. */
  readonly configPath: string | null;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'access is denied',
  EPERM: 'access is denied',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
  ELOOP: 'its links lead in a circle',
};

/** Why a file could not be read, without its content and without a driver's text. */
export const fileErrorReason = (error: unknown): string => {
  const code = systemCode(error);
  return reasons[code] ?? `reading it failed (${code === '' ? 'unknown error' : code})`;
};

/** Reads the file that was named, else `service.yaml` in the working directory when there is one. */
export const readConfigFile = (choice: FileChoice): ConfigFile => {
  const variable = choice.env['ACP_CONFIG'];
  const fromVariable = choice.configPath === null && variable !== undefined && variable !== '';
  const named = choice.configPath ?? (fromVariable ? variable : null);
  const path = resolve(choice.cwd, named ?? 'service.yaml');
  let content: Buffer;
  try {
    content = readFileSync(path);
  } catch (error) {
    if (named === null && systemCode(error) === 'ENOENT') return { path: null, values: null, problems: [] };
    const source: ConfigSource = fromVariable
      ? { kind: 'variable', name: 'ACP_CONFIG' }
      : { kind: 'flag', name: named === null ? shownPath(path, choice.cwd) : '--config' };
    const message = `cannot read ${path}: ${fileErrorReason(error)}`;
    return { path, values: null, problems: [{ key: null, source, code: 'file-unreadable', message }] };
  }
  const shown = shownPath(path, choice.cwd);
  const problem = unusable(content, shown);
  if (problem !== null) return { path, values: null, problems: [problem] };
  return { path, ...parseYaml(new TextDecoder('utf-8').decode(content), shown) };
};

/** As short as it can be without being wrong for the reader: relative below the working directory. */
const shownPath = (path: string, cwd: string): string => {
  const short = relative(cwd, path);
  return short === '' || short.startsWith('..') || isAbsolute(short) ? path : short;
};

const unusable = (content: Buffer, file: string): ConfigProblem | null => {
  const problem = (line: number, message: string): ConfigProblem => ({
    key: null,
    source: { kind: 'file', file, line },
    code: 'syntax',
    message,
  });
  if (content.length > maxFileBytes) return problem(1, `the file is larger than ${maxFileBytes} bytes`);
  if (isUtf8(content)) return null;
  // A line end is never part of a longer character, so the lines can be tested one by one.
  let line = 1;
  let start = 0;
  for (
    let end = content.indexOf(10);
    end !== -1 && isUtf8(content.subarray(start, end));
    end = content.indexOf(10, start)
  ) {
    start = end + 1;
    line += 1;
  }
  return problem(line, 'expected UTF-8 text; this line has bytes that are not');
};
