type Maybe<T> = T | null | undefined;

/** One entry of a `Models` list. Prices are decimals per million tokens. */
export interface ModelEntrySettings {
  readonly Name: string;
  readonly DisplayName?: Maybe<string>;
  readonly ContextWindowTokens?: Maybe<number>;
  readonly MaxOutputTokens?: Maybe<number>;
  readonly SupportsStreaming?: Maybe<boolean>;
  readonly SupportsTools?: Maybe<boolean>;
  readonly SupportsReasoning?: Maybe<boolean>;
  readonly SupportsStructuredOutput?: Maybe<boolean>;
  readonly InputCostPerMillionTokens?: Maybe<number>;
  readonly OutputCostPerMillionTokens?: Maybe<number>;
  readonly CachedInputCostPerMillionTokens?: Maybe<number>;
}

export interface ConnectionSettings {
  readonly ApiKey?: Maybe<string>;
  readonly Endpoint?: Maybe<string>;
  /** Milliseconds; null leaves the limits of the HTTP client. */
  readonly Timeout?: Maybe<number>;
  readonly DisplayName?: Maybe<string>;
  readonly Models?: Maybe<readonly ModelEntrySettings[]>;
}

export interface OpenAISettings extends ConnectionSettings {
  readonly DefaultModel?: Maybe<string>;
  readonly Organization?: Maybe<string>;
}

export interface CompatibleSettings extends OpenAISettings {
  readonly EnableResponsesSurface?: Maybe<boolean>;
}

export interface AnthropicSettings extends ConnectionSettings {
  readonly DefaultModel?: Maybe<string>;
  readonly DefaultMaxOutputTokens?: Maybe<number>;
  readonly MaxRetries?: Maybe<number>;
}

export interface GoogleSettings extends ConnectionSettings {
  readonly DefaultModel?: Maybe<string>;
  readonly ApiVersion?: Maybe<string>;
}

export interface AzureOpenAISettings extends ConnectionSettings {
  readonly DefaultDeployment?: Maybe<string>;
  readonly Audience?: Maybe<string>;
}

export interface ScriptedSettings {
  readonly File?: Maybe<string>;
}

/** The `Providers` section of the configuration; a section that exists registers its provider. */
export interface ModelProviderSettings {
  readonly OpenAI?: Maybe<OpenAISettings>;
  readonly Compatible?: Maybe<Readonly<Record<string, Maybe<CompatibleSettings>>>>;
  readonly Anthropic?: Maybe<AnthropicSettings>;
  readonly Google?: Maybe<GoogleSettings>;
  readonly AzureOpenAI?: Maybe<AzureOpenAISettings>;
  readonly Scripted?: Maybe<Readonly<Record<string, Maybe<ScriptedSettings>>>>;
}
