import { minuteMs, secondMs } from '../duration.ts';
import { bytes, decimal, duration, int, ratio } from '../number-kinds.ts';
import { flag, group, mapOf, openGroup, optional, planned, secretSection, setting } from '../schema-nodes.ts';
import { keyPrefix, text } from '../text-kinds.ts';

const price = (doc: string) => optional(decimal({ min: 0, max: 1_000_000_000 }), doc);

const tokenPrice = group('Prices of one model, in the currency above. Input, Output or both are needed.', {
  Input: price('A million input tokens.'),
  Output: price('A million output tokens; reasoning counts as output.'),
  CachedInput: price('A million input tokens that the provider had cached. Null: as Input.'),
});

const voicePrice = group('Prices of one speech or audio model.', {
  PerMillionCharacters: price('A million characters of speech.'),
  PerMinute: price('A minute of audio.'),
});

const imagePrice = group('Price of one image model.', {
  PerImage: price('One image.'),
});

/** How model calls are protected, checked and priced. */
export const modelSettings = {
  CircuitBreaker: group('Calls to a provider that keeps failing are refused at once.', {
    Enabled: flag(true, 'Whether calls are ever refused.'),
    FailureThreshold: setting(int({ min: 1 }), 5, 'Failures in a row from which on calls are refused.'),
    BreakDuration: setting(duration(), 30 * secondMs, 'Time after which one call may try again.'),
  }),
  Health: group('Health of model providers.', {
    CacheTtl: setting(duration(), 60 * secondMs, 'Age up to which a result is used again.'),
    BackgroundInterval: optional(
      duration({ min: 5 * secondMs }),
      'Pause between checks that nobody asked for. Null: none.',
    ),
  }),
  Preflight: group('Check of the context window before a run starts.', {
    Enabled: flag(false, 'A prompt that cannot fit is refused before the model is called.'),
    ReserveRatio: setting(ratio({ belowOne: true }), 0.2, 'Share of the window that is left to the answer.'),
  }),
  ModelConcurrency: group('Model calls side by side.', {
    MaxConcurrentCallsPerProvider: optional(
      int({ min: 1 }),
      'Calls in progress for each provider; others wait. Null: unlimited.',
    ),
  }),
  ModelAnswers: group('What one answer of a model provider may take. Beyond it the call fails.', {
    MaxBytes: setting(
      bytes({ min: 65_536, max: 67_108_864 }),
      8_388_608,
      'Size of a whole answer; of a streamed one, of the text, reasoning and tool calls in it.',
    ),
    MaxStreamBytes: setting(
      bytes({ min: 65_536, max: 1_073_741_824 }),
      268_435_456,
      'Size of a streamed answer as it is sent, with the framing of its events.',
    ),
    StallTimeout: setting(
      duration({ min: secondMs }),
      10 * minuteMs,
      "Time in which a streamed answer must add something. A whole answer must be there by then, unless its provider's Timeout says otherwise.",
    ),
  }),
  Pricing: openGroup(
    "What models cost. The price of a model in a provider's Models list comes first; there are no built-in prices.",
    {
      Currency: optional(text(), 'Label of every cost, such as USD. Nothing is converted.'),
      Voice: planned(
        'voice',
        mapOf(
          '{provider}',
          mapOf('{model}', voicePrice, 'Models of a provider.'),
          'Speech and audio prices by provider.',
        ),
      ),
      Images: planned(
        'images',
        mapOf('{provider}', mapOf('{model}', imagePrice, 'Models of a provider.'), 'Image prices by provider.'),
      ),
    },
    {
      Models: mapOf('{provider}', mapOf('{model}', tokenPrice, 'Models of a provider.'), 'Token prices by provider.'),
    },
  ),
  ProviderKeys: secretSection(1, 'Credentials that tenants bind to providers.'),
  TenantProviders: group('Provider credentials of tenants.', {
    AllowedConfigurationPrefix: setting(
      keyPrefix(),
      'Service:ProviderKeys:',
      'Where the key that a tenant names must lie.',
    ),
  }),
};
