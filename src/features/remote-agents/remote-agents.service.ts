import { AcpError, invalidField } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { RemoteAgentPinRow } from '../../db/tables/remote-agents.ts';
import type { AuditLog } from '../audit/index.ts';
import {
  type AgentCards,
  type CardLook,
  type ConfiguredAgent,
  type FoundCard,
  heldBack,
  shownName,
} from './agent-cards.ts';
import { cardChanges } from './card-changes.rules.ts';
import { isPinOf, type KnownAgents } from './known-agents.ts';
import type { remoteAgentOperations } from './remote-agents.operations.ts';
import type { RemoteAgentDescriptor } from './remote-agents.schema.ts';
import { type RemoteAgentStore, remoteAgentStore } from './remote-agents.store.ts';

export interface RemoteAgentServiceDeps {
  readonly known: KnownAgents;
  readonly toolName: (agentName: string) => string;
  readonly cards: AgentCards;
  readonly store: RemoteAgentStore;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly now: () => number;
  /** Milliseconds that only ever go forward. */
  readonly elapsed: () => number;
}

// Each may be a request to another system.
const looksAtOnce = 16;
// Whoever reads the list waits for it. What was not looked at until then is Unknown.
const longestLookMs = 10_000;

interface Looked {
  readonly cardUrl?: string | null;
  readonly authorizationConfigurationKey?: string | null;
}

/** Throws where somebody approves what is another thing by now, or says too little of what a credential is sent for. */
const assertAsLookedAt = (agent: ConfiguredAgent, { cardUrl, authorizationConfigurationKey: key }: Looked): void => {
  const { id, definedBy, authorizationKey } = agent;
  if (definedBy !== null && authorizationKey !== null) {
    if (cardUrl == null) throw invalidField('cardUrl', 'is required: a credential is sent there');
    if (key == null) throw invalidField('authorizationConfigurationKey', 'is required: its value is sent there');
  }
  if (cardUrl != null && cardUrl !== agent.cardUrl)
    throw new AcpError('remote-card-changed', `The card of "${id}" is at ${agent.cardUrl} by now.`);
  if (key != null && key !== authorizationKey)
    throw new AcpError('remote-card-changed', `The key of "${id}" is ${authorizationKey ?? 'none'} by now.`);
};

const pinState = (
  look: CardLook | null,
  pin: RemoteAgentPinRow | undefined,
): RemoteAgentDescriptor['status']['pin'] => {
  if (pin === undefined) return 'None';
  return pin.hash === look?.found?.hash ? 'Same' : 'Changed';
};

