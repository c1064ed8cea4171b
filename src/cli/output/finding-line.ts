import type { Style } from '../../text/style.ts';
import { safeLine } from '../../text/text-width.ts';
import type { PlacedFinding } from '../definitions/check-definitions.ts';

interface LineFinding extends Omit<PlacedFinding, 'code'> {
  readonly file: string;
  readonly code?: string;
}

/** `agents/support.yaml:12`, as editors and terminals understand it. */
export const placeOf = (file: string, line: number | null): string =>
  safeLine(line === null ? file : `${file}:${line}`);

/** `error: support.yaml:12: toolNames[0]: There is no tool "find". (tool-not-found)` */
export const findingLine = (style: Style, { severity, file, line, path, message, code }: LineFinding): string => {
  const mark = severity === 'Error' ? style.red('error:') : style.yellow('warning:');
  // Findings of agents are sentences, some of which begin with the field.
  const field = path === '' || message.startsWith(path) ? '' : `${path}: `;
  return `${mark} ${placeOf(file, line)}: ${safeLine(field + message)}${code === undefined ? '' : ` (${code})`}`;
};
