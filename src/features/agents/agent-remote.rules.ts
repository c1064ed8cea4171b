import type { RegisteredTool } from '../../engine/tools/index.ts';
import { endpointProblem, isRefusedTarget, isSafeForCredentials, refusedTarget } from '../mcp-servers/index.ts';
import { countLimit, maxListed, rangeLimit, textLimit } from './agent-limits.rules.ts';
import type { AgentContent, RemoteAgentContent } from './agents.content.ts';
import { error, errorUnless, type Finding, quoted } from './agents.findings.ts';
import { remoteEffects, remotePinnings } from './agents.schema.ts';

/** What the agents of other systems that a definition names are checked against and made with. */
export interface RemoteAgentReferences {
  readonly allowPrivate: boolean;
  /** Whether a tenant may name the configuration key. */
  readonly mayNameIn: (tenantId: string, key: string) => boolean;
  /** The same for the tenant of the definition; absent where that is not known, as of an agent of code. */
  readonly mayName?: (key: string) => boolean;
  /** The tool through which the agent of the definition calls it. */
  readonly tool: (agentName: string, remote: RemoteAgentContent) => RegisteredTool;
}

const longestDescription = 2000;
const shortestMs = 1000;
const longestMs = 86_400_000;
const longestAddress = 2048;
const unseen = /[\s\p{C}]/u;
const remoteName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/;

const oneOfFinding = (path: string, word: string, words: readonly string[]): Finding[] =>
  errorUnless(words.includes(word), 'value-out-of-range', path, `${path} must be one of ${words.join(', ')}.`);

const addressFindings = (
  path: string,
  { cardUrl, authorizationConfigurationKey: key }: RemoteAgentContent,
  { allowPrivate, mayName }: RemoteAgentReferences,
): Finding[] => {
  const urlPath = `${path}.cardUrl`;
  const wrong = (message: string): Finding[] => [error('value-out-of-range', urlPath, `${urlPath} ${message}.`)];
  // An address is read by whoever approves it, and parsers drop some of what nobody sees.
  if (cardUrl.length > longestAddress || unseen.test(cardUrl))
    return wrong(`must be at most ${longestAddress} characters, without spaces and characters that nobody sees`);
  const problem = endpointProblem(cardUrl);
  if (problem !== null) return wrong(problem);
  const url = new URL(cardUrl);
  if (isRefusedTarget(url, allowPrivate)) return wrong(refusedTarget);
  if (key === null) return [];
  if (!isSafeForCredentials(url, allowPrivate)) return wrong('must be https where a credential is sent to it');
  const keyPath = `${path}.authorizationConfigurationKey`;
  const isKey = key.length <= longestAddress && !unseen.test(key) && mayName?.(key) !== false;
  const message = `${keyPath} must be a key below Mcp:AllowedConfigurationPrefix that this tenant may name.`;
  return errorUnless(isKey, 'value-out-of-range', keyPath, message);
};

/** What the remote agents of a definition are, each for itself. */
export const remoteAgentFindings = ({ remoteAgents }: AgentContent, references: RemoteAgentReferences): Finding[] => {
  const seen = new Set<string>();
  return [
    ...countLimit('remoteAgents', remoteAgents.length, maxListed.remoteAgents),
    ...remoteAgents.slice(0, maxListed.remoteAgents).flatMap((remote, index) => {
      const path = `remoteAgents[${index}]`;
      const { name, description, effect, pinning, timeoutMs } = remote;
      const isNew = !seen.has(name);
      seen.add(name);
      return [
        ...errorUnless(
          remoteName.test(name),
          'invalid-name',
          `${path}.name`,
          `${quoted(name)} is no name of a remote agent: 1 to 32 of A-Z a-z 0-9 _ - that start with a letter or digit.`,
        ),
        ...errorUnless(isNew, 'duplicate-entry', `${path}.name`, `The remote agent ${quoted(name)} is listed twice.`),
        ...addressFindings(path, remote, references),
        ...textLimit(`${path}.description`, description, longestDescription),
        ...oneOfFinding(`${path}.effect`, effect, remoteEffects),
        ...oneOfFinding(`${path}.pinning`, pinning, remotePinnings),
        ...rangeLimit(`${path}.timeoutMs`, timeoutMs, shortestMs, longestMs),
      ];
    }),
  ];
};
