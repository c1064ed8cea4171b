import type { ProtocolVersion } from './a2a.schema.ts';
import { A2AError } from './a2a-errors.ts';

export type A2AMethod =
  | 'SendMessage'
  | 'SendStreamingMessage'
  | 'GetTask'
  | 'ListTasks'
  | 'CancelTask'
  | 'SubscribeToTask'
  | 'PushNotificationConfig'
  | 'GetExtendedAgentCard';

/** Positions in streams, and streams that go on after one. The header of the protocol asks for it. */
export const resumeExtension = 'urn:acp:a2a:resume:1';

const methods: Readonly<Record<ProtocolVersion, ReadonlyMap<string, A2AMethod>>> = {
  '1.0': new Map<string, A2AMethod>([
    ['SendMessage', 'SendMessage'],
    ['SendStreamingMessage', 'SendStreamingMessage'],
    ['GetTask', 'GetTask'],
    ['ListTasks', 'ListTasks'],
    ['CancelTask', 'CancelTask'],
    ['SubscribeToTask', 'SubscribeToTask'],
    ['CreateTaskPushNotificationConfig', 'PushNotificationConfig'],
    ['GetTaskPushNotificationConfig', 'PushNotificationConfig'],
    ['ListTaskPushNotificationConfigs', 'PushNotificationConfig'],
    ['DeleteTaskPushNotificationConfig', 'PushNotificationConfig'],
    ['GetExtendedAgentCard', 'GetExtendedAgentCard'],
  ]),
  '0.3': new Map<string, A2AMethod>([
    ['message/send', 'SendMessage'],
    ['message/stream', 'SendStreamingMessage'],
    ['tasks/get', 'GetTask'],
    ['tasks/cancel', 'CancelTask'],
    ['tasks/resubscribe', 'SubscribeToTask'],
    ['tasks/pushNotificationConfig/set', 'PushNotificationConfig'],
    ['tasks/pushNotificationConfig/get', 'PushNotificationConfig'],
    ['tasks/pushNotificationConfig/list', 'PushNotificationConfig'],
    ['tasks/pushNotificationConfig/delete', 'PushNotificationConfig'],
    ['agent/getAuthenticatedExtendedCard', 'GetExtendedAgentCard'],
  ]),
};

/**
 * The version that a request is served in. `header`: `A2A-Version`, undefined where it was not sent; `method`: null where
 * the body could not be read. Throws -32009 with the versions that there are.
 */
export const protocolVersion = (
  header: string | undefined,
  method: string | null,
  legacy: boolean,
): ProtocolVersion => {
  const asked = header?.trim() ?? '';
  if (/^1\.0(?:\.\d+)?$/.test(asked)) return '1.0';
  if (asked === '' && method !== null && methods['1.0'].has(method)) return '1.0';
  if (legacy && (asked === '' || /^0\.3(?:\.\d+)?$/.test(asked))) return '0.3';
  const supported = legacy ? '1.0, 0.3' : '1.0';
  throw new A2AError('VersionNotSupported', `This version is not served here; there are ${supported}.`, {
    metadata: { supportedVersions: supported },
  });
};

/** The version in whose form a card is: 0.3 for a caller that names it, or none, while it is served. */
export const cardVersion = (header: string | undefined, legacy: boolean): ProtocolVersion => {
  const requested = header?.trim() ?? '';
  return legacy && (requested === '' || /^0\.3(?:\.\d+)?$/.test(requested)) ? '0.3' : '1.0';
};

/** Undefined: the version has no such method. */
export const methodOf = (version: ProtocolVersion, name: string): A2AMethod | undefined => methods[version].get(name);

/** The extensions that a header asks for, with those among them that it cannot do without. */
export const askedExtensions = (header: string | undefined): { readonly uri: string; readonly required: boolean }[] =>
  (header ?? '')
    .split(',')
    .map((entry) => entry.split(';').map((part) => part.trim()))
    .flatMap(([uri = '', ...parameters]) =>
      uri === '' ? [] : [{ uri, required: parameters.some((parameter) => /^required(?:=true)?$/i.test(parameter)) }],
    );
