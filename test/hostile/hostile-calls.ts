import { type OperationEntry, operationEntries } from '../../src/core/dispatch.ts';
import { operations } from '../../src/operations.ts';
import { protocolCalls } from './protocol-bodies.ts';
import { type HostileCall, hostileCalls } from './schema-bodies.ts';
import { hostileForms } from './upload-bodies.ts';

/** All operations that read a body. */
export const operationsWithBodies: readonly OperationEntry[] = operationEntries(operations).filter(
  ({ operation: { body, upload, ownProtocol, signed } }) => (body ?? upload ?? ownProtocol ?? signed) !== undefined,
);

/** The hostile requests of an operation. Throws for one whose protocol has no bodies here. */
export const callsOf = ({ id, operation: { body, upload } }: OperationEntry): readonly HostileCall[] => {
  if (body !== undefined) return hostileCalls(body);
  if (upload !== undefined) return hostileForms(upload.part);
  const calls = protocolCalls[id];
  if (calls === undefined)
    throw new Error(`${id} reads its body itself: test/hostile/protocol-bodies.ts needs its bodies.`);
  return calls;
};
