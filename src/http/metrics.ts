import type { FastifyInstance } from 'fastify';
import { AcpError } from '../contract/errors.ts';
import { requireAuthority } from '../core/dispatch.ts';
import { prometheusText, prometheusType } from '../core/telemetry/prometheus.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import { sendBytes, sendProblem } from './answer.ts';
import { discardRest } from './body.ts';
import { callerRequest, exchangeOf, type RouteOptions } from './routes.ts';

export interface MetricsOptions {
  /** Absolute: a scraper does not know the prefix. Null: no such route. */
  readonly path: string | null;
  readonly telemetry: Telemetry;
  /** The only tenant whose callers get metrics, which are about all tenants; null: there is one. */
  readonly onlyTenant: string | null;
}

/** Metrics in the text format of Prometheus, for readers of the platform: they name tenants and agents. */
export const addMetricsRoute = (
  app: FastifyInstance,
  { authenticate, log, metrics }: RouteOptions,
  { path, telemetry, onlyTenant }: MetricsOptions,
): void => {
  if (path === null) return;
  app.get(path, async (request, reply) => {
    reply.hijack();
    const exchange = exchangeOf(request, reply, null);
    try {
      const { principal, tenantId } = await authenticate(callerRequest(request.raw, path));
      requireAuthority(principal, 'Reader', 'PlatformRead', 'The list of metrics');
      if (onlyTenant !== null && tenantId !== onlyTenant)
        throw new AcpError('not-found', 'There is nothing at this path.');
      sendBytes(exchange, 200, { 'content-type': prometheusType }, prometheusText(await telemetry.metrics.gather()));
    } catch (error) {
      metrics.refused(error);
      sendProblem(exchange, error, log);
      discardRest(request.raw);
    }
  });
};
