import type { ServerResponse } from 'node:http';
import type { OperationEntry } from '../core/dispatch.ts';
import { Span } from '../core/telemetry/span.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import { newTraceId, parseTraceparent, type TraceParent } from '../core/telemetry/trace-context.ts';

/**
 * The span that the work of a request belongs to, from its arrival on. Where nothing is exported there is no span of our own, and the
 * caller's goes on; otherwise the request has one, which ends with its answer.
 */
export const requestSpan = (
  telemetry: Telemetry,
  { operation }: OperationEntry,
  prefix: string,
  response: ServerResponse,
): TraceParent | null => {
  const { headers } = response.req;
  const parent = parseTraceparent(headers['traceparent'], headers['tracestate']);
  const { export: out, settings } = telemetry;
  if (!settings.enabled || out === null) return parent;
  const traceId = parent?.traceId ?? newTraceId();
  const route = prefix + operation.path;
  const span = new Span(
    `${operation.method} ${route}`,
    'Server',
    { ...parent, traceId, sampled: out.samples(traceId, parent) },
    {
      'http.request.method': operation.method,
      'http.route': route,
      'url.scheme': 'http',
      // Ids in a path may be those of persons and sessions, which no other span gives away.
      'url.path': operation.path.includes('{') ? null : route,
    },
  );
  response.once('close', () => {
    const status = response.statusCode;
    span.set({ 'http.response.status_code': status });
    // A caller that is refused is its own mistake: only failures of the service are errors of a server span.
    span.end(!response.writableFinished ? 'canceled' : status >= 500 ? String(status) : null);
    telemetry.ended(span);
  });
  return span;
};