export const remoteAgentService = (deps: RemoteAgentServiceDeps): Handlers<typeof remoteAgentOperations> => {
  const { cards, store } = deps;

  const known = async (tenantId: string, name: string): Promise<ConfiguredAgent> => {
    const agent = await deps.known.find(tenantId, name);
    if (agent === undefined) throw new AcpError('not-found', `There is no remote agent "${name}".`);
    return agent;
  };
  const describe = (
    agent: ConfiguredAgent,
    look: CardLook | null,
    pin: RemoteAgentPinRow | undefined,
  ): RemoteAgentDescriptor => {
    const { id, name, definedBy, cardUrl, description, effect, requiresApproval, pinning } = agent;
    const card = look?.found?.card ?? null;
    return {
      ...{ name: id, toolName: deps.toolName(name), agentName: definedBy },
      authorizationConfigurationKey: agent.authorizationKey,
      ...{ cardUrl, description, effect, requiresApproval, pinning },
      status: {
        state: look?.state ?? 'Unknown',
        problem: look?.problem ?? null,
        agentName: shownName(card?.name ?? null),
        agentVersion: shownName(card?.version ?? null),
        url: shownName(card?.url.href ?? null),
        protocolVersion: card?.protocol ?? null,
        skillCount: card?.skillCount ?? 0,
        checkedAt: look === null ? null : isoTime(look.at),
        pin: pinState(look, pin),
      },
    };
  };
  const unusable = ({ id }: ConfiguredAgent, problem: string | null): AcpError =>
    new AcpError('remote-agent-failed', `The card of "${id}" cannot be used. ${problem}`);
  /** The card of now, which has to be one. */
  const lookedAt = async (agent: ConfiguredAgent): Promise<{ readonly look: CardLook; readonly found: FoundCard }> => {
    const look = await cards.look(agent);
    if (look.found === null) throw unusable(agent, look.problem);
    return { look, found: look.found };
  };
  /** As it was or is, unless nobody has approved that its credential is sent. */
  const current = async (agent: ConfiguredAgent, pin: RemoteAgentPinRow | undefined): Promise<CardLook> => {
    const held = heldBack(agent, pin);
    if (held === null) return cards.current(agent);
    return { at: deps.now(), state: held.state, found: null, problem: held.message, failure: held.failure };
  };

  return {
    async list({ tenantId, signal }) {
      const pins = new Map((await store.pins(tenantId)).map((pin) => [pin.name, pin]));
      const described: RemoteAgentDescriptor[] = [];
      const all = await deps.known.list(tenantId);
      const begunAt = deps.elapsed();
      for (let next = 0; next < all.length; next += looksAtOnce) {
        signal.throwIfAborted();
        const some = all.slice(next, next + looksAtOnce);
        const isLate = deps.elapsed() - begunAt > longestLookMs;
        const looks = await Promise.all(some.map((agent) => (isLate ? null : current(agent, pins.get(agent.pinId)))));
        described.push(...some.map((agent, index) => describe(agent, looks[index] ?? null, pins.get(agent.pinId))));
      }
      return ok(described);
    },

    async pin({ tenantId }, { params: { name } }) {
      const agent = await known(tenantId, name);
      const pin = await store.pin(tenantId, agent.pinId);
      const held = heldBack(agent, pin);
      if (held !== null) throw unusable(agent, held.message);
      const { found } = await lookedAt(agent);
      return ok({
        pinned: pin !== undefined,
        pinnedAt: pin === undefined ? null : isoTime(pin.pinned_at),
        pinnedBy: pin?.pinned_by ?? null,
        hash: found.hash,
        pinnedHash: pin?.hash ?? null,
        changes: [...cardChanges(pin?.card ?? null, found.text)],
      });
    },

    async approve(context, { params: { name }, body }) {
      const { tenantId, principal } = context;
      const agent = await known(tenantId, name);
      assertAsLookedAt(agent, body ?? {});
      const { look, found } = await lookedAt(agent);
      const { hash, text } = found;
      if (body?.hash != null && body.hash !== hash)
        throw new AcpError('remote-card-changed', `The card of "${name}" is another one by now.`);
      const pin: RemoteAgentPinRow = {
        tenant_id: tenantId,
        name: agent.pinId,
        hash,
        card: text,
        pinned_by: principal.actor,
        pinned_at: deps.now(),
      };
      await deps.audit.change(context, async (stores, tell) => {
        const pins = stores(remoteAgentStore);
        const before = await pins.pin(tenantId, agent.pinId);
        await pins.save(pin);
        const changes = cardChanges(before?.card ?? null, text);
        tell({
          id: name,
          before: before === undefined ? null : { hash: before.hash },
          after: {
            hash,
            cardUrl: agent.cardUrl,
            authorizationConfigurationKey: agent.authorizationKey,
            changes: changes.map(({ path, change }) => ({ path, change })),
          },
        });
      });
      return ok(describe(agent, look, pin));
    },

    async withdraw(context, { params: { name } }) {
      const { tenantId } = context;
      await deps.audit.change(context, async (stores, tell) => {
        const store = stores(remoteAgentStore);
        const approved = (await store.pins(tenantId)).filter((pin) => isPinOf(name, pin.name));
        if (approved.length === 0) throw new AcpError('not-found', `Nothing is approved of a remote agent "${name}".`);
        await store.remove(
          tenantId,
          approved.map((pin) => pin.name),
        );
        const before = approved.map(({ hash, pinned_by: pinnedBy, pinned_at: pinnedAt }) => ({
          ...{ hash, pinnedBy },
          pinnedAt: isoTime(pinnedAt),
        }));
        tell({ id: name, before, after: null });
      });
      return noContent();
    },
  };
};
