import type { McpServerRow } from '../../../db/tables/mcp.ts';
import type { McpFailure } from '../../../providers/mcp/mcp-failure.ts';
import { bearerChallenge } from '../../../providers/mcp/oauth/challenge.ts';
import { discoverAuthorizationServer } from '../../../providers/mcp/oauth/metadata.ts';
import { OAuthFailure, type OAuthReason, type OAuthStep } from '../../../providers/mcp/oauth/oauth-failure.ts';
import type { OpenOAuthWeb } from '../../../providers/mcp/oauth/oauth-web.ts';
import { type Connections, settingsOf } from '../connections.ts';
import type { McpCheckStep } from '../mcp-servers.schema.ts';
import { oauthProblem } from './oauth-words.ts';

type Finding = Omit<McpCheckStep, 'step'>;

/** Why a server that wants OAuth is not authorized, and what helps. Throws McpFailure where the server does not answer. */
type OAuthReadiness = (row: McpServerRow, failure: McpFailure) => Promise<Finding>;

export interface OAuthCheckDeps {
  readonly connections: Pick<Connections, 'challenge' | 'lacking'>;
  readonly web: OpenOAuthWeb;
  /** `Mcp:OAuthCallbackBaseUri`. */
  readonly callbackBaseUri: string | null;
  readonly timeoutMs: number;
}

const ofServer = 'The server has to name its authorization server (RFC 9728); tell who runs it.';
const ofIssuer = 'The authorization server has to be set up for that; tell who runs it.';
const mends: Readonly<Partial<Record<OAuthReason, string>>> = {
  unreachable: 'See whether this machine reaches that address, and whether the address rules allow it.',
  'wrong-resource': 'Save `endpoint` as the server names itself in its metadata.',
  'no-client': 'Register this service there, and save its id as `oauthClientId`.',
  'no-client-secret': 'Give the key that `oauthClientSecretConfigurationKey` names a value.',
};
const mendOf = (reason: OAuthReason, step: OAuthStep): string =>
  mends[reason] ?? (step === 'resource-metadata' ? ofServer : ofIssuer);

const failed = (detail: string, mend: string): Finding => ({ outcome: 'Failed', detail, mend });
const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Goes the way of authorizing as far as it leads without a person, and registers nothing. */
export const oauthCheck = ({ connections, web, callbackBaseUri, timeoutMs }: OAuthCheckDeps): OAuthReadiness => {
  const authorize = (row: McpServerRow): Finding => {
    const mend = `Run \`acp mcp authorize ${row.name}\`, and open the address that it prints.`;
    return connections.lacking(row) === null
      ? failed('What was granted counts no more.', mend)
      : failed('Nobody has authorized this service there yet.', mend);
  };
  return async (row, failure) => {
    // Asked before all that concerns this service alone: without a token nothing was sent so far.
    const challenge = bearerChallenge(await connections.challenge(row, timeoutMs));
    if (callbackBaseUri === null)
      return failed(
        'OAuth has no address that people come back to.',
        'Set Service:Mcp:OAuthCallbackBaseUri to the public address of this service.',
      );
    if (failure.kind === 'missing-credential')
      return failed('The secret of the OAuth client has no value.', mendOf('no-client-secret', 'token'));
    const { endpoint, oauthClientId } = settingsOf(row);
    try {
      const { server } = await discoverAuthorizationServer(web(timeoutMs), new URL(endpoint), challenge);
      if (oauthClientId === null && server.registrationEndpoint === null)
        throw new OAuthFailure('registration', 'no-client');
      return authorize(row);
    } catch (error) {
      if (error instanceof OAuthFailure) return failed(sentence(oauthProblem(error)), mendOf(error.reason, error.step));
      throw error;
    }
  };
};
