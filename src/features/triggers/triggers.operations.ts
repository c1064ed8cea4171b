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
      'A trigger has its own address; a signed call to it queues a run. Secrets are referenced by name and never shown.',
    responses: { 200: Type.Array(InboundTrigger) },
    errors: [],
    cli: { columns },
  },
  get: {
    ...read,
    path: '/api/triggers/{name}',
    summary: 'Show a trigger',
    description: '`acceptPath` is the path for its calls, `lastAcceptedAt` the time of the last accepted call.',
    params: TriggerName,
    responses: { 200: InboundTrigger },
    errors: ['not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/triggers/{name}',
    summary: 'Create or replace a trigger',
    description:
      'An omitted property takes its default, not its earlier value. The secret is the value of a configuration key below `Triggers:AllowedConfigurationPrefix`; the key need not have a value yet.',
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
    summary: 'Delete a trigger; its runs remain',
    description: 'Its address then responds as if the trigger had never existed. Queued runs still execute.',
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
    summary: 'Call a trigger: queue a run for an event of another system',
    description:
      "Needs no credential: the body is signed with the trigger's scheme, and every failed verification gets the same 401. The call queues the run and does not wait for it; an id that was accepted before is rejected.",
    // Any text: an address that no trigger can have is answered like one that none has.
    params: Type.Object({ tenantId: Type.String(), name: Type.String() }),
    headers: Type.Object({
      'webhook-id': header('standard: id of the call, 1 to 256 printable ASCII characters without a dot'),
      'webhook-timestamp': header('standard: unix seconds'),
      'webhook-signature': header(
        'standard: `v1,<base64>` over `{id}.{timestamp}.{body}`; several are separated by spaces',
      ),
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
