import Type, { type Static, type TProperties } from 'typebox';
import { JsonValue, nullable } from '../../contract/schema.ts';

/**
 * Messages of a chat, items of a response, and parts or calls of either. The largest context windows take about a million tokens,
 * which as many messages of 100 tokens fill; agents that program for a day send some thousand items.
 */
export const maxEntries = 10_000;
/** Of the tools of a request, several times what providers take. */
export const maxListedTools = 1000;

/** Files of a request, each of which becomes an attachment: as many images as OpenAI takes. */
export const maxFiles = 500;

/** Members that are not named are ignored, as this API has always had it. */
export const open = <const P extends TProperties>(properties: P, options: Record<string, unknown> = {}) =>
  Type.Object(properties, options);
export const maybe = <T extends Parameters<typeof nullable>[0]>(schema: T, options: Record<string, unknown> = {}) =>
  Type.Optional(nullable(schema, options));
export const count = () => nullable(Type.Integer());

export const Metadata = Type.Record(Type.String(), Type.String(), {
  maxProperties: 1000,
  description: 'At most 16 pairs; `param.<name>` fills the parameter of that name of the agent',
});
export type Metadata = Static<typeof Metadata>;

/** What nobody has to leave out and nothing comes of, or what is refused with the name of the member. */
export const anything = () => Type.Optional(JsonValue);

/** Members that requests of both kinds may have and that would change what is asked for. */
export const refusedMembers = {
  modalities: anything(),
  audio: anything(),
  prediction: anything(),
  functions: anything(),
  function_call: anything(),
  tool_choice: anything(),
  background: anything(),
  prompt: anything(),
  context_management: anything(),
  logprobs: anything(),
  web_search_options: anything(),
};

export const OpenAiModel = Type.Object(
  {
    id: Type.String({ description: 'Name of the agent, or provider and model' }),
    object: Type.Literal('model'),
    created: Type.Integer({ description: 'Seconds since 1970: the last change, or the start of the process' }),
    owned_by: Type.String({ description: '`code` or `database`, and of a model its provider' }),
  },
  { title: 'OpenAiModel' },
);
export type OpenAiModel = Static<typeof OpenAiModel>;

export const OpenAiModelList = Type.Object(
  { object: Type.Literal('list'), data: Type.Array(OpenAiModel) },
  { title: 'OpenAiModelList' },
);

export const OpenAiDeleted = Type.Object(
  {
    id: Type.String(),
    object: Type.Union([Type.Literal('response'), Type.Literal('conversation.deleted')]),
    deleted: Type.Literal(true),
  },
  { title: 'OpenAiDeleted' },
);
