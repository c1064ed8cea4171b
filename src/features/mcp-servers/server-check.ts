import type { McpServerRow } from '../../db/tables/mcp.ts';
import { isTlsFailure, OutboundError } from '../../providers/http/outbound-error.ts';
import { wholeList } from '../../providers/mcp/lists.ts';
import { McpFailure } from '../../providers/mcp/mcp-failure.ts';
import type { McpSession } from '../../providers/mcp/mcp-target.ts';
import { type Connections, settingsOf } from './connections.ts';
import { mostListed } from './discovery.ts';
import { type ListingServer, listingHash, readListing } from './listed-tools.ts';
import { isProgram } from './mcp-servers.rules.ts';
import type { McpCheckStep } from './mcp-servers.schema.ts';

export interface ServerCheckDeps {
  readonly connections: Pick<Connections, 'apart' | 'challenge'>;
  /** How far authorizing a server would come. Throws McpFailure where the server does not answer. */
  readonly oauth: (row: McpServerRow, failure: McpFailure) => Promise<Omit<McpCheckStep, 'step'>>;
  readonly maxTools: number;
  readonly timeoutMs: number;
}

type Step = McpCheckStep['step'];
type Finding = Omit<McpCheckStep, 'step'>;

const steps: readonly Step[] = ['Name', 'Address', 'Connection', 'Tls', 'Credential', 'Protocol', 'Tools'];

const passed = (detail: string): Finding => ({ outcome: 'Passed', detail, mend: null });
const failed = (detail: string, mend: string): Finding => ({ outcome: 'Failed', detail, mend });
const skipped = (detail: string): Finding => ({ outcome: 'Skipped', detail, mend: null });

interface Failure {
  readonly step: Step;
  readonly finding: Finding;
}

const ofConnection = (error: OutboundError): Failure => {
  switch (error.code) {
    case 'unresolved':
      return {
        step: 'Name',
        finding: failed(
          'The name of its host has no address.',
          'Correct `endpoint`, or see whether this machine resolves the name.',
        ),
      };
    case 'target-not-allowed':
      return {
        step: 'Address',
        finding: failed(
          'Its address is not on the public internet.',
          'Set Service:Egress:AllowPrivateNetworkTargets, if servers of a private network are meant.',
        ),
      };
    case 'timed-out':
      return {
        step: 'Connection',
        finding: failed(
          'It did not answer in time (Service:Mcp:ConnectionTimeout).',
          'See whether it runs, and whether a firewall is in between.',
        ),
      };
    default:
      return isTlsFailure(error)
        ? {
            step: 'Tls',
            finding: failed(
              'It could not prove who it is, or speaks no TLS.',
              'Renew its certificate or name the authority that has signed it (NODE_EXTRA_CA_CERTS), or correct the scheme of `endpoint`.',
            ),
          }
        : {
            step: 'Connection',
            finding: failed(
              'Nothing answers there, or the connection was cut.',
              'See whether the server runs, and correct the host and port of `endpoint`.',
            ),
          };
  }
};

const ofProgram = (error: OutboundError): Failure => ({
  step: 'Connection',
  finding:
    error.code === 'timed-out'
      ? failed(
          'It was started and did not answer in time (Service:Mcp:ConnectionTimeout).',
          'See in the log what it says, and whether it speaks the protocol over its standard streams.',
        )
      : failed(
          'It does not start, or has ended, or said more than it may.',
          'See in the log what it says; correct its Command, Environment or WorkingDirectory (Host:McpStdio).',
        ),
});

const statusMends: Readonly<Record<number, string>> = {
  400: 'Correct the path of `endpoint`, or the `transport`, and look into the log of the server.',
  403: 'Give the credential the rights that the server asks for; one that checks by which name it is called has to allow the host of `endpoint`.',
  404: 'Correct the path of `endpoint`, or the `transport`: nothing of the protocol is at this one.',
  405: 'Correct the path of `endpoint`, or the `transport`: this one takes no messages.',
  429: 'Wait: the server limits how often it is asked.',
};

const ofProtocol = (failure: McpFailure, step: Step, isOwn: boolean): Failure => {
  const { kind, status, code } = failure;
  switch (kind) {
    case 'http':
      return {
        step: status === 403 ? 'Credential' : step,
        finding: failed(
          `It answered with HTTP ${status}.`,
          statusMends[status ?? 0] ?? 'Look into the log of the server.',
        ),
      };
    case 'rpc':
      return {
        step,
        finding: failed(
          `It answered with the error ${code}.`,
          isOwn && step === 'Protocol'
            ? 'Look into what it writes to the log; one that passes on what another server says may need Protocol: Handshake (Host:McpStdio).'
            : 'Look into the log of the server.',
        ),
      };
    case 'no-common-version':
      return {
        step,
        finding: failed(
          'It speaks no revision of the protocol that is spoken here.',
          isOwn
            ? 'Leave out its Protocol (Host:McpStdio), or bring the program up to date.'
            : 'Save it with `protocol: Auto`, or bring the server up to date.',
        ),
      };
    default:
      return {
        step,
        finding: failed(
          'What it answers is none of the protocol.',
          isOwn
            ? 'See whether its Command (Host:McpStdio) is that of an MCP server.'
            : 'Correct the path of `endpoint`, and see whether the `transport` is the right one.',
        ),
      };
  }
};

