import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SaveQuery } from '../../contract/save-query.ts';
import { AcceptedRunResponse } from '../runs/runs.schema.ts';
import {
  InboundTrigger,
  InboundTriggerSaveRequest,
  NewTriggerName,
  SlackChallenge,
  TriggerName,
} from './triggers.schema.ts';

const read = { tag: 'Triggers', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'Triggers', role: 'Admin', scope: 'PlatformAdmin' } as const;
const columns = ['name', 'targetName', 'scheme', 'enabled', 'resolved', 'lastAcceptedAt', 'acceptPath'];

const header = (description: string) => Type.Optional(Type.String({ description }));

export const triggerOperations = defineOperations({
  list: {
    ...read,
    path: '/api/triggers',
    summary: 'List the triggers of the tenant by name',
    description:
      'A trigger has an address of its own; a signed call to it queues a run. Secrets are named, and never shown.',
    responses: { 200: Type.Array(InboundTrigger) },
    errors: [],
    cli: { columns },
  },
  get: {
    ...read,
    path: '/api/triggers/{name}',
    summary: 'Show a trigger',
    description: '`acceptPath` is where its calls are sent to, `lastAcceptedAt` when one was accepted last.',
    params: TriggerName,
    responses: { 200: InboundTrigger },
    errors: ['not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/triggers/{name}',
    summary: 'Create a trigger, or replace the whole of one',
    description:
      'What is left out takes its default, not its earlier value. The secret is the value of a configuration key below `Triggers:AllowedConfigurationPrefix`, which need not have one yet.',
    params: NewTriggerName,
    query: SaveQuery,
    body: InboundTriggerSaveRequest,
    responses: { 200: InboundTrigger },
    errors: ['configuration-key-not-allowed', 'version-conflict', 'audit-unavailable'],
    audit: { action: 'trigger.save', entity: 'trigger', mode: 'fail-closed' },
    cli: { command: 'triggers set', columns },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/triggers/{name}',
    summary: 'Delete a trigger; its runs stay',
    description: 'From then on its address answers as if it had never been. Queued runs are carried out.',
    params: TriggerName,
    responses: { 204: null },
    errors: ['not-found', 'audit-unavailable'],
    audit: { action: 'trigger.delete', entity: 'trigger', mode: 'fail-closed' },
    cli: { command: 'triggers delete', done: 'Deleted trigger {name}.' },
  },
  accept: {
    tag: 'Triggers',
    role: null,
    scope: null,
    signed: true,
    method: 'POST',
    path: '/api/triggers/{tenantId}/{name}',
    summary: 'Call a trigger: queue a run for what has happened elsewhere',
    description:
      'No credential is asked for: the body is signed in the way of the trigger, and every failure to prove it is one and the same 401. The run is queued, never awaited; an id that was accepted before is refused.',
    // Any text: an address that no trigger can have is answered like one that none has.
    params: Type.Object({ tenantId: Type.String(), name: Type.String() }),
    headers: Type.Object({
      'webhook-id': header('standard: id of the call, 1 to 256 printable ASCII characters without a dot'),
      'webhook-timestamp': header('standard: unix seconds'),
      'webhook-signature': header('standard: `v1,<base64>` over `{id}.{timestamp}.{body}`; several by a space'),
      'x-github-delivery': header('github: id of the delivery'),
      'x-hub-signature-256': header('github: `sha256=<hex>` over the body'),
      'stripe-signature': header('stripe: `t=<unix seconds>,v1=<hex>` over `{t}.{body}`'),
      'x-slack-request-timestamp': header('slack: unix seconds'),
      'x-slack-signature': header('slack: `v0=<hex>` over `v0:{timestamp}:{body}`'),
    }),
    responses: { 202: AcceptedRunResponse, 200: SlackChallenge },
    errors: [
      'trigger-payload-invalid',
      'parameter-invalid',
      'client-tools-need-a-client',
      'agent-not-compilable',
      'context-window-exceeded',
      'unauthenticated',
      'remote-access-denied',
      'run-not-allowed',
      'trigger-target-missing',
      'trigger-replayed',
      'body-too-large',
      'trigger-rate-limited',
      'quota-exceeded',
      'async-runs-disabled',
      'run-recording-disabled',
      'draining',
      'emergency-stopped',
      'store-unavailable',
      'migrating',
    ],
    cli: { handWritten: true },
  },
});
