import { hourMs, minuteMs, secondMs } from '../duration.ts';
import { age, bytes, duration, int } from '../number-kinds.ts';
import { flag, group, secretSection, setting } from '../schema-nodes.ts';
import { keyPrefix } from '../text-kinds.ts';
import { listOf } from '../value-kind.ts';

/** What goes out of the service and what comes in beside the API. */
export const networkSettings = {
  Egress: group('Connections to addresses that callers name.', {
    AllowPrivateNetworkTargets: flag(false, 'They may lead into private networks.'),
  }),
  Webhooks: group('Events that are sent to subscribers.', {
    Enabled: flag(true, 'Events are made and sent.'),
    AllowPrivateNetworkTargets: flag(false, 'Subscribers may be in private networks.'),
    AllowInsecureHttp: flag(false, 'Subscribers may use http.'),
    AllowedConfigurationPrefix: setting(
      keyPrefix(),
      'Service:WebhookSecrets:',
      'Where the key that a subscription names must lie.',
    ),
    MaxExtraHeaders: setting(int({ min: 0 }), 20, 'Headers that a subscription may add.'),
    Timeout: setting(duration(), 10 * secondMs, 'Time one attempt may take.'),
    MaxResponseBytes: setting(bytes(), 8192, 'How much of an answer is read.'),
    DisableAfterConsecutiveFailures: setting(int({ min: 1 }), 20, 'Failures in a row that switch a subscription off.'),
    RetryDelays: setting(
      listOf(age()),
      [minuteMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 6 * hourMs],
      'Pauses before each further attempt. Empty: one attempt.',
    ),
    SignatureTolerance: setting(age(), 5 * minuteMs, 'How far the time of a signature may be off; for triggers too.'),
  }),
  WebhookSecrets: secretSection(3, 'Secrets that sign webhooks.'),
  Triggers: group('Calls from outside that start an agent.', {
    AllowedConfigurationPrefix: setting(
      keyPrefix(),
      'Service:TriggerSecrets:',
      'Where the key that a trigger names must lie.',
    ),
    MaxBodyBytes: setting(bytes(), 262_144, 'Size of a call.'),
    PermitLimit: setting(int({ min: 1 }), 60, 'Calls of one trigger in a window, in this process.'),
    Window: setting(duration(), minuteMs, 'Length of that window.'),
    ExplainRefusals: flag(
      true,
      'Callers learn that a call is too large, cannot be read or was accepted before. Without it those get the 401 of a call that nobody has signed.',
    ),
  }),
  TriggerSecrets: secretSection(3, 'Secrets that sign calls of triggers.'),
};
