import process from 'node:process';

/** One sentence of what is promised, with what was measured. */
export interface GoalLine {
  readonly name: string;
  readonly measured: number;
  readonly limit: number;
  readonly is: 'at least' | 'at most' | 'below';
  readonly unit: string;
}

const isMet = ({ measured, limit, is }: GoalLine): boolean =>
  ({ 'at least': measured >= limit, 'at most': measured <= limit, below: measured < limit })[is];

/** Prints the goals; the process ends with 1 where one was missed, or could not be measured. */
export const tellGoals = (lines: readonly GoalLine[]): void => {
  for (const line of lines) {
    const { name, measured, limit, is, unit } = line;
    const verdict = isMet(line) ? 'met' : 'MISSED';
    console.log(`${verdict.padEnd(6)}  ${name}: ${measured.toFixed(2)} ${unit} (${is} ${limit})`);
  }
  if (!lines.every(isMet)) process.exitCode = 1;
};
