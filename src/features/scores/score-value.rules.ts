import type { FieldError } from '../../contract/errors.ts';
import type { RunFeedbackRequest, RunScoreKind } from './scores.schema.ts';

type Fits = (value: number) => boolean;

const scales: Record<Exclude<RunScoreKind, 'Categorical'>, { readonly fits: Fits; readonly allowed: string }> = {
  Binary: { fits: (value) => value === 0 || value === 1, allowed: '0 or 1' },
  Stars: { fits: (value) => Number.isInteger(value) && value >= 1 && value <= 5, allowed: 'an integer from 1 to 5' },
  Numeric: { fits: (value) => value >= 0 && value <= 100, allowed: 'a number from 0 to 100' },
};

const maxCategoryLength = 128;

/** What keeps a score from fitting its kind; empty when it fits. */
export const scoreProblems = ({ kind, value, textValue }: RunFeedbackRequest): FieldError[] => {
  const score = value ?? null;
  const text = textValue ?? null;
  if (kind === 'Categorical') {
    const problems: FieldError[] = [];
    if (score !== null) problems.push({ path: 'value', message: 'must be absent for a Categorical score' });
    if (text === null || text === '' || text.length > maxCategoryLength)
      problems.push({ path: 'textValue', message: `must be a text of 1 to ${maxCategoryLength} characters` });
    return problems;
  }
  const { fits, allowed } = scales[kind];
  const problems: FieldError[] = [];
  if (score === null || !fits(score))
    problems.push({ path: 'value', message: `must be ${allowed} for a ${kind} score` });
  if (text !== null) problems.push({ path: 'textValue', message: `must be absent for a ${kind} score` });
  return problems;
};
