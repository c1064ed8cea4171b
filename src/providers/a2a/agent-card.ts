import { isRecord } from '../../contract/record.ts';

export type A2aVersion = '1.0' | '0.3';

/** What of an agent's card counts for whoever calls it. */
export interface AgentCard {
  readonly name: string;
  /** As the agent counts its own versions; null: it does not say. */
  readonly version: string | null;
  readonly skillCount: number;
  /** Where it takes messages, and in which version of the protocol. */
  readonly url: URL;
  readonly protocol: A2aVersion;
  readonly streams: boolean;
}

interface Interface {
  readonly url: unknown;
  readonly binding: unknown;
  readonly version: unknown;
}

const binding = 'JSONRPC';

const versionOf = (text: unknown): A2aVersion | null => {
  if (typeof text !== 'string') return null;
  if (/^1(?:\.|$)/.test(text)) return '1.0';
  return /^0\.3(?:\.|$)/.test(text) ? '0.3' : null;
};

const records = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];

/** Those of version 1.0 first, as its readers take them; then what a card of version 0.3 says. */
const interfacesOf = (card: Readonly<Record<string, unknown>>): readonly Interface[] => [
  ...records(card['supportedInterfaces']).map(({ url, protocolBinding, protocolVersion }) => ({
    url,
    binding: protocolBinding,
    version: protocolVersion,
  })),
  ...(card['url'] === undefined
    ? []
    : [{ url: card['url'], binding: card['preferredTransport'] ?? binding, version: card['protocolVersion'] }]),
  ...records(card['additionalInterfaces']).map(({ url, transport }) => ({
    url,
    binding: transport,
    version: card['protocolVersion'],
  })),
];

const addressOf = (value: unknown): URL | null => {
  if (typeof value !== 'string' || !URL.canParse(value)) return null;
  const url = new URL(value);
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  return isWeb && url.username === '' && url.password === '' && url.hash === '' ? url : null;
};

/** Reads a card of version 1.0 or 0.3; a problem in words where it is none that can be used. */
export const readAgentCard = (value: unknown): AgentCard | { readonly problem: string } => {
  if (!isRecord(value)) return { problem: 'it is no JSON object' };
  const { name, version, skills, capabilities } = value;
  if (typeof name !== 'string' || name === '') return { problem: 'it has no name' };
  const spoken = interfacesOf(value).flatMap((one) => {
    const protocol = one.binding === binding ? versionOf(one.version) : null;
    return protocol === null ? [] : [{ protocol, url: addressOf(one.url) }];
  });
  const chosen = spoken.find(({ protocol }) => protocol === '1.0') ?? spoken[0];
  if (chosen === undefined) return { problem: 'it names no interface of JSON-RPC in version 1.0 or 0.3' };
  const { url, protocol } = chosen;
  if (url === null) return { problem: 'the address of its interface is not an absolute http or https URL' };
  return {
    name,
    version: typeof version === 'string' ? version : null,
    skillCount: Array.isArray(skills) ? skills.length : 0,
    url,
    protocol,
    streams: isRecord(capabilities) && capabilities['streaming'] === true,
  };
};
