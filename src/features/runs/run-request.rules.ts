import { AcpError, invalidField } from '../../contract/errors.ts';
import { checkRunBody } from '../../contract/run-body.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import { hasAnswers } from '../sessions/index.ts';

export type RunMode = 'stream' | 'json' | 'queued';

/** `respond-async` in a `Prefer` list (RFC 7240); other preferences are ignored. */
const prefersAsync = (prefer: string | undefined): boolean =>
  (prefer ?? '').split(',').some((preference) => preference.split(';')[0]?.trim().toLowerCase() === 'respond-async');

/** First match: queued, then one JSON answer, then the stream. */
export const runMode = (
  body: AgentRunRequest,
  headers: { readonly prefer?: string; readonly 'idempotency-key'?: string },
): RunMode => {
  const queued = prefersAsync(headers.prefer);
  const keyed = headers['idempotency-key'] !== undefined;
  if (body.stream === true && (queued || keyed))
    throw new AcpError('stream-not-possible', 'A queued run or one with an idempotency key cannot be streamed.', {
      details: {
        errors: [{ path: 'stream', message: 'must not be true with `Prefer: respond-async` or `Idempotency-Key`' }],
      },
    });
  if (queued) return 'queued';
  return keyed || body.stream === false ? 'json' : 'stream';
};

/** What the schema cannot say of a run request. */
export const checkRunRequest = (body: AgentRunRequest, mode: RunMode): void => {
  if (mode === 'queued' && hasAnswers(body))
    throw new AcpError('not-for-queued-runs', 'Decisions and tool results cannot be queued.');
  if (body.lane !== undefined && body.lane !== null && mode !== 'queued')
    throw invalidField('lane', 'is for queued runs only');
  checkRunBody(body);
};
