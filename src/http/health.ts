import type { FastifyInstance } from 'fastify';
import { sendJson } from './answer.ts';
import { exchangeOf } from './routes.ts';

export interface HealthState {
  readonly status: 'Healthy' | 'Degraded' | 'Unhealthy' | 'Draining';
}

interface HealthOptions {
  readonly health: () => Promise<HealthState>;
  /** Null: no such route. Both paths are absolute: probes do not know the prefix. */
  readonly livePath: string | null;
  readonly readyPath: string | null;
}

/** When a probe that was refused should come back; the store probe behind it runs at most once a second. */
const retryAfterSeconds = '1';

/** Liveness and readiness: without credential, and with nothing but a status in the answer. */
export const addHealthRoutes = (app: FastifyInstance, { health, livePath, readyPath }: HealthOptions): void => {
  if (livePath !== null)
    app.get(livePath, (request, reply) => {
      reply.hijack();
      sendJson(exchangeOf(request, reply), 200, undefined, { status: 'Healthy' });
    });
  if (readyPath !== null)
    app.get(readyPath, async (request, reply) => {
      reply.hijack();
      const { status } = await health().catch((): HealthState => ({ status: 'Unhealthy' }));
      const ready = status === 'Healthy' || status === 'Degraded';
      const fields = ready ? undefined : { 'retry-after': retryAfterSeconds };
      sendJson(exchangeOf(request, reply), ready ? 200 : 503, fields, { status });
    });
};
