import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { A2AAnswer, AgentCard } from './a2a.schema.ts';

const header = (description: string) => Type.Optional(Type.String({ description }));

const common = {
  tag: 'A2A',
  scope: 'ExternalInvoke',
  params: Type.Object({ agent: Type.String() }),
  cli: { handWritten: true },
} as const;

const version = header('Version of the protocol: 1.0, or 0.3 where it is served');

/** Where the service is, for addresses in answers; `Host:A2A:PublicBaseUrl` goes before it. */
const address = {
  host: header('Host that the caller addressed'),
  'x-forwarded-host': header('Host that the caller addressed, as reported by a proxy'),
  'x-forwarded-proto': header("Scheme of the caller's request to the proxy"),
};

export const a2aOperations = defineOperations({
  card: {
    ...common,
    role: 'Reader',
    method: 'GET',
    path: '/a2a/{agent}/.well-known/agent-card.json',
    summary: 'Show the card of an agent that other agents may call',
    description:
      'Agent2Agent clients read the card before a call: name, skill, addresses, versions and credentials, but never instructions, model or tools. With `Host:A2A:PublicCards` no credential is needed.',
    headers: Type.Object({
      'a2a-version': version,
      'if-none-match': header('ETag of the card that the caller has'),
      ...address,
    }),
    responses: { 200: AgentCard, 304: null },
    errors: ['not-found'],
  },
  call: {
    ...common,
    role: 'Operator',
    method: 'POST',
    path: '/a2a/{agent}',
    ownProtocol: true,
    summary: 'Call an agent over the Agent2Agent protocol',
    description:
      'Takes one JSON-RPC 2.0 request: a message starts a run, which is its task, and a caller sees only the tasks that its own credential created. Protocol errors have status 200.',
    headers: Type.Object({
      'a2a-version': version,
      'a2a-extensions': header('Protocol extensions that the caller requests'),
      'x-a2a-extensions': header('The same, for version 0.3'),
      'last-event-id': header('With the extension for positions: the position after which a stream continues'),
      accept: header('text/event-stream for methods that stream, else application/json'),
      'content-type': header('application/json'),
      ...address,
    }),
    responses: { 200: A2AAnswer, 400: A2AAnswer },
    stream: A2AAnswer,
    errors: [
      'not-found',
      'not-acceptable',
      'payload-too-large',
      'unsupported-media-type',
      'run-not-allowed',
      'session-owner-required',
      'quota-exceeded',
      'run-recording-disabled',
      'draining',
      'emergency-stopped',
      'store-unavailable',
    ],
  },
});
