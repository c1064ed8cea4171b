import Type, { type Static } from 'typebox';
import { AcpError } from './errors.ts';

const dryRun = Type.Optional(
  Type.Boolean({
    default: false,
    description:
      'True: saves nothing and responds as the save would, including errors. The id of a new object is then a placeholder. Default false',
  }),
);

/** Of an operation that only adds. */
export const DryRunQuery = Type.Object({ dryRun });

/** Of an operation that replaces the whole of something: whether it does so, and on which condition. */
export const SaveQuery = Type.Object({
  dryRun,
  expectedUpdatedAt: Type.Optional(
    Type.String({
      pattern: '^(none|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}Z)$',
      description:
        'Last known `updatedAt`, or `none` if the object must not exist yet; 409 `version-conflict` if it has changed since. Absent: saved without this check',
    }),
  ),
});
export type SaveQuery = Static<typeof SaveQuery>;

/**
 * Throws `version-conflict` unless it is as the caller knows it. Asked in the unit that saves.
 * @param updatedAt epoch milliseconds; undefined: it is not there.
 */
export const assertExpected = ({ expectedUpdatedAt }: SaveQuery, updatedAt: number | undefined): void => {
  if (expectedUpdatedAt === undefined) return;
  const expected = expectedUpdatedAt === 'none' ? undefined : Date.parse(expectedUpdatedAt);
  if (expected === updatedAt) return;
  const detail =
    updatedAt === undefined
      ? 'It was deleted meanwhile.'
      : `It was saved meanwhile, at ${new Date(updatedAt).toISOString()}.`;
  throw new AcpError('version-conflict', detail);
};
