import { minuteMs, secondMs } from '../duration.ts';
import { bytes, duration, int } from '../number-kinds.ts';
import { flag, group, optional, plannedGroup, secret, secretSection, setting } from '../schema-nodes.ts';
import { credential, imageSize, keyPrefix, mediaType, text, url } from '../text-kinds.ts';
import { nullable, oneOf } from '../value-kind.ts';

const conversation = group('Spoken conversations over a WebSocket.', {
  MaxConcurrentConnectionsPerTenant: setting(int({ min: 1 }), 5, 'Connections of a tenant in this process.'),
  MaxConnectionDuration: setting(duration(), 30 * minuteMs, 'Longest connection.'),
  IdleTimeout: setting(duration(), 2 * minuteMs, 'Silence that ends a connection.'),
  MaxUtteranceDuration: setting(duration(), 60 * secondMs, 'Longest stretch of speech.'),
  MaxUtteranceBytes: setting(bytes(), 8_388_608, 'Size of a stretch of speech.'),
  PersistAudio: flag(false, 'What was spoken is kept as attachments.'),
  VoiceId: optional(text(), 'Voice of conversations. Null: the default voice.'),
  OutputMediaType: setting(mediaType(), 'audio/mpeg', 'Format of streamed speech.'),
  InputSampleRate: setting(int({ min: 8000, max: 48_000 }), 16_000, 'Samples a second of incoming audio (Hz).'),
  MaxSpokenCharactersPerTurn: setting(int({ min: 1 }), 5000, 'Characters of an answer that are spoken.'),
});

const live = group('Live sessions with a model that listens and speaks.', {
  Provider: optional(text(), 'Provider of live sessions. Null: there are none.'),
  Model: optional(text(), 'Model of live sessions.'),
  VoiceId: optional(text(), 'Voice of live sessions.'),
  ApiKey: secret(nullable(credential()), null, 'Credential of the live provider.'),
  MaxConcurrentSessionsPerTenant: setting(int({ min: 1 }), 3, 'Live sessions of a tenant.'),
  MaxConcurrentDelegations: setting(int({ min: 1 }), 2, 'Agents a live session has at work side by side.'),
  MaxProgressMessages: setting(int({ min: 1 }), 12, 'Progress reports of one such agent.'),
  MaxDuration: setting(duration(), 30 * minuteMs, 'Longest live session.'),
  PendingTimeout: setting(duration(), 2 * minuteMs, 'Time until a session that was asked for must begin.'),
  DelegationTimeout: setting(duration(), 2 * minuteMs, 'Time such an agent may take.'),
  TranscriptMaxCharacters: setting(int({ min: 0 }), 20_000, 'Characters of the transcript that such an agent gets.'),
  TranscriptMaxEntries: setting(int({ min: 0 }), 40, 'Entries of the transcript that such an agent gets.'),
  PersistTranscript: flag(true, 'Spoken turns become part of the session.'),
});

/** Features that build on agents: MCP servers, workflows, speech, images. */
export const extensionSettings = {
  Mcp: group('MCP servers whose tools agents use.', {
    Enabled: flag(true, 'Servers are connected to.'),
    RefreshInterval: setting(duration(), 5 * minuteMs, 'Pause between looks for changed tools.'),
    ConnectionTimeout: setting(duration(), 30 * secondMs, 'Time for connecting and listing.'),
    MaxToolsPerServer: setting(int({ min: 1 }), 100, 'Tools taken from one server.'),
    MaxResourceBytesPerResource: setting(bytes(), 65_536, 'Text of one resource that is read.'),
    MaxResourceBytesTotal: setting(bytes(), 262_144, 'Text of all resources in a run.'),
    OAuthCallbackBaseUri: optional(url(), 'Public address of this service, for people who come back from OAuth.'),
    OAuthTokenStore: setting(
      oneOf(['Memory', 'Database']),
      'Memory',
      'Where OAuth tokens are kept. Memory: in one process, until it ends. Database: encrypted, for all processes.',
    ),
    AllowedConfigurationPrefix: setting(
      keyPrefix(),
      'Service:McpSecrets:',
      'Where the keys that a server record names must lie.',
    ),
  }),
  McpSecrets: secretSection(1, 'Authorization values and OAuth client secrets of MCP servers.'),
  Workflows: plannedGroup('workflows', 'Workflows.', {
    Enabled: flag(true, 'Workflows can run. Off: 501.'),
    EnableCheckpointing: flag(true, 'Progress is saved, as resuming and asking people need it.'),
    MaxConcurrentRuns: setting(int({ min: 1 }), 4, 'Workflow runs side by side in this process.'),
    RunTimeout: setting(duration(), 10 * minuteMs, 'Time one execution may take.'),
    MaxSuperSteps: setting(int({ min: 1 }), 100, 'Steps of one execution.'),
    KeepCheckpointsAfterCompletion: flag(true, 'Saved progress stays until retention removes it.'),
  }),
  Voice: plannedGroup('voice', 'Speech.', {
    Provider: setting(text(), 'elevenlabs', 'Speech provider.'),
    ApiKey: secret(nullable(credential()), null, 'Its credential.'),
    Endpoint: optional(url(), 'Its address. Null: the public one.'),
    DefaultVoiceId: optional(text(), 'Voice when none is named.'),
    SynthesisModelId: optional(text(), 'Model that speaks. Null: as the provider has it.'),
    TranscriptionModelId: optional(text(), 'Model that listens. Null: as the provider has it.'),
    OutputFormat: setting(text(), 'mp3_44100_128', 'Format of speech files.'),
    MaxCharactersPerRequest: setting(int({ min: 1 }), 5000, 'Characters of one speech.'),
    MaxConcurrentRequests: setting(int({ min: 1 }), 2, 'Provider calls of this process side by side.'),
    RequireApproval: flag(false, 'A person decides about each call of a voice tool.'),
    Timeout: optional(duration(), 'Time one provider call may take. Null: 100 seconds.'),
    Conversation: conversation,
    Live: live,
  }),
  Images: plannedGroup('images', 'Images that agents make.', {
    Provider: optional(text(), 'Image provider, together with Model. Null: there are no images.'),
    Model: optional(text(), 'Image model, together with Provider.'),
    DefaultSize: setting(imageSize(), '1024x1024', 'Size when none is asked for.'),
    MaxCount: setting(int({ min: 1, max: 10 }), 4, 'Images of one call.'),
    MaxPromptLength: setting(int({ min: 1 }), 4000, 'Characters of a prompt.'),
    MaxConcurrentRequests: setting(int({ min: 1 }), 2, 'Provider calls side by side.'),
    Timeout: setting(duration(), 2 * minuteMs, 'Time one provider call may take.'),
    RequireApproval: flag(false, 'A person decides about each call of the image tool.'),
  }),
};
