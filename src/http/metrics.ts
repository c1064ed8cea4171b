import type { FastifyInstance } from 'fastify';
import { AcpError } from '../contract/errors.ts';
import { prometheusText, prometheusType } from '../core/telemetry/prometheus.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import { sendBytes } from './answer.ts';
import { HttpCaller } from './http-call.ts';
import { exchangeOf, type RouteOptions, refuse } from './routes.ts';

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
  { dispatch, authenticate, log }: RouteOptions,
  { path, telemetry, onlyTenant }: MetricsOptions,
): void => {
  if (path === null) return;
  app.get(path, async (request, reply) => {
    reply.hijack();
    // Scrapers come as often as they are told to.
    const options = { authenticate, prefix: '', limit: null, log };
    const asking = new HttpCaller(options, request.raw, exchangeOf(request, reply));
    try {
      const { tenantId } = await dispatch.admit(
        asking,
        { role: 'Reader', scope: 'PlatformRead' },
        'The list of metrics',
      );
      if (onlyTenant !== null && tenantId !== onlyTenant)
        throw new AcpError('not-found', 'There is nothing at this path.');
      const text = prometheusText(await telemetry.metrics.gather());
      sendBytes(asking.exchange, 200, { 'content-type': prometheusType }, text);
    } catch (error) {
      refuse(asking, request, error, options);
    }
  });
};
