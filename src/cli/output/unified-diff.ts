interface Edit {
  readonly mark: ' ' | '-' | '+';
  readonly line: string;
}

const contextLines = 3;
// The table of common lines grows with the product of both lengths; texts beyond it are shown as replaced.
const maxTableCells = 4_000_000;

const marked = (mark: Edit['mark'], lines: readonly string[]): Edit[] => lines.map((line) => ({ mark, line }));

/** Length of the longest common subsequence of what is left from each pair of positions on. */
const commonTable = (left: readonly string[], right: readonly string[]): Uint32Array[] => {
  const rows = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i -= 1)
    for (let j = right.length - 1; j >= 0; j -= 1) {
      const row = rows[i];
      const next = rows[i + 1];
      if (row === undefined || next === undefined) continue;
      row[j] = left[i] === right[j] ? (next[j + 1] ?? 0) + 1 : Math.max(next[j] ?? 0, row[j + 1] ?? 0);
    }
  return rows;
};

const compare = (left: readonly string[], right: readonly string[]): Edit[] => {
  if (left.length * right.length > maxTableCells) return [...marked('-', left), ...marked('+', right)];
  const table = commonTable(left, right);
  const edits: Edit[] = [];
  let i = 0;
  let j = 0;
  while (i < left.length && j < right.length) {
    if (left[i] === right[j]) {
      edits.push({ mark: ' ', line: left[i] ?? '' });
      i += 1;
      j += 1;
    } else if ((table[i + 1]?.[j] ?? 0) >= (table[i]?.[j + 1] ?? 0)) edits.push({ mark: '-', line: left[i++] ?? '' });
    else edits.push({ mark: '+', line: right[j++] ?? '' });
  }
  return [...edits, ...marked('-', left.slice(i)), ...marked('+', right.slice(j))];
};

const commonPrefix = (left: readonly string[], right: readonly string[]): number => {
  let length = 0;
  while (length < Math.min(left.length, right.length) && left[length] === right[length]) length += 1;
  return length;
};

const editScript = (left: readonly string[], right: readonly string[]): Edit[] => {
  const start = commonPrefix(left, right);
  const end = commonPrefix(left.slice(start).reverse(), right.slice(start).reverse());
  const middle = compare(left.slice(start, left.length - end), right.slice(start, right.length - end));
  return [...marked(' ', left.slice(0, start)), ...middle, ...marked(' ', left.slice(left.length - end))];
};

const range = (start: number, length: number): string =>
  `${length === 0 ? start : start + 1}${length === 1 ? '' : `,${length}`}`;

/** Lines of a text; the last one needs no line feed. */
const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'));

/** Unified diff of two texts as lines; empty when they are equal. */
export const unifiedDiff = (left: string, right: string, leftName: string, rightName: string): string[] => {
  const edits = editScript(linesOf(left), linesOf(right));
  const shown = edits.map((_edit, at) =>
    edits.slice(Math.max(0, at - contextLines), at + contextLines + 1).some(({ mark }) => mark !== ' '),
  );
  if (!shown.includes(true)) return [];
  const output = [`--- ${leftName}`, `+++ ${rightName}`];
  let leftAt = 0;
  let rightAt = 0;
  for (let at = 0; at < edits.length; ) {
    const next = shown[at] === true ? shown.indexOf(false, at) : shown.indexOf(true, at);
    const hunk = edits.slice(at, next === -1 ? edits.length : next);
    const leftLength = hunk.filter(({ mark }) => mark !== '+').length;
    const rightLength = hunk.filter(({ mark }) => mark !== '-').length;
    if (shown[at] === true) {
      output.push(`@@ -${range(leftAt, leftLength)} +${range(rightAt, rightLength)} @@`);
      output.push(...hunk.map(({ mark, line }) => `${mark}${line}`));
    }
    leftAt += leftLength;
    rightAt += rightLength;
    at += hunk.length;
  }
  return output;
};
