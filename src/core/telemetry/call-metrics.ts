import { AcpError } from '../../contract/errors.ts';
import type { Telemetry } from './telemetry.ts';

/** What is counted of calls, whichever transport they come by. */
export type CallMetrics = ReturnType<typeof createCallMetrics>;

// What establishing identity, tenant and authority answers with; unavailability of an issuer is no refusal.
const authCodes: ReadonlySet<string> = new Set([
  'unauthenticated',
  'ambiguous-credentials',
  'origin-denied',
  'remote-access-denied',
  'invalid-tenant',
  'tenant-mismatch',
  'tenant-rejected',
  'insufficient-role',
  'insufficient-scope',
]);

/** `partition` is what the rate limit counts by; null without one. */
export const createCallMetrics = ({ metrics }: Telemetry, partition: string | null) => {
  const rejections = metrics.counter(
    'acp.auth.rejections',
    'Requests refused for their credential, tenant, role or scope.',
    '{request}',
    ['acp.auth.reason'],
  );
  const limited = metrics.counter('acp.rate_limit.rejections', 'Requests that the rate limit refused.', '{request}', [
    'acp.rate_limit.partition',
  ]);
  const wait = metrics.histogram(
    'acp.rate_limit.wait',
    'Time that requests waited for their turn in the rate limit.',
    's',
    [],
  );
  return {
    /** Counts an error that refuses a caller for who they are; others are not its business. */
    refused(error: unknown): void {
      if (error instanceof AcpError && authCodes.has(error.code)) rejections.add(1, [error.code]);
    },
    /** Counts a call that was refused by the limit on requests. */
    limited: (): void => limited.add(1, [partition]),
    /** How long a call waited for its turn under that limit. */
    waited: (seconds: number): void => wait.record(seconds, []),
  };
};
