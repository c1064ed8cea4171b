import { RE2JS } from 're2js';

/**
 * Steps that the patterns and formats of one check may take, a step being one state of a pattern at one character: some
 * tenths of a second at the very worst, and a few thousandths for what people write.
 */
const maxSteps = 4_000_000;
/** States of one pattern. Counts are written out, so that `[a-z]{1,500}` has a thousand. */
const maxStates = 4_000;
const maxPatternLength = 2_000;

/** What is left of the steps of one check. Checks do not overlap. */
export class StepBudget {
  #left = maxSteps;

  renew(): void {
    this.#left = maxSteps;
  }

  /** False: there are not as many left. */
  spend(steps: number): boolean {
    this.#left -= steps;
    return this.#left >= 0;
  }
}

const compiled = (pattern: string): RE2JS => RE2JS.compile(RE2JS.translateRegExp(pattern));

const isEcmaPattern = (pattern: string): boolean => {
  try {
    new RegExp(pattern, 'u');
    return true;
  } catch {
    // A pattern is either valid or not; the caller says which one.
    return false;
  }
};

/** Why a text cannot be a pattern of a schema; null: it can. */
export const patternProblem = (pattern: string): string | null => {
  if (!isEcmaPattern(pattern)) return 'must be a regular expression';
  if (pattern.length > maxPatternLength)
    return `must be a regular expression of at most ${maxPatternLength} characters`;
  try {
    if (compiled(pattern).programSize() <= maxStates) return null;
    return 'must be a simpler regular expression: counts such as {1,500} are written out, and lengths belong into maxLength';
  } catch {
    return 'must be a regular expression that RE2 can run, such as ^[a-z]{1,20}$: it has no lookahead, lookbehind, backreferences, counts above 1000 or \\p{Name=Value}';
  }
};

/**
 * A pattern that never takes longer than its length times that of the text. It stands where the validator expects a
 * RegExp and uses nothing but `test`. Throws for what RE2 cannot run.
 */
export class LinearPattern extends RegExp {
  readonly #pattern: string;
  readonly #program: RE2JS;
  readonly #states: number;
  readonly #budget: StepBudget;

  constructor(pattern: string, budget: StepBudget) {
    super('');
    this.#pattern = pattern;
    this.#program = compiled(pattern);
    this.#states = this.#program.programSize();
    this.#budget = budget;
  }

  /** False as well where the text is too long to be looked at. */
  override test(text: string): boolean {
    return this.#budget.spend(this.#states * text.length) && this.#program.matcher(text).find();
  }

  override toString(): string {
    return this.#pattern;
  }
}
