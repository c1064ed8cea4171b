import { isDescribed, isOffered } from '../app/mounted-operations.ts';
import { type App, type AppOptions, createApp } from '../app.ts';
import { AcpError } from '../contract/errors.ts';
import { version } from '../core/version.ts';
import type { RequestLimitOptions } from './request-limit.ts';
import { createHttpServer } from './server.ts';

/** The application behind an HTTP listener. */
export interface Service extends App {
  /** Rejects with `ListenError` when the address cannot be taken. */
  listen(): Promise<{ readonly url: string }>;
}

// Answers that are being written when the service ends get this long to reach their readers.
const closeGraceMs = 2000;

const listenAddress = (url: string): { host: string; port: number } => {
  const { hostname, port, protocol } = new URL(url);
  if (protocol !== 'http:')
    throw new AcpError(
      'validation-failed',
      'Host:Url must be an http address: TLS is left to a proxy in front of the service.',
    );
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? 80 : Number(port) };
};

const requestLimitOptions = (
  settings: AppOptions['config']['values']['Service']['RateLimit'],
  clientAddress: App['clientAddress'],
): RequestLimitOptions | null =>
  settings.Enabled
    ? {
        permitLimit: settings.PermitLimit,
        windowMs: settings.Window,
        queueLimit: settings.QueueLimit,
        partition: settings.Partition,
        clientAddress,
      }
    : null;

export const createService = async (options: Omit<AppOptions, 'mode'>): Promise<Service> => {
  const { Host, Service } = options.config.values;
  const address = listenAddress(Host.Url);
  const app = await createApp({ ...options, mode: 'serve' });
  const server = createHttpServer({
    dispatch: app.dispatch,
    offers: ({ operation }) => isOffered(options.config.values, operation),
    describes: ({ feature, operation }) => isDescribed(options.config.values, feature, operation),
    prefix: Host.Prefix,
    version,
    title: 'Agent Control Plane',
    authenticate: app.authenticate,
    health: app.health,
    livePath: Host.Health.LivePath,
    readyPath: Host.Health.ReadyPath,
    metrics: {
      path: Host.Metrics.Path,
      telemetry: app.telemetry,
      onlyTenant: Host.Tenancy.Enabled ? Service.DefaultTenantId : null,
    },
    log: app.log,
    allowedOrigins: Host.AllowedOrigins,
    clientAddress: app.clientAddress,
    requestLimit: requestLimitOptions(Service.RateLimit, app.clientAddress),
    streamLimits: { maxPerCaller: Service.Streams.MaxPerCaller, maxPerTenant: Service.Streams.MaxPerTenant },
  });
  return {
    ...app,
    async listen() {
      const listening = await server.listen(address);
      // With the prefix: whoever finds this address in the owner file calls operations below it.
      const url = `${listening.url}${Host.Prefix}`;
      app.started(url);
      return { url };
    },
    async close() {
      await app.drain();
      await server.close(closeGraceMs);
      await app.close();
    },
  };
};
