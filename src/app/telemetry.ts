import { randomUUID } from 'node:crypto';
import type { Config } from '../core/config/schema.ts';
import { environment } from '../core/environment.ts';
import type { Logger, LogLevel } from '../core/logger.ts';
import { createTelemetry, type Telemetry } from '../core/telemetry/telemetry.ts';
import { version } from '../core/version.ts';
import type { ProtectionObserver } from '../providers/models/index.ts';
import { createOtlpExport } from '../providers/telemetry/otlp-export.ts';
import type { LogEntry } from '../providers/telemetry/otlp-records.ts';
import { otlpSignals } from '../providers/telemetry/otlp-settings.ts';
import { telemetrySettings } from './options.ts';

const order = ['trace', 'debug', 'info', 'warn', 'error'] as const;

/** A logger that writes to `log` and passes each line of at least this level on. */
const teed = (log: Logger, least: LogLevel, take: (entry: LogEntry) => void): Logger => {
  const at =
    (level: LogEntry['level']) =>
    (fields: Record<string, unknown>, message: string): void => {
      log[level](fields, message);
      if (order.indexOf(level) >= order.indexOf(least)) take({ level, fields, message });
    };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
};

/**
 * What the service reports about itself: spans, metrics and log lines, exported where the environment names a receiver.
 * `exports` is false for a command in process: it ends before anybody could collect anything.
 */
export const openTelemetry = async (config: Config, stdout: Logger, exports: boolean) => {
  const env = environment();
  const hasReader = exports && (config.Host.Metrics.Path !== null || otlpSignals(env).metrics);
  const telemetry = createTelemetry(telemetrySettings(config), hasReader);
  const instanceId = randomUUID();
  if (!exports || !telemetry.settings.enabled)
    return { telemetry, log: stdout, instanceId, close: async () => undefined };
  const out = await createOtlpExport({
    env,
    version,
    instanceId,
    collect: () => telemetry.metrics.gather(),
    problem: (message) => stdout.warn({ problem: message }, 'Telemetry could not be exported'),
  });
  telemetry.export = out?.spans ?? null;
  const log = out === null || out.log === null ? stdout : teed(stdout, config.Host.LogLevel, out.log);
  const close = async (): Promise<void> => {
    telemetry.leftBehind = (await out?.close()) === false;
  };
  return { telemetry, log, instanceId, close };
};

/** Counts what the breakers and the limits of model providers do; `open` is asked when metrics are collected. */
export const protectionMetrics = (
  { metrics }: Telemetry,
  open: () => ReadonlyMap<string, number>,
  conventional: (provider: string) => string,
): ProtectionObserver => {
  const provider = 'gen_ai.provider.name';
  const transitions = metrics.counter('acp.model.circuit.transitions', 'Changes of circuit breakers.', '{transition}', [
    provider,
    'acp.circuit.state',
  ]);
  const waits = metrics.histogram('acp.model.queue.duration', 'Waits for a place among the calls of a provider.', 's', [
    provider,
  ]);
  metrics.gauge('acp.circuit.open', 'Circuit breakers that refuse calls.', '{circuit}', [provider], () =>
    [...open()].map(([name, value]) => ({ value, values: [conventional(name)] })),
  );
  return {
    circuitChanged: (name, state) => transitions.add(1, [conventional(name), state]),
    waited: (name, seconds) => waits.record(seconds, [conventional(name)]),
  };
};

/** Counts targets that the address rules refuse. */
export const countEgressRefusals = ({ metrics }: Telemetry) => {
  const refusals = metrics.counter(
    'acp.egress.refusals',
    'Addresses that were refused, when they were saved or when they were called.',
    '{target}',
    ['acp.egress.client', 'acp.egress.phase'],
  );
  return (client: 'provider' | 'tool' | 'webhook' | 'mcp' | 'a2a', phase: 'save' | 'connect'): void =>
    refusals.add(1, [client, phase]);
};
