import { AcpError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import {
  type Attribution,
  credentialAttribution,
  maxLabelKeyLength,
  maxLabels,
  maxLabelValueLength,
  type RunAttribution,
} from '../../core/caller/attribution.ts';
import { principalJson } from '../../core/caller/principal-json.ts';
import type { Logger } from '../../core/logger.ts';
import { withDeadline } from '../../engine/tools/index.ts';
import { answerWithinMs, failureOf, identityUnavailable } from './host-answers.ts';

/** The start of a run, and what its credential says of who it is for. */
export interface AttributionRequest {
  readonly tenantId: string;
  readonly agentName: string;
  readonly sessionId: string | null;
  /** The subject of a token; null for API keys and the shared token. */
  readonly userId: string | null;
  /** `apiKey`, the name of the key, where the caller has one. */
  readonly labels: Readonly<Record<string, string>>;
  readonly principal: Json;
}

export interface AttributionAnswer {
  /** Left out: as the credential says. 1 to 256 characters, or null. */
  readonly userId?: string | null;
  /** Added to what the credential says. */
  readonly labels?: Readonly<Record<string, string>> | null;
}

/**
 * Says who a run is for. Throwing, or taking more than 5 s, refuses the run: it must not be booked on somebody else.
 * Null: as the credential says.
 */
export interface AttributionResolver {
  resolve(request: AttributionRequest, signal: AbortSignal): Promise<AttributionAnswer | null>;
}

const maxUserIdLength = 256;

const invalid = (message: string): AcpError =>
  new AcpError('attribution-invalid', `The attribution of the run is not valid: ${message}.`);

const userIdOf = (answer: unknown, own: string | null): string | null => {
  if (answer === undefined) return own;
  if (answer === null) return null;
  if (typeof answer !== 'string' || answer === '' || answer.length > maxUserIdLength)
    throw invalid(`userId must be a text of 1 to ${maxUserIdLength} characters, or null`);
  return answer;
};

// A filter splits `key:value` at its first colon, so that a key with one could never be found.
const key = new RegExp(`^[^:]{1,${maxLabelKeyLength}}$`, 'su');

const labelsOf = (answer: unknown, own: RunAttribution['labels']): RunAttribution['labels'] => {
  if (answer === undefined || answer === null) return own;
  if (!isRecord(answer)) throw invalid('labels must be an object of texts');
  for (const [name, value] of Object.entries(answer)) {
    if (!key.test(name)) throw invalid(`a label's key must have 1 to ${maxLabelKeyLength} characters and no colon`);
    if (typeof value !== 'string' || value.length > maxLabelValueLength)
      throw invalid(`the label ${JSON.stringify(name)} must be a text of at most ${maxLabelValueLength} characters`);
  }
  // The name of the key is the service's own word, which no answer replaces.
  const labels = { ...(answer as Readonly<Record<string, string>>), ...own };
  const count = Object.keys(labels).length;
  if (count > maxLabels) throw invalid(`there are ${count} labels, and at most ${maxLabels} are allowed`);
  return count === 0 ? null : labels;
};

/** The resolver as the port that starts of runs ask; without one the credential decides. */
export const hostAttribution = (resolver: AttributionResolver | null, log: Pick<Logger, 'warn'>): Attribution => {
  if (resolver === null) return { of: ({ principal }) => credentialAttribution(principal) };
  return {
    async of({ tenantId, principal, requestId, signal }, { agentName, sessionId }) {
      const { userId, labels } = credentialAttribution(principal);
      const caller = { userId, labels: { ...labels }, principal: principalJson(principal) };
      const request: AttributionRequest = { tenantId, agentName, sessionId, ...caller };
      const end = await withDeadline((inner) => resolver.resolve(request, inner), answerWithinMs, signal);
      if (end.kind !== 'returned') {
        if (end.kind !== 'canceled')
          log.warn(
            { requestId, agentName, ...failureOf(end) },
            'The attribution resolver failed, so the run was refused',
          );
        throw identityUnavailable('Who the run is for cannot be decided now.');
      }
      const answer: unknown = end.value ?? {};
      if (!isRecord(answer)) throw invalid('it must be an object with userId and labels');
      return { userId: userIdOf(answer['userId'], userId), labels: labelsOf(answer['labels'], labels) };
    },
  };
};
