import { bool, decimal, duration, int } from '../number-kinds.ts';
import {
  flag,
  group,
  groupList,
  mapOf,
  type NameRule,
  optional,
  required,
  secret,
  section,
  setting,
} from '../schema-nodes.ts';
import { credential, path, text, url } from '../text-kinds.ts';
import { nullable, oneOf } from '../value-kind.ts';

const price = (doc: string) => optional(decimal({ min: 0, max: 1_000_000_000 }), doc);
const tokens = (doc: string) => optional(int({ min: 1 }), doc);

const modelEntry = group('A model that the catalog lists.', {
  Name: required(text({ max: 128 }), 'Name as the provider knows it; once in a list.'),
  DisplayName: optional(text(), 'Name for people.'),
  ContextWindowTokens: tokens('Size of the context window.'),
  MaxOutputTokens: tokens('Longest answer.'),
  SupportsStreaming: flag(true, 'Can answer in parts.'),
  SupportsTools: flag(true, 'Can call tools.'),
  SupportsReasoning: flag(false, 'Reasons before it answers.'),
  SupportsStructuredOutput: optional(
    bool(),
    'Can follow a JSON format. Null: unknown; false: such agents are refused.',
  ),
  SupportsEmbeddings: flag(false, 'Makes embeddings, and no answers.'),
  InputCostPerMillionTokens: price('Price of a million input tokens.'),
  OutputCostPerMillionTokens: price('Price of a million output tokens.'),
  CachedInputCostPerMillionTokens: price('Price of a million cached input tokens.'),
});

const common = {
  ApiKey: secret(nullable(credential()), null, 'Credential of calls for which the tenant has none of its own.'),
  DisplayName: optional(text(), 'Name for people.'),
  Timeout: optional(
    duration(),
    'Time one call may take; for a stream, until the first part and between parts. Null: as the client library has it.',
  ),
  Models: groupList(modelEntry, 'Catalog of the provider. Other models can be used all the same.'),
};

const defaultModel = {
  DefaultModel: optional(text(), 'Model when none is named, and the one that health checks look for.'),
};
const endpoint = { Endpoint: optional(url(), 'Address of the API. Null: that of the vendor.') };
const organization = { Organization: optional(text(), 'Organization that the calls are billed to.') };

const providerName: NameRule = {
  pattern: /^[a-z0-9][a-z0-9-]{0,31}$/,
  expected: '1 to 32 of a-z 0-9 - that do not start with a hyphen',
};

export const providerSettings = {
  Providers: group('Model providers. A section that exists registers its provider, even when it is empty ({}).', {
    OpenAI: section('Provider "openai" (chat completions) and "openai-responses" (Responses).', {
      ...common,
      ...defaultModel,
      ...endpoint,
      ...organization,
    }),
    Compatible: mapOf(
      '{name}',
      group('Provider of this name at an endpoint that speaks chat completions.', {
        ...common,
        ...defaultModel,
        ...endpoint,
        ...organization,
        ReasoningReplay: setting(
          oneOf(['Auto', 'None', 'ReasoningContent', 'Reasoning', 'ReasoningDetails']),
          'Auto',
          'Member in which the reasoning beside tool calls goes back to the endpoint. Auto: as reasoning_content or reasoning_details where the endpoint has sent that; None: it does not.',
        ),
        EnableResponsesSurface: flag(false, 'The endpoint has the Responses API too: also registers {name}-responses.'),
      }),
      'Compatible endpoints by name.',
      providerName,
    ),
    Anthropic: section('Provider "anthropic" (messages).', {
      ...common,
      ...defaultModel,
      ...endpoint,
      DefaultMaxOutputTokens: setting(int({ min: 1 }), 4096, 'Longest answer when the agent sets none.'),
      MaxRetries: optional(int({ min: 0 }), 'Repetitions of a failed call. Null: as the client library has it.'),
    }),
    Google: section('Provider "google" (generative language).', {
      ...common,
      ...defaultModel,
      ...endpoint,
      ApiVersion: optional(text(), 'Version in the path of the API. Null: as the client library has it.'),
    }),
    AzureOpenAI: section(
      'Provider "azure-openai"; models are the names of deployments. A module may supply the token instead of ApiKey.',
      {
        ...common,
        Endpoint: required(url(), 'Address of the resource.'),
        DefaultDeployment: optional(text(), 'Deployment when none is named.'),
        Audience: optional(text(), 'Audience handed to the token function of a module.'),
      },
    ),
    Scripted: mapOf(
      '{name}',
      group('Provider of this name that answers from a script, without a network: for tests and demonstrations.', {
        File: required(path(), 'YAML script of its answers.'),
      }),
      'Scripted providers by name.',
      providerName,
    ),
  }),
};
