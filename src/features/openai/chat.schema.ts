import Type, { type Static } from 'typebox';
import { JsonValue, nullable } from '../../contract/schema.ts';
import { anything, count, Metadata, maxEntries, maxListedTools, maybe, open, refusedMembers } from './openai.schema.ts';

const ToolCall = open({
  id: Type.String(),
  type: Type.Optional(Type.String()),
  function: open({ name: Type.String(), arguments: Type.String() }),
});
export type ChatToolCall = Static<typeof ToolCall>;

const ChatPart = open({
  type: Type.String({ description: '`text`, `image_url`, `input_audio` or `file`, and of the assistant `refusal`' }),
  text: Type.Optional(Type.String()),
  refusal: maybe(Type.String({ description: 'Of the assistant, as its text' })),
  image_url: Type.Optional(open({ url: Type.String({ description: 'A `data:` URL' }) })),
  input_audio: Type.Optional(open({ data: Type.String(), format: Type.String() })),
  file: Type.Optional(
    open({ file_id: maybe(Type.String()), file_data: maybe(Type.String()), filename: maybe(Type.String()) }),
  ),
});
export type ChatPart = Static<typeof ChatPart>;

export const ChatCompletionMessage = open(
  {
    role: Type.String({ description: '`system`, `developer`, `user`, `assistant` or `tool`' }),
    content: maybe(Type.Union([Type.String(), Type.Array(ChatPart, { maxItems: maxEntries })])),
    name: maybe(Type.String()),
    tool_calls: maybe(Type.Array(ToolCall, { maxItems: maxEntries })),
    tool_call_id: maybe(Type.String()),
    refusal: maybe(Type.String({ description: 'Of the assistant, as its text where it has none' })),
    function_call: anything(),
    audio: anything(),
  },
  { title: 'ChatCompletionMessage' },
);
export type ChatCompletionMessage = Static<typeof ChatCompletionMessage>;

export const ChatCompletionRequest = open(
  {
    model: maybe(Type.String({ description: 'Name of an agent, or provider/model' })),
    messages: Type.Array(ChatCompletionMessage, { maxItems: maxEntries }),
    stream: maybe(Type.Boolean()),
    stream_options: maybe(open({ include_usage: maybe(Type.Boolean()) })),
    max_completion_tokens: maybe(Type.Integer()),
    max_tokens: maybe(Type.Integer()),
    metadata: maybe(Metadata),
    tools: maybe(
      Type.Array(
        open({
          type: Type.String(),
          function: Type.Optional(
            open({
              name: Type.String(),
              description: maybe(Type.String()),
              parameters: anything(),
              strict: maybe(Type.Boolean()),
            }),
          ),
        }),
        { maxItems: maxListedTools },
      ),
    ),
    response_format: Type.Optional(JsonValue),
    n: anything(),
    ...refusedMembers,
  },
  { title: 'ChatCompletionRequest' },
);
export type ChatCompletionRequest = Static<typeof ChatCompletionRequest>;

export const ChatUsage = Type.Object(
  {
    prompt_tokens: count(),
    completion_tokens: count(),
    total_tokens: count(),
    prompt_tokens_details: Type.Object({ cached_tokens: count() }),
    completion_tokens_details: Type.Object({ reasoning_tokens: count() }),
  },
  { title: 'ChatUsage' },
);
export type ChatUsage = Static<typeof ChatUsage>;

export const finishReasons = ['stop', 'length', 'tool_calls', 'content_filter'] as const;
export type ChatFinish = (typeof finishReasons)[number];

export const ChatCompletion = Type.Object(
  {
    id: Type.String({ description: '`chatcmpl-` and the id of the run' }),
    object: Type.Literal('chat.completion'),
    created: Type.Integer(),
    model: Type.String(),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer(),
        message: Type.Object({
          role: Type.Literal('assistant'),
          content: nullable(Type.String()),
          refusal: Type.Null(),
          annotations: Type.Array(JsonValue),
          tool_calls: Type.Optional(Type.Array(ToolCall)),
        }),
        logprobs: Type.Null(),
        finish_reason: Type.String(),
      }),
    ),
    from_cache: Type.Optional(
      Type.Literal(true, { description: 'The answer came from the response cache: no provider was asked' }),
    ),
    usage: nullable(ChatUsage),
  },
  { title: 'ChatCompletion' },
);
export type ChatCompletion = Static<typeof ChatCompletion>;

export const ChatCompletionChunk = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('chat.completion.chunk'),
    created: Type.Integer(),
    model: Type.String(),
    choices: Type.Array(
      Type.Object({
        index: Type.Integer(),
        delta: Type.Object({
          role: Type.Optional(Type.Literal('assistant')),
          content: Type.Optional(Type.String()),
          tool_calls: Type.Optional(Type.Array(JsonValue)),
        }),
        logprobs: Type.Null(),
        finish_reason: nullable(Type.String()),
      }),
    ),
    from_cache: Type.Optional(Type.Literal(true)),
    usage: Type.Optional(nullable(ChatUsage)),
  },
  { title: 'ChatCompletionChunk', description: 'The stream ends with the data `[DONE]`' },
);