/**
 * Goes to a server as a call would, on a connection of its own, and says in words how far it came and what helps. Nothing of
 * what it finds is kept, and nothing that the server says is told but numbers.
 */
export const createServerCheck = ({ connections, oauth, maxTools, timeoutMs }: ServerCheckDeps) => {
  /** Throws McpFailure where the server does not answer. */
  const ofCredential = async (row: McpServerRow, failure: McpFailure): Promise<Failure> => {
    const { oauthEnabled, authorizationConfigurationKey: key } = settingsOf(row);
    if (oauthEnabled) return { step: 'Credential', finding: await oauth(row, failure) };
    if (failure.kind === 'missing-credential') {
      // Nothing was sent: whether the server is there at all is asked as by somebody without a credential.
      await connections.challenge(row, timeoutMs);
      return {
        step: 'Credential',
        finding: failed(`The configuration key ${key} has no value.`, 'Give it one: the whole Authorization header.'),
      };
    }
    return {
      step: 'Credential',
      finding:
        key === null
          ? failed(
              'It asks for a credential, and the record has none.',
              'Save it with `authorizationConfigurationKey`, or with `oauthEnabled: true`.',
            )
          : failed(
              'It refuses the credential.',
              `Correct the value of ${key}, which is the whole Authorization header.`,
            ),
    };
  };
  const failureOf = async (row: McpServerRow, error: McpFailure, step: Step): Promise<Failure> => {
    if (error.cause instanceof OutboundError && error.kind === 'no-answer')
      return isProgram(settingsOf(row)) ? ofProgram(error.cause) : ofConnection(error.cause);
    if (error.kind !== 'unauthorized' && error.kind !== 'missing-credential')
      return ofProtocol(error, step, isProgram(settingsOf(row)));
    try {
      return await ofCredential(row, error);
    } catch (silence) {
      if (!(silence instanceof McpFailure) || silence.kind !== 'no-answer') throw silence;
      return failureOf(row, silence, step);
    }
  };

  const toolsOf = (row: McpServerRow, entries: readonly unknown[], server: ListingServer): Finding => {
    const settings = settingsOf(row);
    const listing = readListing(entries, server, settings.tools, maxTools);
    const { tools, refused, dropped } = listing;
    const count = tools.length === 1 ? '1 tool' : `${tools.length} tools`;
    if (refused.length + dropped > 0)
      return {
        outcome: 'Warning',
        detail: `${count}; ${refused.length} cannot be offered as they are described, ${dropped} are too many.`,
        mend: '`acp mcp refresh` names those that cannot be offered; `tools.include` says which to take.',
      };
    if (settings.pinning !== 'Block' || row.pinned_hash === listingHash(listing)) return passed(`${count}.`);
    const held =
      row.pinned_hash === null
        ? 'nothing is offered, as nobody has approved it'
        : 'what is not as it was approved cannot be called';
    return {
      outcome: 'Warning',
      detail: `${count}; ${held} (pinning: Block).`,
      mend: `\`acp mcp refresh\`, look at \`acp mcp diff ${row.name}\`, and accept it with \`acp mcp approve ${row.name}\`.`,
    };
  };

  const told = (row: McpServerRow, found: ReadonlyMap<Step, Finding>): readonly McpCheckStep[] => {
    const isOwn = isProgram(settingsOf(row));
    const isTls = new URL(settingsOf(row).endpoint).protocol === 'https:';
    const unused: ReadonlySet<Step> = new Set(isOwn ? ['Name', 'Address', 'Tls', 'Credential'] : isTls ? [] : ['Tls']);
    const at = steps.findIndex((step) => found.get(step)?.outcome === 'Failed');
    const reached: Readonly<Record<Step, string>> = {
      Name: 'Its host has an address.',
      Address: 'The address is allowed.',
      Connection: 'It answers.',
      Tls: 'Its certificate is good.',
      Credential: 'It takes the credential, or needs none.',
      Protocol: 'It speaks the protocol.',
      Tools: 'It lists its tools.',
    };
    return steps.map((step, index) => {
      const finding = found.get(step);
      if (finding !== undefined) return { step, ...finding };
      if (at >= 0 && index > at) return { step, ...skipped('Not come to.') };
      return { step, ...(unused.has(step) ? skipped('Not used.') : passed(reached[step])) };
    });
  };

  return async (row: McpServerRow): Promise<readonly McpCheckStep[]> => {
    const found = new Map<Step, Finding>();
    const client = connections.apart(row, timeoutMs);
    let session: McpSession | null = null;
    const note = async (error: unknown, step: Step): Promise<void> => {
      if (!(error instanceof McpFailure)) throw error;
      const failure = await failureOf(row, error, step);
      found.set(failure.step, failure.finding);
    };
    try {
      session = await client.session({ timeoutMs });
      const { version } = session;
      found.set('Protocol', passed(`It speaks ${version}.`));
      const { entries } = Object.hasOwn(session.capabilities, 'tools')
        ? await wholeList(client, 'tools', { timeoutMs, maxEntries: mostListed })
        : { entries: [] };
      found.set('Tools', toolsOf(row, entries, session));
    } catch (error) {
      await note(error, session === null ? 'Protocol' : 'Tools');
    } finally {
      void client.close();
    }
    return told(row, found);
  };
};

export type ServerCheck = ReturnType<typeof createServerCheck>;
