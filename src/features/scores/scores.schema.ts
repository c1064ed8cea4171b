import Type, { type Static } from 'typebox';
import { closed, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

export const scoreKinds = ['Binary', 'Stars', 'Numeric', 'Categorical'] as const;
export type RunScoreKind = (typeof scoreKinds)[number];

export const RunFeedbackRequest = closed(
  {
    name: Type.Optional(
      nullable(
        Type.String({
          pattern: '^(?:\\s*|[A-Za-z0-9._-]{1,64})$',
          description: 'Name of the score, at most 64 of A-Z a-z 0-9 . _ -; blank: `overall`',
        }),
      ),
    ),
    kind: oneOf(scoreKinds, { description: 'Scale of the score' }),
    value: Type.Optional(
      nullable(Type.Number({ description: 'Binary: 0 or 1; Stars: 1 to 5; Numeric: 0 to 100; not with Categorical' })),
    ),
    textValue: Type.Optional(
      nullable(Type.String({ description: 'Category of 1 to 128 characters; only with Categorical' })),
    ),
    messageId: Type.Optional(
      nullable(Type.String({ maxLength: 128, description: 'Message that is scored; blank: the run itself' })),
    ),
    comment: Type.Optional(nullable(Type.String({ maxLength: 4000, description: 'Reason for the score' }))),
  },
  { title: 'RunFeedbackRequest' },
);
export type RunFeedbackRequest = Static<typeof RunFeedbackRequest>;

export const RunScore = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    runId: Uuid,
    messageId: nullable(Type.String()),
    name: Type.String(),
    kind: oneOf(scoreKinds),
    value: nullable(Type.Number()),
    textValue: nullable(Type.String()),
    comment: nullable(Type.String()),
    source: Type.String({ description: '`human`, `api`, or `judge:` and the name of the judge' }),
    author: nullable(Type.String()),
    evaluatorVersion: nullable(Type.String()),
    createdAt: Time,
  },
  { title: 'RunScore' },
);
export type RunScore = Static<typeof RunScore>;
