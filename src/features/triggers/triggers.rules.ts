import { isUtf8 } from 'node:buffer';
import { AcpError, invalidField } from '../../contract/errors.ts';
import type { FlowSettings } from '../../contract/flow-settings.ts';
import { isRecord } from '../../contract/record.ts';
import { nestsTooDeep } from '../../core/documents/json-depth.ts';
import { isWebhookId } from '../../core/standard-webhooks.ts';
import type { SignedHeaders, WebhookSchemeName } from '../../core/webhook-schemes.ts';
import type { TriggerRow } from '../../db/tables/arriving-work.ts';
import { compileFlow, fieldErrors, flowFindings, wholeFlow } from '../agents/index.ts';
import type { ArrivingWork } from '../runs/index.ts';
import { type InboundTriggerSaveRequest, maxPathNames } from './triggers.schema.ts';

/** Throws `validation-failed` for a path that leads nowhere by its form, and for one that the mode does not read. */
export const checkedPath = ({
  payloadMode = 'WholeBody',
  payloadPath = null,
}: Pick<InboundTriggerSaveRequest, 'payloadMode' | 'payloadPath'>): string | null => {
  if (payloadMode === 'WholeBody') {
    if (payloadPath !== null) throw invalidField('payloadPath', 'is for payloadMode Path only');
    return null;
  }
  if (payloadPath === null) throw invalidField('payloadPath', 'is required with payloadMode Path');
  const names = payloadPath.split('.');
  if (names.length > maxPathNames || names.some((name) => name === ''))
    throw invalidField('payloadPath', `must be 1 to ${maxPathNames} names joined by dots`);
  if (names.some((name) => /[[\]]/.test(name)))
    throw invalidField('payloadPath', 'must name members; it leads into no list');
  return payloadPath;
};

/** As it is stored. Throws `validation-failed` with every member that no gate can have. */
export const checkedFlow = ({ flow = null }: Pick<InboundTriggerSaveRequest, 'flow'>): string | null => {
  if (flow === null) return null;
  const errors = fieldErrors(flowFindings({ flow: wholeFlow(flow) }));
  if (errors.length > 0) throw new AcpError('validation-failed', errors[0]?.message ?? '', { details: { errors } });
  return JSON.stringify(flow);
};

export const flowOf = ({ flow }: Pick<TriggerRow, 'flow'>): FlowSettings | null =>
  flow === null ? null : (JSON.parse(flow) as FlowSettings);

const bodyAsJson = (text: string): unknown => {
  if (nestsTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // A body may be any text where it is the message; then it has no value at any key.
    return undefined;
  }
};

/** How the run of a call is let in; null: at once. */
export const flowOfCall = (row: Pick<TriggerRow, 'name' | 'flow'>, text: string): ArrivingWork['flow'] => {
  const settings = flowOf(row);
  const flow = settings && compileFlow({ flow: wholeFlow(settings) });
  return flow && { kind: 'trigger', name: row.name, flow, keyed: bodyAsJson(text) };
};

const unusable = (message: string): AcpError => new AcpError('trigger-payload-invalid', message);

