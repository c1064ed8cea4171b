import { readFile, stat } from 'node:fs/promises';
import { AcpError } from '../../contract/errors.ts';
import type { Terminal } from '../output/terminal.ts';
import { unreadableFile } from './file-fault.ts';

export const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // Reading a path that is not there says so.
    return false;
  }
};

/** Text of a file, or of stdin for `-`. */
export const readText = async (file: string, terminal: Terminal): Promise<string> => {
  if (file === '-') return terminal.readInput();
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (cause) {
    throw unreadableFile(file, cause);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new AcpError('validation-failed', `${file} is not UTF-8 text.`, { cause });
  }
};

/** The one YAML or JSON value of a file or of stdin. */
export const readBody = async (file: string, terminal: Terminal): Promise<unknown> => {
  const text = await readText(file, terminal);
  const [{ LineCounter, parseDocument }, { yamlFault }] = await Promise.all([
    import('yaml'),
    import('../../core/documents/yaml-fault.ts'),
  ]);
  const lines = new LineCounter();
  const document = parseDocument(text, { version: '1.2', prettyErrors: false, logLevel: 'silent', lineCounter: lines });
  const name = file === '-' ? 'The standard input' : file;
  const refuse = (reason: string, cause?: unknown) =>
    new AcpError('validation-failed', `${name} is not valid YAML or JSON: ${reason}`, { cause });
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined)
    throw refuse(`Line ${Math.max(1, lines.linePos(problem.pos[0]).line)}: ${yamlFault(problem)}`);
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    // Finds an alias inside what it stands for.
    JSON.stringify(value);
    return value;
  } catch (cause) {
    if (![RangeError, ReferenceError, TypeError].some((kind) => cause instanceof kind)) throw cause;
    throw refuse('The values are nested too deeply, or aliases repeat too much.', cause);
  }
};
