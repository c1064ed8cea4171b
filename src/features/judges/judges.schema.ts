import Type, { type Static } from 'typebox';
import { RunScore } from '../scores/scores.schema.ts';

export const JudgeFailure = Type.Object(
  {
    judgeName: Type.String(),
    errorType: Type.String({
      description:
        '`judge-timeout`, `judge-score-out-of-range`, `judge-answer-invalid`, or the class of the error that the judge threw',
    }),
    isRetryable: Type.Boolean({ description: 'Another attempt may succeed' }),
  },
  { title: 'JudgeFailure' },
);
export type JudgeFailure = Static<typeof JudgeFailure>;

export const JudgeRunResponse = Type.Object(
  { scores: Type.Array(RunScore), failures: Type.Array(JudgeFailure) },
  { title: 'JudgeRunResponse' },
);
export type JudgeRunResponse = Static<typeof JudgeRunResponse>;
