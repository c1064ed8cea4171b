import { AcpError } from '../../contract/errors.ts';
import { type InstanceState, tenantKey } from '../../core/instance-state.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { Statement } from '../../db/statement.ts';
import type { JobStore } from '../jobs/index.ts';
import { type DeliveryLine, type DeliveryStore, deliveryKey } from './webhook-deliveries.store.ts';
import type { WebhookEventType } from './webhooks.schema.ts';
import type { Listener, WebhookStore } from './webhooks.store.ts';

/**
 * Events that other features publish. They ask `current` first where their process may have stood still, put what
 * `deliveries` gives into the unit that makes the event true, and call `committed` once that is written.
 * Design: docs/design/triggers-and-webhooks.md.
 */
export interface WebhookEvents {
  /** Null: whoever listens is known now. Else it resolves once that was read, or could not be; it never rejects. */
  current(): Promise<void> | null;
  /** True: some tenant has an enabled subscription to the kind. */
  isHeard(type: WebhookEventType): boolean;
  /** True: the tenant has one. */
  hears(tenantId: string, type: WebhookEventType): boolean;
  /**
   * One delivery with its job for each of those; none where there is none. `data` is a summary without content, to which the
   * tenant is added. `at`: time of the event, epoch milliseconds.
   */
  deliveries(
    tenantId: string,
    type: WebhookEventType,
    at: number,
    data: Readonly<Record<string, unknown>>,
  ): readonly Statement[];
  /** After the commit of a unit with deliveries: a worker looks for them. */
  committed(): void;
}

/** Who listens, in memory. */
export interface Listeners {
  put(listener: Listener): void;
  drop(tenantId: string, name: string): void;
}

interface EventDeps {
  readonly enabled: boolean;
  readonly state: Pick<InstanceState, 'table'>;
  readonly store: Pick<WebhookStore, 'listeners'>;
  readonly deliveries: Pick<DeliveryStore, 'inserted'>;
  readonly jobs: Pick<JobStore, 'queued'>;
  readonly line: DeliveryLine;
  readonly wake: (dueAt: number) => void;
  readonly now: () => number;
  readonly newId: () => string;
}

const none: readonly Statement[] = [];
const nobody: ReadonlyMap<string, readonly Listener[]> = new Map();

const kindKey = (tenantId: string, type: string): string => `${tenantId}/${type}`;

const byKind = (listeners: Iterable<Listener>): ReadonlyMap<string, readonly Listener[]> => {
  const kinds = new Map<string, Listener[]>();
  for (const listener of listeners) {
    if (listener.enabled !== 1) continue;
    for (const type of JSON.parse(listener.events) as readonly string[]) {
      const key = kindKey(listener.tenant_id, type);
      const same = kinds.get(key);
      if (same === undefined) kinds.set(key, [listener]);
      else same.push(listener);
    }
  }
  return kinds;
};

/** The writes of one delivery and its job, whatever the subscription says of kinds. */
export const deliveryWrites = ({
  deliveries,
  jobs,
  line,
  now,
  newId,
}: Pick<EventDeps, 'deliveries' | 'jobs' | 'line' | 'now' | 'newId'>) => {
  const { lane, maxAttempts } = line;
  return (
    { id: webhookId, tenant_id: tenantId, name }: Pick<Listener, 'id' | 'tenant_id' | 'name'>,
    type: WebhookEventType,
    at: number,
    data: Readonly<Record<string, unknown>>,
  ): { readonly id: string; readonly statements: readonly Statement[] } => {
    const id = newId();
    const due = now();
    const payload = JSON.stringify({ type, timestamp: isoTime(at), data: { tenantId, ...data } });
    const job = { id, tenantId, handlerKey: deliveryKey, lane, targetName: name, payload: null, maxAttempts, now: due };
    const delivery = { id, webhookId, tenantId, eventType: type, payload, now: due };
    return { id, statements: [deliveries.inserted(delivery), jobs.queued(job)] };
  };
};

export const createWebhookEvents = (deps: EventDeps): { events: WebhookEvents; listeners: Listeners } => {
  const table = deps.state.table('webhookSubscriptions', {
    read: deps.store.listeners,
    keyOf: ({ tenant_id, name }) => tenantKey(tenant_id, name),
  });
  const writes = deliveryWrites(deps);
  let kinds = nobody;
  /** Kinds that anybody listens to. */
  let heard: ReadonlySet<string> = new Set();
  let isChanged = true;
  const changed = (): void => {
    isChanged = true;
  };
  table.onRead(changed);

  const learn = (): void => {
    try {
      kinds = byKind(table.rows.values());
      heard = new Set(kinds.keys().map((key) => key.slice(key.indexOf('/') + 1)));
      isChanged = false;
    } catch (error) {
      // Rows that are too old are read again by who keeps them; until then those that listened before are told.
      if (!(error instanceof AcpError)) throw error;
    }
  };
  const listenersOf = (tenantId: string, type: string): readonly Listener[] | undefined => {
    if (isChanged) learn();
    return kinds.size === 0 ? undefined : kinds.get(kindKey(tenantId, type));
  };

  return {
    events: {
      current() {
        const reading = deps.enabled ? table.current() : null;
        // What cannot be read is told by who keeps it; an event does not wait for the store, and goes to whom was listening.
        return reading === null ? null : reading.catch(() => undefined);
      },
      isHeard(type) {
        if (isChanged) learn();
        return deps.enabled && heard.has(type);
      },
      hears: (tenantId, type) => deps.enabled && listenersOf(tenantId, type) !== undefined,
      deliveries(tenantId, type, at, data) {
        const listeners = deps.enabled ? listenersOf(tenantId, type) : undefined;
        if (listeners === undefined) return none;
        return listeners.flatMap((listener) => writes(listener, type, at, data).statements);
      },
      committed: () => deps.wake(deps.now()),
    },
    listeners: {
      put(listener) {
        table.put(listener);
        changed();
      },
      drop(tenantId, name) {
        table.drop(tenantKey(tenantId, name));
        changed();
      },
    },
  };
};
