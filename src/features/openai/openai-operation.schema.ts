import Type from 'typebox';
import { oneOf } from '../../contract/schema.ts';
import { runErrors } from '../runs/runs.schema.ts';

/* What operations of this API have in common. */

export const openAi = { tag: 'OpenAI', envelope: 'OpenAi', nullIsAbsent: true, cli: { handWritten: true } } as const;
export const startRun = { ...openAi, method: 'POST', role: 'Operator', scope: 'RunsWrite' } as const;

/** Inline files are part of a body: one of the largest size, in base64, and what is said with it. */
export const maxRequestBytes = 33_554_432;

export const onDisconnectQuery = {
  onDisconnect: Type.Optional(
    oneOf(['continue', 'cancel'], { description: 'Effect of a client disconnect on the run' }),
  ),
};
export const idempotencyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({ description: 'Every repeat of the request receives the same response' }),
  ),
});

/** What starting a run here may answer beyond what every run may. */
export const startErrors = [
  'unsupported-parameter',
  'missing-required-parameter',
  'message-required',
  'stream-not-possible',
  'parameter-invalid',
  'attribution-invalid',
  'attachment-not-found',
  'file-empty',
  'idempotency-key-invalid',
  'agent-not-found',
  'run-canceled',
  'idempotency-in-progress',
  'attachment-too-large',
  'media-type-not-allowed',
  'idempotency-key-reused',
  'idempotency-disabled',
  'structured-response-invalid',
  ...runErrors,
] as const;
