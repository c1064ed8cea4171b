import { safeText } from '../../text/text-width.ts';
import { renderRecord } from './record.ts';
import { renderTable, scalarColumns } from './table.ts';
import type { Terminal } from './terminal.ts';

export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** How people see an answer: columns of a table, or what makes a text of it. */
export type Shown = readonly string[] | ((terminal: Terminal) => string);

const shownText = (terminal: Terminal, body: unknown, shown: Shown | undefined): string => {
  if (typeof shown === 'function') return shown(terminal);
  if (Array.isArray(body) && body.every((entry) => typeof entry === 'string'))
    return body.map((entry) => `${safeText(entry)}\n`).join('');
  if (Array.isArray(body)) return renderTable(body, shown ?? scalarColumns(body), terminal);
  if (typeof body === 'object' && body !== null) return renderRecord(body as Record<string, unknown>, terminal.style);
  return `${safeText(String(body))}\n`;
};

/** Prints an answer: the service's JSON as it is, or a table, a record or a text for people. No body prints nothing. */
export const printReply = async (terminal: Terminal, json: boolean, body: unknown, shown?: Shown): Promise<void> => {
  if (body === undefined) return;
  if (json) return terminal.writeJson(jsonText(body));
  if (Array.isArray(body) && body.length === 0 && typeof shown !== 'function') terminal.note('Nothing found.');
  else await terminal.write(shownText(terminal, body, shown));
};
