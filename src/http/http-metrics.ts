import { AcpError } from '../contract/errors.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';

/** What the transport counts. */
export interface HttpMetrics {
  /** Counts an error that refuses a caller for who it is; others are not its business. */
  refused(error: unknown): void;
  /** 1 when a stream opens, -1 when it ends. */
  streams(change: 1 | -1, kind: 'run' | 'events'): void;
  limited(): void;
  waited(seconds: number): void;
}

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

/** `partition` is what the rate limit counts by. */
export const createHttpMetrics = ({ metrics }: Telemetry, partition: string | null): HttpMetrics => {
  const rejections = metrics.counter(
    'acp.auth.rejections',
    'Requests refused for their credential, tenant, role or scope.',
    '{request}',
    ['acp.auth.reason'],
  );
  const streams = metrics.upDown('acp.sse.streams', 'Event streams that are open.', '{stream}', ['acp.sse.kind']);
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
    refused(error) {
      if (error instanceof AcpError && authCodes.has(error.code)) rejections.add(1, [error.code]);
    },
    streams: (change, kind) => streams.add(change, [kind]),
    limited: () => limited.add(1, [partition]),
    waited: (seconds) => wait.record(seconds, []),
  };
};
