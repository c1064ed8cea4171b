import { minuteMs, secondMs } from '../duration.ts';
import { duration, int } from '../number-kinds.ts';
import { flag, group, optional, plannedGroup, section, setting } from '../schema-nodes.ts';
import { text, timeZone } from '../text-kinds.ts';
import { listOf, oneOf, someOf } from '../value-kind.ts';

const patternGuard = section('The built-in guard. The section registers it, even when it is empty ({}).', {
  DeniedTerms: setting(
    listOf(text({ max: 256 }), { max: 1000 }),
    [],
    'Terms that block a text, in any case and spacing.',
  ),
  MaskedPii: setting(
    someOf(['Email', 'PhoneNumber', 'CreditCard', 'Iban', 'IpAddress']),
    [],
    'Personal data that is masked.',
  ),
  MaskReplacement: setting(text({ max: 64, empty: true }), '[redacted]', 'What a masked part becomes.'),
});

/** What holds callers and content back. */
export const limitSettings = {
  Quotas: group('Stored limits of use.', {
    Enabled: flag(true, 'Limits count. Without a stored one nothing is refused.'),
    TimeZone: setting(timeZone(), 'UTC', 'Zone in which days and months begin.'),
    ThresholdPercents: setting(
      listOf(int({ min: 1, max: 100 }), { unique: true }),
      [80, 100],
      'Shares of a limit at which a notice goes out.',
    ),
    AllowOnStoreFailure: flag(true, 'Runs are admitted while the counters cannot be read.'),
    Strict: flag(
      false,
      'No model call may pass a limit of tokens or cost: what is left bounds its answer, and a run that needs more fails.',
    ),
    PublishThresholdToRunStream: flag(false, 'The notice is an event of the run as well.'),
  }),
  RateLimit: group('Requests in a stretch of time, counted by this process.', {
    Enabled: flag(false, 'Requests are limited.'),
    PermitLimit: setting(int({ min: 1 }), 60, 'Requests in one window.'),
    Window: setting(duration(), minuteMs, 'Length of a window.'),
    QueueLimit: setting(int({ min: 0 }), 0, 'Requests that may wait for the next window.'),
    Partition: setting(oneOf(['Tenant', 'ApiKey', 'RemoteAddress']), 'Tenant', 'What has a count of its own.'),
  }),
  Streams: group(
    'Answers that stay open: events of runs, streams of /v1, of MCP and of A2A. Counted by this process; one more is refused (429).',
    {
      MaxPerCaller: setting(int({ min: 1 }), 1000, 'Streams that one API key, or one other caller, has open at once.'),
      MaxPerTenant: setting(int({ min: 1 }), 5000, 'Streams that all callers of a tenant have open at once.'),
    },
  ),
  Idempotency: group('Requests with an Idempotency-Key.', {
    Enabled: flag(true, 'A repeated request gets the first answer again. Off: such requests are refused (501).'),
    MaxKeyLength: setting(int({ min: 1, max: 1024 }), 255, 'Characters of a key; longer ones are refused.'),
  }),
  ContentGuard: group('Inspection of what goes into a model and comes out of it.', {
    InspectInput: flag(true, 'Input is inspected when a guard is registered.'),
    InspectOutput: flag(true, 'Output is inspected when a guard is registered.'),
    BufferStreamingOutput: flag(true, 'Streamed text is held back until it has been inspected.'),
    GuardTimeout: setting(duration(), 5 * secondMs, 'Time one guard may take for one text.'),
    Pattern: patternGuard,
  }),
  Knowledge: plannedGroup('knowledge', 'Documents that agents search.', {
    Dimensions: setting(
      int({ min: 1, max: 8192 }),
      1536,
      'Length of a vector; at most 4000 on PostgreSQL. The stored column has it too.',
    ),
    ChunkSize: setting(int({ min: 100, max: 100_000 }), 1000, 'Characters of one piece of a document.'),
    ChunkOverlap: setting(int({ min: 0 }), 100, 'Characters that two pieces share; less than half of ChunkSize.'),
    MaxResults: setting(int({ min: 1, max: 100 }), 5, 'Hits of a search that asks for no number.'),
    EmbeddingProvider: optional(text(), 'Provider of the vectors, together with EmbeddingModel.'),
    EmbeddingModel: optional(text(), 'Model of the vectors, together with EmbeddingProvider.'),
    MaxChunksPerDocument: setting(int({ min: 1 }), 2000, 'Pieces one document may have.'),
  }),
};
