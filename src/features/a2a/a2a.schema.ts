import Type, { type Static, type TProperties } from 'typebox';
import { JsonValue, oneOf, Time } from '../../contract/schema.ts';

export type ProtocolVersion = '1.0' | '0.3';

// Members that this version does not know are left alone, as the protocol asks.
const open = <const P extends TProperties>(properties: P, title?: string) =>
  Type.Object(properties, title === undefined ? {} : { title });

const text = () => Type.Optional(Type.String());
const modes = Type.Array(Type.String());
const Metadata = Type.Record(Type.String(), JsonValue);

/** The last two are never sent: nobody can be asked inside a task. */
const taskStates = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
] as const;
export type TaskState = (typeof taskStates)[number];

const maxParts = 50;

/** Exactly one of text, raw, url and data. */
const Part = open({
  text: text(),
  raw: Type.Optional(Type.String({ description: 'Base64' })),
  url: text(),
  data: Type.Optional(JsonValue),
  filename: text(),
  mediaType: text(),
  metadata: Type.Optional(Metadata),
});
export type Part = Static<typeof Part>;

const Message = open({
  messageId: Type.String({ minLength: 1, maxLength: 256 }),
  contextId: text(),
  taskId: text(),
  role: oneOf(['ROLE_USER', 'ROLE_AGENT']),
  parts: Type.Array(Part, { minItems: 1, maxItems: maxParts }),
  metadata: Type.Optional(Metadata),
  extensions: Type.Optional(Type.Array(JsonValue)),
  referenceTaskIds: Type.Optional(Type.Array(Type.String())),
});

export const SendMessageRequest = open({
  message: Message,
  configuration: Type.Optional(
    open({
      acceptedOutputModes: Type.Optional(modes),
      historyLength: Type.Optional(Type.Integer({ minimum: 0 })),
      returnImmediately: Type.Optional(Type.Boolean()),
      taskPushNotificationConfig: Type.Optional(JsonValue),
    }),
  ),
  metadata: Type.Optional(Metadata),
});
export type SendMessageRequest = Static<typeof SendMessageRequest>;

export const GetTaskRequest = open({
  id: Type.String({ minLength: 1 }),
  historyLength: Type.Optional(Type.Integer({ minimum: 0 })),
});
export type GetTaskRequest = Static<typeof GetTaskRequest>;

export const TaskIdRequest = open({ id: Type.String({ minLength: 1 }) });
export type TaskIdRequest = Static<typeof TaskIdRequest>;

export const ListTasksRequest = open({
  contextId: text(),
  status: Type.Optional(oneOf([...taskStates, 'TASK_STATE_UNSPECIFIED'])),
  pageSize: Type.Optional(Type.Integer()),
  pageToken: text(),
  historyLength: Type.Optional(Type.Integer({ minimum: 0 })),
  statusTimestampAfter: Type.Optional(Time),
  includeArtifacts: Type.Optional(Type.Boolean()),
});
export type ListTasksRequest = Static<typeof ListTasksRequest>;

export interface TaskMessage {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId: string;
  readonly role: 'ROLE_USER' | 'ROLE_AGENT';
  readonly parts: readonly Part[];
}

export interface Artifact {
  readonly artifactId: string;
  readonly name: string;
  readonly parts: readonly Part[];
}

export interface TaskStatus {
  readonly state: TaskState;
  readonly message?: TaskMessage;
  /** RFC 3339 with milliseconds. */
  readonly timestamp: string;
}

type UpdateMetadata = Readonly<Record<string, string | number>>;

export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly artifacts?: readonly Artifact[];
  readonly history?: readonly TaskMessage[];
  readonly metadata: UpdateMetadata;
}

export interface StatusUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly metadata?: UpdateMetadata;
}

export interface ArtifactUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact;
  readonly append: boolean;
  readonly lastChunk: boolean;
  readonly metadata?: UpdateMetadata;
}

/** One event of a stream. */
export type StreamResponse =
  | { readonly task: Task }
  | { readonly statusUpdate: StatusUpdate }
  | { readonly artifactUpdate: ArtifactUpdate };

export interface ListTasksResponse {
  readonly tasks: readonly Task[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  /** Tasks of this page. */
  readonly pageSize: number;
  readonly totalSize: number;
}

const Scheme = Type.Union([
  open({ type: Type.Literal('http'), scheme: Type.Literal('Bearer') }),
  open({ type: Type.Literal('apiKey'), in: Type.Literal('header'), name: Type.String() }),
  open({ type: Type.Literal('openIdConnect'), openIdConnectUrl: Type.String() }),
  open({ httpAuthSecurityScheme: open({ scheme: Type.Literal('Bearer') }) }),
  open({ apiKeySecurityScheme: open({ location: Type.Literal('header'), name: Type.String() }) }),
  open({ openIdConnectSecurityScheme: open({ openIdConnectUrl: Type.String() }) }),
]);
export type SecurityScheme = Static<typeof Scheme>;

const Skill = open({
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  tags: Type.Array(Type.String()),
  examples: Type.Optional(Type.Array(Type.String())),
});

export const AgentCard = open(
  {
    name: Type.String(),
    description: Type.String(),
    version: Type.String({ description: 'Version of the definition' }),
    provider: Type.Optional(open({ organization: Type.String(), url: Type.String() })),
    supportedInterfaces: Type.Array(
      open({ url: Type.String(), protocolBinding: Type.Literal('JSONRPC'), protocolVersion: oneOf(['1.0', '0.3']) }),
    ),
    capabilities: open({
      streaming: Type.Literal(true),
      pushNotifications: Type.Literal(false),
      extendedAgentCard: Type.Literal(false),
      extensions: Type.Array(open({ uri: Type.String(), description: Type.String(), required: Type.Literal(false) })),
    }),
    securitySchemes: Type.Record(Type.String(), Scheme, { description: 'Format depends on the version of the card' }),
    securityRequirements: Type.Optional(
      Type.Array(open({ schemes: Type.Record(Type.String(), open({ list: Type.Array(Type.String()) })) }), {
        description: 'Only in cards of version 1.0',
      }),
    ),
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: Type.Array(Skill),
    documentationUrl: text(),
    iconUrl: text(),
    url: Type.Optional(Type.String({ description: 'Only in cards of version 0.3, like the next four properties' })),
    preferredTransport: Type.Optional(Type.Literal('JSONRPC')),
    protocolVersion: Type.Optional(Type.Literal('0.3.0')),
    security: Type.Optional(Type.Array(Type.Record(Type.String(), Type.Array(Type.String())))),
    supportsAuthenticatedExtendedCard: Type.Optional(Type.Literal(false)),
  },
  'AgentCard',
);
export type AgentCard = Static<typeof AgentCard>;

/** The answer of a call, in whichever version it was made: a result or an error. */
export const A2AAnswer = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Union([Type.String(), Type.Number(), Type.Null()]),
    result: Type.Optional(JsonValue),
    error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(JsonValue) })),
  },
  { title: 'A2AAnswer' },
);
