import type { OpensSpan } from '../tools/index.ts';
import { documentText } from './chat-message.ts';

/** A resource of a remote server as a run has read it, under the name that its definition gives it. */
export interface ReadResource {
  readonly name: string;
  readonly content: string;
}

export interface ResourceName {
  readonly server: string;
  readonly uri: string;
}

// RFC 3986, section 3.1; the server's name is one that records can have.
const named = /^(?<server>[A-Za-z0-9][A-Za-z0-9_-]{0,31}):(?<uri>[A-Za-z][A-Za-z0-9+.-]*:\P{Cc}{1,2000})$/u;

/** `{server}:{uri}`, as definitions name a resource, taken apart; null: it is none. */
export const resourceName = (text: string): ResourceName | null => {
  const { server, uri } = named.exec(text)?.groups ?? {};
  return server === undefined || uri === undefined ? null : { server, uri };
};

/** Where the resources come from that agents name. */
export interface AgentResources {
  /** Those that can be had, in the order of their names; what is left out is logged. Rejects only for what is no server's fault. */
  read(of: {
    readonly tenantId: string;
    readonly runId: string;
    readonly requestId: string;
    readonly names: readonly string[];
    readonly signal: AbortSignal;
    readonly openSpan?: OpensSpan | undefined;
  }): Promise<readonly ReadResource[]>;
}

/** The system text with what was read behind it, as documents. */
export const withResources = (instructions: string | null, resources: readonly ReadResource[]): string | null => {
  if (resources.length === 0) return instructions;
  const documents = resources.map(({ name, content }) => documentText(name, content));
  return [...(instructions === null ? [] : [instructions]), ...documents].join('\n\n');
};
