import Type, { type Static } from 'typebox';
import { RunScore } from '../scores/scores.schema.ts';

export const JudgeFailure = Type.Object(
  {
    judgeName: Type.String(),
    errorType: Type.String({
      description:
        '`judge-timeout`, `judge-score-out-of-range`, `judge-answer-invalid`, or the class of what the judge threw',
    }),
    isRetryable: Type.Boolean({ description: 'Asking the judge again may help' }),
  },
  { title: 'JudgeFailure' },
);
export type JudgeFailure = Static<typeof JudgeFailure>;

export const JudgeRunResponse = Type.Object(
  { scores: Type.Array(RunScore), failures: Type.Array(JudgeFailure) },
  { title: 'JudgeRunResponse' },
);
export type JudgeRunResponse = Static<typeof JudgeRunResponse>;
