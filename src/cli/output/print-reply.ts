import { safeText } from '../../text/text-width.ts';
import { renderRecord } from './record.ts';
import { renderTable, scalarColumns } from './table.ts';
import type { Terminal } from './terminal.ts';

export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

export interface PrintOptions {
  readonly json: boolean;
  /** Columns of the table when the value is a list. */
  readonly columns?: readonly string[] | undefined;
  /** Said on stderr in place of an empty table. */
  readonly empty?: string | undefined;
}

const humanText = (terminal: Terminal, body: unknown, columns: readonly string[] | undefined): string => {
  const { style, width } = terminal;
  if (Array.isArray(body)) return renderTable(body, columns ?? scalarColumns(body), { style, width });
  if (typeof body === 'object' && body !== null) return renderRecord(body as Record<string, unknown>, style);
  return `${safeText(String(body))}\n`;
};

/** Prints an answer: the service's JSON as it is, or a table or record for people. No body prints nothing. */
export const printReply = async (terminal: Terminal, body: unknown, options: PrintOptions): Promise<undefined> => {
  if (body === undefined) return undefined;
  const isEmpty = Array.isArray(body) && body.length === 0;
  if (isEmpty && !options.json) terminal.note(options.empty ?? 'Nothing found.');
  else if (options.json) await terminal.writeJson(jsonText(body));
  else await terminal.write(humanText(terminal, body, options.columns));
  return undefined;
};