/** JSON with the text of its numbers, which the types of the language do not have yet. */
interface ExactJson {
  parse(
    text: string,
    reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}
const exactJson = JSON as unknown as ExactJson;

/** A number that JavaScript would round keeps its digits: ids of other systems are often longer. */
const exactNumber = (_name: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  typeof value === 'number' && source !== undefined && String(value) !== source ? exactJson.rawJSON(source) : value;

const parsed = (text: string): unknown => {
  if (nestsTooDeep(text)) throw unusable('The body nests too deeply.');
  try {
    return exactJson.parse(text, exactNumber);
  } catch {
    // What the parser says of it would quote the body.
    throw unusable('The body is not JSON.');
  }
};

const valueAt = (body: unknown, path: string): unknown => {
  let value = body;
  for (const name of path.split('.')) {
    if (!isRecord(value) || exactJson.isRawJSON(value) || !Object.hasOwn(value, name))
      throw unusable(`The body has nothing at ${path}.`);
    value = value[name];
  }
  if (value === null) throw unusable(`The body has null at ${path}.`);
  return value;
};

/** The body as text. Throws `trigger-payload-invalid` where it is empty or not UTF-8. */
export const bodyText = (body: Uint8Array): string => {
  if (body.byteLength === 0) throw unusable('The body is empty.');
  if (!isUtf8(body)) throw unusable('The body is not UTF-8.');
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
};

/** Senders that also post forms: GitHub by default, Slack for commands and interactions. */
const formSenders: ReadonlySet<WebhookSchemeName> = new Set(['github', 'slack']);

/**
 * The text of a call, out of the form (`application/x-www-form-urlencoded`) in which its sender may post it: the JSON of
 * the field `payload`, or, where a path is read, the fields of a Slack command as JSON. The body tells a form from JSON, which
 * begins with none of these names, also where a proxy has dropped the content type.
 */
export const textOfCall = (
  { scheme, payload_path: path }: Pick<TriggerRow, 'scheme' | 'payload_path'>,
  text: string,
): string => {
  if (!formSenders.has(scheme as WebhookSchemeName)) return text;
  if (text.startsWith('payload=')) return new URLSearchParams(text).get('payload') ?? '';
  const isCommand = scheme === 'slack' && path !== null && /^[a-z_]+=/.test(text);
  return isCommand ? JSON.stringify(Object.fromEntries(new URLSearchParams(text))) : text;
};

/** What of the body is the message to the target. */
export const messageIn = (text: string, { payload_path: path }: Pick<TriggerRow, 'payload_path'>): string => {
  const value = path === null ? text : valueAt(parsed(text), path);
  const message = typeof value === 'string' ? value : JSON.stringify(value);
  if (message.trim() === '') throw unusable('There is nothing but white space to send.');
  return message;
};

const memberOf = (text: string, name: string): unknown => {
  if (nestsTooDeep(text)) return undefined;
  try {
    const body: unknown = JSON.parse(text);
    return isRecord(body) && Object.hasOwn(body, name) ? body[name] : undefined;
  } catch {
    // Whoever asks has an answer for a body that is no JSON.
    return undefined;
  }
};

const idIn = (text: string, name: string): string | null => {
  const id = memberOf(text, name);
  return typeof id === 'string' && isWebhookId(id) ? id : null;
};

/** By what a call is told from all others of its trigger, however often it is sent. */
const callIds: Readonly<Record<WebhookSchemeName, (headers: SignedHeaders, text: string) => string | null>> = {
  standard: (headers) => headers['webhook-id'] ?? null,
  github: (headers) => headers['x-github-delivery'] ?? null,
  // A repeat of an event has a time and a signature of its own.
  stripe: (_headers, text) => idIn(text, 'id'),
  // So has one of Slack's events; its commands and actions have no id, and are not repeated.
  slack: (headers, text) =>
    idIn(text, 'event_id') ?? `${headers['x-slack-request-timestamp']} ${headers['x-slack-signature']}`,
};

/** Throws `trigger-payload-invalid` for a body that lacks the id which its sender promises. */
export const callIdOf = (scheme: WebhookSchemeName, headers: SignedHeaders, text: string): string => {
  const id = callIds[scheme](headers, text);
  if (id === null) throw unusable('The body has no id of an event.');
  return id;
};

const dayMs = 86_400_000;
const secondMs = 1000;
// GitHub and Stripe send again what was not answered, for three days; and GitHub signs no time that would end a call.
const senderRetriesMs = 7 * dayMs;

/** How long an id that was accepted is not accepted again. */
export const keptMs = (scheme: WebhookSchemeName, toleranceMs: number): number =>
  // A call may be signed one tolerance ahead and arrive one late, and its time has whole seconds.
  scheme === 'standard' ? 2 * toleranceMs + secondMs : Math.max(2 * toleranceMs + secondMs, senderRetriesMs);

/** What Slack wants to read back before it sends anything to an address; null: this is no such question. */
export const slackChallenge = (scheme: WebhookSchemeName, text: string): string | null => {
  if (scheme !== 'slack' || memberOf(text, 'type') !== 'url_verification') return null;
  const challenge = memberOf(text, 'challenge');
  return typeof challenge === 'string' ? challenge : null;
};
