import { AcpError, invalidField } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import { labelsOf, labelsText } from '../../core/labels.ts';
import type { TriggerRow } from '../../db/tables/arriving-work.ts';
import type { AuditLog } from '../audit/index.ts';
import type { TriggerSecrets } from './trigger-secrets.ts';
import type { triggerOperations } from './triggers.operations.ts';
import { checkedFlow, checkedPath, flowOf } from './triggers.rules.ts';
import type { InboundTrigger, InboundTriggerSaveRequest } from './triggers.schema.ts';
import { type SavedTrigger, type TriggerStore, triggerAfter, triggerStore } from './triggers.store.ts';

export interface TriggerServiceDeps {
  readonly store: Pick<TriggerStore, 'list' | 'find'>;
  readonly secrets: TriggerSecrets;
  /** Whether a tenant sees an agent of this name. */
  readonly agentExists: (tenantId: string, name: string) => Promise<boolean>;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly now: () => number;
  readonly newId: () => string;
}

const notFound = (name: string): AcpError => new AcpError('not-found', `There is no trigger "${name}".`);

/** Definitions of triggers: what their calls start, and whose signature they ask for. */
export const triggerService = (deps: TriggerServiceDeps): Omit<Handlers<typeof triggerOperations>, 'accept'> => {
  const { store, secrets, audit } = deps;

  const view = (row: TriggerRow): InboundTrigger => ({
    id: row.id,
    tenantId: row.tenant_id,
    name: row.name,
    targetKind: row.target_kind as InboundTrigger['targetKind'],
    targetName: row.target_name,
    scheme: row.scheme as InboundTrigger['scheme'],
    secretConfigurationKey: row.secret_key,
    resolved: secrets.of(row).length > 0,
    payloadMode: row.payload_mode as InboundTrigger['payloadMode'],
    payloadPath: row.payload_path,
    flow: flowOf(row),
    enabled: row.enabled === 1,
    labels: labelsOf(row),
    acceptPath: `/api/triggers/${encodeURIComponent(row.tenant_id)}/${encodeURIComponent(row.name)}`,
    lastAcceptedAt: isoTimeOrNull(row.last_accepted_at),
    createdAt: isoTime(row.created_at),
    updatedAt: isoTime(row.updated_at),
  });

  const assertTarget = async (tenantId: string, { targetKind, targetName }: InboundTriggerSaveRequest) => {
    if (targetKind === 'Workflow')
      throw invalidField('targetName', 'names no workflow: this version has none, and only agents can be started');
    if (!(await deps.agentExists(tenantId, targetName))) throw invalidField('targetName', 'names no agent');
  };

  return {
    async list({ tenantId }) {
      return ok((await store.list(tenantId)).map(view));
    },

    async get({ tenantId }, { params: { name } }) {
      const row = await store.find(tenantId, name);
      if (row === undefined) throw notFound(name);
      return ok(view(row));
    },

    async save(context, { params: { name }, query, body }) {
      const { tenantId } = context;
      const path = checkedPath(body);
      const flow = checkedFlow(body);
      const key = body.secretConfigurationKey;
      if (!secrets.mayName(tenantId, key)) {
        const message = `must be one name below ${secrets.prefixOf(tenantId)}`;
        throw invalidField('secretConfigurationKey', message, 'configuration-key-not-allowed');
      }
      await assertTarget(tenantId, body);
      const at = deps.now();
      const saved = await audit.save(context, query, async (stores, tell) => {
        const row: SavedTrigger = {
          tenant_id: tenantId,
          name,
          id: deps.newId(),
          target_kind: body.targetKind ?? 'Agent',
          target_name: body.targetName,
          scheme: body.scheme ?? 'standard',
          secret_key: key,
          payload_mode: body.payloadMode ?? 'WholeBody',
          payload_path: path,
          flow,
          labels: labelsText(body.labels),
          enabled: body.enabled === false ? 0 : 1,
          created_at: at,
          updated_at: at,
        };
        const triggers = stores(triggerStore);
        if (query.dryRun === true) {
          const stored = await triggers.find(tenantId, name);
          assertExpected(query, stored?.updated_at);
          return triggerAfter(stored, row);
        }
        const { before, after } = await triggers.save(row);
        assertExpected(query, before?.updated_at);
        tell({ id: name, before: before === undefined ? null : view(before), after: view(after) });
        return after;
      });
      return ok(view(saved));
    },

    async remove(context, { params: { name } }) {
      await audit.change(context, async (stores, tell) => {
        const removed = await stores(triggerStore).remove(context.tenantId, name);
        if (removed === undefined) throw notFound(name);
        tell({ id: name, before: view(removed), after: null });
      });
      return noContent();
    },
  };
};
