import { isRecord } from '../../contract/record.ts';
import { formatValue } from '../../text/format.ts';
import type { Style } from '../../text/style.ts';
import { safeLine, safeText } from '../../text/text-width.ts';

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (isRecord(value) && Object.keys(value).length === 0);

const needsBlock = (value: unknown): boolean =>
  isRecord(value) || (Array.isArray(value) && value.some((item) => typeof item === 'object' && item !== null));

const indented = (text: string, indent: string): string =>
  text
    .split('\n')
    .map((line) => `${indent}${line}`.trimEnd())
    .join('\n');

const listItems = (items: readonly unknown[], style: Style, indent: string): string[] =>
  items.map((item) => {
    const text = isRecord(item)
      ? lines(item, style, `${indent}  `).join('\n')
      : `${indent}  ${safeLine(formatValue('', item))}`;
    // The dash stands where the first line of the item is indented.
    return `${indent}- ${text.slice(indent.length + 2)}`;
  });

const lines = (record: Readonly<Record<string, unknown>>, style: Style, indent: string): string[] => {
  const members = Object.entries(record).filter(([, value]) => !isEmpty(value));
  const width = Math.max(0, ...members.filter(([, value]) => !needsBlock(value)).map(([name]) => name.length));
  return members.flatMap(([name, value]) => {
    const label = `${indent}${style.cyan(name)}`;
    if (isRecord(value)) return [label, ...lines(value, style, `${indent}  `)];
    if (Array.isArray(value) && needsBlock(value)) return [label, ...listItems(value, style, `${indent}  `)];
    if (typeof value === 'string' && value.includes('\n'))
      return [label, indented(safeText(value.trimEnd()), `${indent}  `)];
    return [`${label}${' '.repeat(width - name.length + 2)}${safeLine(formatValue(name, value))}`];
  });
};

/** One object as indented `name  value` lines. Members without a value are left out. */
export const renderRecord = (record: Readonly<Record<string, unknown>>, style: Style): string =>
  lines(record, style, '')
    .map((line) => `${line}\n`)
    .join('');
