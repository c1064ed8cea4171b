import { createHash } from 'node:crypto';
import type { Json } from '../../contract/schema.ts';
import type { AgentCard, ProtocolVersion, SecurityScheme } from './a2a.schema.ts';
import { resumeExtension } from './a2a-versions.ts';

/** What a definition says of itself to strangers. */
export interface PublicAgent {
  readonly name: string;
  readonly displayName: string | null;
  readonly description: string | null;
  readonly version: number;
  readonly metadata: Readonly<Record<string, Json>>;
  /** Its answers are JSON. */
  readonly answersJson: boolean;
}

export interface CardSettings {
  /** Address of the agent's endpoint. */
  readonly url: string;
  /** Version 0.3 is served, too. */
  readonly legacy: boolean;
  /** In whose form the card is. Readers of one version refuse security schemes of the other, or lose them. */
  readonly version: ProtocolVersion;
  readonly provider: { readonly organization: string; readonly url: string } | null;
  /** Issuer of tokens; null: there is none. */
  readonly issuer: string | null;
  /** `Attachments:AllowedMediaTypes`. */
  readonly allowedMediaTypes: readonly string[];
}

const textList = (value: Json | undefined): readonly string[] | null =>
  Array.isArray(value) && value.length > 0 && value.every((entry) => typeof entry === 'string') ? value : null;

const textOf = (value: Json | undefined): string | null => (typeof value === 'string' && value !== '' ? value : null);

const isCardType = (mediaType: string): boolean => /^(?:image|audio)\/|^application\/pdf$/i.test(mediaType);

const inputModes = (allowedMediaTypes: readonly string[]): string[] => [
  ...new Set(['text/plain', 'application/json', ...allowedMediaTypes.filter(isCardType)]),
];

export const outputModes = ({ answersJson }: Pick<PublicAgent, 'answersJson'>): string[] =>
  answersJson ? ['text/plain', 'application/json'] : ['text/plain'];

const discoveryUrl = (issuer: string): string => `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;

const security = (issuer: string | null): Pick<AgentCard, 'securitySchemes' | 'securityRequirements'> => {
  const securitySchemes: Record<string, SecurityScheme> = {
    bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } },
    apiKey: { apiKeySecurityScheme: { location: 'header', name: 'X-Api-Key' } },
    ...(issuer === null ? {} : { oidc: { openIdConnectSecurityScheme: { openIdConnectUrl: discoveryUrl(issuer) } } }),
  };
  const names = Object.keys(securitySchemes);
  return { securitySchemes, securityRequirements: names.map((name) => ({ schemes: { [name]: { list: [] } } })) };
};

/** The properties of a card that version 0.3 has otherwise. */
const legacyProperties = (url: string, issuer: string | null) => {
  const securitySchemes: Record<string, SecurityScheme> = {
    bearer: { type: 'http', scheme: 'Bearer' },
    apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
    ...(issuer === null ? {} : { oidc: { type: 'openIdConnect', openIdConnectUrl: discoveryUrl(issuer) } }),
  };
  return {
    securitySchemes,
    url,
    preferredTransport: 'JSONRPC' as const,
    protocolVersion: '0.3.0' as const,
    security: Object.keys(securitySchemes).map((name) => ({ [name]: [] as string[] })),
    supportsAuthenticatedExtendedCard: false as const,
  };
};

/** What other agents read of an agent before they call it: never its instructions, model, tools or skills. */
export const agentCard = (agent: PublicAgent, settings: CardSettings): AgentCard => {
  const { url, legacy, version, issuer } = settings;
  const { metadata } = agent;
  const title = agent.displayName ?? agent.name;
  const description = agent.description ?? '';
  const examples = textList(metadata['a2a.examples']);
  const documentationUrl = textOf(metadata['a2a.documentationUrl']);
  const iconUrl = textOf(metadata['a2a.iconUrl']);
  return {
    name: title,
    description,
    version: String(agent.version),
    ...(settings.provider === null ? {} : { provider: { ...settings.provider } }),
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
      ...(legacy ? [{ url, protocolBinding: 'JSONRPC' as const, protocolVersion: '0.3' as const }] : []),
    ],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: false,
      extensions: [
        {
          uri: resumeExtension,
          description: 'Events of a stream have positions, and a stream goes on after one of them.',
          required: false,
        },
      ],
    },
    ...(version === '0.3' ? legacyProperties(url, issuer) : security(issuer)),
    defaultInputModes: inputModes(settings.allowedMediaTypes),
    defaultOutputModes: outputModes(agent),
    skills: [
      {
        id: agent.name,
        name: title,
        description,
        tags: [...(textList(metadata['a2a.tags']) ?? ['agent'])],
        ...(examples === null ? {} : { examples: [...examples] }),
      },
    ],
    ...(documentationUrl === null ? {} : { documentationUrl }),
    ...(iconUrl === null ? {} : { iconUrl }),
  };
};

/** Strong: the same for the same bytes alone. */
export const cardTag = (card: AgentCard): string =>
  `"${createHash('sha256').update(JSON.stringify(card)).digest('hex').slice(0, 32)}"`;
