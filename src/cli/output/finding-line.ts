import type { Style } from '../../text/style.ts';
import { safeLine } from '../../text/text-width.ts';

interface LineFinding {
  readonly severity: 'Error' | 'Warning';
  readonly file: string;
  /** Null where the file as a whole is meant. */
  readonly line: number | null;
  /** Member path; empty for the definition as a whole. */
  readonly path: string;
  readonly message: string;
  readonly code?: string;
}

/** `agents/support.yaml:12`, as editors and terminals understand it. */
export const placeOf = (file: string, line: number | null): string =>
  safeLine(line === null ? file : `${file}:${line}`);

/** `error: support.yaml:12: toolNames[0]: There is no tool "find". (tool-not-found)` */
export const findingLine = (style: Style, { severity, file, line, path, message, code }: LineFinding): string => {
  const mark = severity === 'Error' ? style.red('error:') : style.yellow('warning:');
  const field = path === '' ? '' : `${path}: `;
  return `${mark} ${placeOf(file, line)}: ${safeLine(field + message)}${code === undefined ? '' : ` (${code})`}`;
};
