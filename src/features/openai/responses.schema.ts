import Type, { type Static } from 'typebox';
import { JsonValue, nullable } from '../../contract/schema.ts';
import { anything, count, Metadata, maxEntries, maxListedTools, maybe, open, refusedMembers } from './openai.schema.ts';

const InputPart = open({
  type: Type.String({ description: '`input_text`, `input_image`, `input_file`, `input_audio` or `output_text`' }),
  text: maybe(Type.String()),
  refusal: maybe(Type.String()),
  image_url: maybe(Type.String({ description: 'A `data:` URL' })),
  file_id: maybe(Type.String({ description: 'ID of an attachment' })),
  file_data: maybe(Type.String()),
  file_url: maybe(Type.String()),
  filename: maybe(Type.String()),
  input_audio: Type.Optional(open({ data: Type.String(), format: Type.String() })),
});
export type InputPart = Static<typeof InputPart>;

export const InputItem = open(
  {
    type: maybe(
      Type.String({
        description:
          '`message`, `function_call`, `function_call_output`, `custom_tool_call`, `custom_tool_call_output`, `tool_search_call`, `tool_search_output` or `item_reference`',
      }),
    ),
    id: maybe(Type.String({ description: 'For `item_reference`: an item of a stored response' })),
    role: maybe(Type.String()),
    content: maybe(Type.Union([Type.String(), Type.Array(InputPart, { maxItems: maxEntries })])),
    call_id: maybe(Type.String()),
    name: maybe(Type.String()),
    namespace: maybe(Type.String({ description: 'For `function_call`: the namespace of its function' })),
    arguments: anything(),
    tools: anything(),
    input: maybe(Type.String({ description: 'For `custom_tool_call`' })),
    output: maybe(Type.Union([Type.String(), Type.Array(InputPart, { maxItems: maxEntries })])),
  },
  { title: 'OpenAiInputItem' },
);
export type InputItem = Static<typeof InputItem>;

export const ResponseRequest = open(
  {
    model: maybe(Type.String({ description: 'Name of an agent' })),
    input: Type.Optional(Type.Union([Type.String(), Type.Array(InputItem, { maxItems: maxEntries })])),
    instructions: maybe(Type.String({ description: "Appended to the agent's own instructions" })),
    stream: maybe(Type.Boolean()),
    store: maybe(Type.Boolean({ description: 'False: neither a session nor a response is stored; default true' })),
    conversation: maybe(Type.Union([Type.String(), open({ id: Type.String() })])),
    previous_response_id: maybe(Type.String()),
    max_output_tokens: maybe(Type.Integer()),
    metadata: maybe(Metadata),
    tools: maybe(
      Type.Array(
        open({
          type: Type.String(),
          name: maybe(Type.String()),
          description: maybe(Type.String()),
          parameters: anything(),
          strict: maybe(Type.Boolean()),
          format: anything(),
          tools: anything(),
        }),
        { maxItems: maxListedTools },
      ),
    ),
    text: Type.Optional(nullable(open({ format: anything() }))),
    ...refusedMembers,
  },
  { title: 'OpenAiResponseRequest' },
);
export type ResponseRequest = Static<typeof ResponseRequest>;

export const ResponseUsage = Type.Object(
  {
    input_tokens: count(),
    output_tokens: count(),
    total_tokens: count(),
    input_tokens_details: Type.Object({ cached_tokens: count() }),
    output_tokens_details: Type.Object({ reasoning_tokens: count() }),
  },
  { title: 'OpenAiResponseUsage' },
);
export type ResponseUsage = Static<typeof ResponseUsage>;

/** Of an output, an input or a conversation; which members there are depends on the type. */
export const OpenAiItem = Type.Object(
  { id: Type.String(), type: Type.String() },
  {
    title: 'OpenAiItem',
    additionalProperties: true,
    description:
      '`message`, `function_call`, `custom_tool_call`, `tool_search_call`, `function_call_output` or `mcp_call`, which is a tool that the service ran',
  },
);

type Status = 'in_progress' | 'completed' | 'incomplete';

/** An item as it is sent. */
export type Item =
  | { type: 'message'; id: string; role: string; status: Status; content: readonly unknown[] }
  | {
      type: 'function_call';
      id: string;
      call_id: string;
      name: string;
      namespace?: string;
      arguments: string;
      status: Status;
    }
  | {
      type: 'tool_search_call';
      id: string;
      call_id: string;
      execution: 'client';
      arguments: unknown;
      status: Status;
    }
  | { type: 'custom_tool_call'; id: string; call_id: string; name: string; input: string; status: Status }
  | { type: 'function_call_output'; id: string; call_id: string; output: string; status: Status }
  | {
      type: 'mcp_call';
      id: string;
      server_label: string;
      name: string;
      arguments: string;
      output: string | null;
      error: string | null;
      status: Status | 'failed';
    };

const responseStatuses = ['in_progress', 'completed', 'incomplete', 'failed', 'cancelled'] as const;

export const OpenAiResponse = Type.Object(
  {
    id: Type.String({ description: '`resp_` and the id of the run' }),
    object: Type.Literal('response'),
    created_at: Type.Integer(),
    completed_at: nullable(Type.Integer()),
    status: Type.Enum([...responseStatuses]),
    error: nullable(Type.Object({ code: Type.String(), message: Type.String() })),
    incomplete_details: nullable(Type.Object({ reason: Type.String() })),
    model: Type.String(),
    output: Type.Array(OpenAiItem),
    usage: nullable(ResponseUsage),
    from_cache: Type.Optional(
      Type.Literal(true, { description: 'The response came from the response cache; no provider was called' }),
    ),
    conversation: nullable(Type.Object({ id: Type.String() })),
    previous_response_id: nullable(Type.String()),
    instructions: Type.Null(),
    metadata: Metadata,
    store: Type.Boolean(),
    background: Type.Literal(false),
    max_output_tokens: nullable(Type.Integer()),
    temperature: nullable(Type.Number()),
    top_p: nullable(Type.Number()),
    reasoning: Type.Object({ effort: nullable(Type.String()), summary: Type.Null() }),
    text: Type.Object({ format: JsonValue }),
    parallel_tool_calls: Type.Boolean(),
    tool_choice: JsonValue,
    tools: Type.Array(JsonValue),
    truncation: Type.Literal('disabled'),
    user: Type.Null(),
    presence_penalty: Type.Number(),
    frequency_penalty: Type.Number(),
    top_logprobs: Type.Literal(0),
    max_tool_calls: Type.Null(),
    service_tier: Type.Literal('default'),
    safety_identifier: Type.Null(),
    prompt_cache_key: Type.Null(),
  },
  { title: 'OpenAiResponse' },
);
export type OpenAiResponse = Static<typeof OpenAiResponse>;

export const OpenAiResponseEvent = Type.Object(
  { type: Type.String(), sequence_number: Type.Integer({ minimum: 0 }) },
  { title: 'OpenAiResponseEvent', additionalProperties: true, description: 'Further properties depend on the type' },
);

export const OpenAiItemList = Type.Object(
  {
    object: Type.Literal('list'),
    data: Type.Array(OpenAiItem),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
    has_more: Type.Boolean(),
  },
  { title: 'OpenAiItemList' },
);

export const OpenAiConversation = Type.Object(
  {
    id: Type.String(),
    object: Type.Literal('conversation'),
    created_at: Type.Integer(),
    metadata: Metadata,
  },
  { title: 'OpenAiConversation' },
);
