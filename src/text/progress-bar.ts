export interface Progress {
  readonly done: number;
  readonly failed: number;
  readonly total: number;
}

/** Cells of a bar by what they stand for; together they are as wide as the bar. */
export interface ProgressCells {
  readonly done: string;
  readonly failed: string;
  readonly left: string;
}

/**
 * A bar of so many cells. It is full only when nothing is left, and what has failed has a cell of its own from the first
 * one on; the marks differ where there are no colours.
 */
export const progressCells = ({ done, failed, total }: Progress, cells: number): ProgressCells => {
  if (total <= 0) return { done: '', failed: '', left: '░'.repeat(cells) };
  const ended = Math.min(cells, Math.floor(((done + failed) / total) * cells));
  const failures = failed === 0 ? 0 : Math.min(cells, Math.max(1, Math.round((failed / total) * cells)));
  const successes = Math.max(0, ended - failures);
  return {
    done: '█'.repeat(successes),
    failed: '×'.repeat(failures),
    left: '░'.repeat(Math.max(0, cells - successes - failures)),
  };
};

const thousands = new Intl.NumberFormat('en-US');

/** `512 of 1,000 items, 3 failed`: how many have ended; empty for a job without items. */
export const progressText = ({ done, failed, total }: Progress): string => {
  if (total === 0) return '';
  const failures = failed === 0 ? '' : `, ${thousands.format(failed)} failed`;
  return `${thousands.format(done + failed)} of ${thousands.format(total)} ${total === 1 ? 'item' : 'items'}${failures}`;
};
