import type { Client } from '../../client/client.ts';
import type { ModelProviderHealth } from '../../features/models/models.schema.ts';
import type { Finding } from './finding.ts';

/** Longer than a service takes for a provider, which is 5 s, and the way to it. */
const limitMs = 15_000;

/** What the words of a failed check mean; the status, where there is one, comes first. */
const failureText = (detail: string | null): string => {
  const [, status] = /^HTTP (\d+) /.exec(detail ?? '') ?? [];
  if (status === '401' || status === '403') return `it answers ${status}: the key is not accepted`;
  if (status !== undefined) return `it answers ${status} when asked for its models`;
  if (detail?.endsWith('Timeout') === true) return 'it does not answer in time';
  if (detail?.endsWith('ProviderUnavailable') === true) return 'nothing answers at its address';
  return detail ?? 'it is not healthy';
};

const findingOf = (name: string, { status, detail, latencyMs, models }: ModelProviderHealth): Finding => {
  const check = 'provider';
  if (status === 'Healthy')
    return {
      status: 'ok',
      check,
      message: `${name}: answers in ${latencyMs ?? 0} ms; models listed: ${models.length}`,
    };
  if (status === 'Degraded')
    return { status: 'warn', check, message: `${name}: answers, but ${detail ?? 'is degraded'}` };
  if (status === 'Unhealthy') return { status: 'fail', check, message: `${name}: ${failureText(detail)}` };
  return { status: 'skip', check, message: `${name}: not tried, since it has no list of models to ask for` };
};

/**
 * Has the service ask every provider for its list of models, which costs nothing and takes at most 5 s each. `labels`: what a
 * provider is called; one that is not among them is left out.
 */
export const providerFindings = async (
  client: Client,
  labels: ReadonlyMap<string, string> | null,
): Promise<Finding[]> => {
  const { body } = await client.models.health({ query: { refresh: true }, signal: AbortSignal.timeout(limitMs) });
  return body.flatMap((health) => {
    const label = labels === null ? health.providerName : labels.get(health.providerName);
    return label === undefined ? [] : [findingOf(label, health)];
  });
};
