import { withDeadline } from '../../engine/tools/index.ts';
import type { DeploymentCredential } from '../../providers/models/index.ts';
import { answerWithinMs } from './host-answers.ts';

/**
 * Gives the bearer tokens that `Service:Providers:AzureOpenAI` is called with. Throwing, or taking more than 5 s, fails the call
 * (`provider_credential_unresolved`).
 */
export interface DeploymentTokenSource {
  /** Asked before each call, so that a source caches its tokens itself. `audience`: that of the section; null: it has none. */
  token(audience: string | null, signal: AbortSignal): string | Promise<string>;
}

/** What a header can carry. */
const bearerToken = /^[\x21-\x7e]+$/;

/** The source as the providers ask it; null: the section's `ApiKey` is used. */
export const hostDeploymentCredential = (source: DeploymentTokenSource | null): DeploymentCredential | null => {
  if (source === null) return null;
  return async (audience) => {
    const end = await withDeadline(
      async (signal) => source.token(audience, signal),
      answerWithinMs,
      new AbortController().signal,
    );
    if (end.kind === 'threw') throw end.error;
    if (end.kind !== 'returned') throw new Error(`deploymentCredential gave no token in ${answerWithinMs} ms.`);
    // A module is not type-checked at run time.
    const token: unknown = end.value;
    if (typeof token !== 'string' || !bearerToken.test(token))
      throw new Error('deploymentCredential gave no token that a header can carry.');
    return token;
  };
};
