import type { Clock, Timer } from '../core/clock.ts';
import { isoTime } from '../core/iso-time.ts';
import type { BackgroundService, ServiceName } from './background-service.ts';

/** What leases need of the store. Times are epoch milliseconds by the clock of the store. */
export interface LeaseStore {
  /**
   * Takes or renews the lease, atomically: the term in which it is held from then on, a further one where it was another
   * owner's; null while it is one's that has not lapsed.
   */
  take(name: ServiceName, owner: string, now: number, until: number): Promise<number | null>;
  release(name: ServiceName, owner: string): Promise<void>;
  /** Frees all of them: for the owner of the store at its start, when no other process can be alive. */
  freeAll(): Promise<void>;
}

export interface ServiceLeaseOptions {
  /** False: every process does the work of every service. */
  readonly enabled: boolean;
  readonly owner: string;
  readonly leaseDurationMs: number;
}

interface LeasePorts {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly log: {
    info(fields: Readonly<Record<string, unknown>>, message: string): void;
    error(fields: Readonly<Record<string, unknown>>, message: string): void;
  };
}

// Renewed at a third, so that two renewals can fail before the lease ends.
const renewalsPerLease = 3;
// Without a renewal the service is stopped this long before the end, so that what is under way has ended by then.
const marginShare = 1 / 6;

/** One service of this process and what is known of its lease. */
const createLease = (
  name: ServiceName,
  service: BackgroundService,
  { store, clock, log }: LeasePorts,
  { owner, leaseDurationMs }: ServiceLeaseOptions,
) => {
  /** Until when no other process can have it; 0 without the lease. */
  let heldUntil = 0;
  let term: number | null = null;
  let works = false;
  let closed = false;
  let timer: Timer | null = null;
  let deadline: Timer | null = null;
  let asking: Promise<void> | null = null;
  let stopping: Promise<void> = Promise.resolve();

  const mayAct = (): boolean => clock.now() < heldUntil;

  const stop = (): Promise<void> => {
    deadline?.stop();
    deadline = null;
    if (works) {
      works = false;
      log.info({ service: name, owner, heldUntil: isoTime(heldUntil) }, 'This process leaves a service to others');
      stopping = service.stop();
    }
    return stopping;
  };

  const watchEnd = (): void => {
    deadline?.stop();
    const untilStop = heldUntil - clock.now() - leaseDurationMs * marginShare;
    deadline = clock.after(Math.max(untilStop, 0), stop).unref();
  };

  const take = async (): Promise<void> => {
    // Counted from before the question: the lease can only end later than is believed here.
    const until = clock.now() + leaseDurationMs;
    const taken = await store.take(name, owner, clock.now(), until);
    if (taken === null) return stop();
    term = taken;
    heldUntil = until;
    if (closed) return;
    watchEnd();
    // A start in the middle of a stop would be undone by it.
    await stopping;
    if (works || closed || !mayAct()) return;
    works = true;
    log.info({ service: name, owner }, 'This process does the work of a service');
    service.start(mayAct, () => (term === null ? null : { name, owner, term }));
  };

  /** Asks the store at most once at a time: an answer that takes long must not be overtaken by the next one. */
  const ask = (): Promise<void> => {
    asking ??= take()
      .catch((error: unknown) => log.error({ service: name, error }, 'The lease of a service could not be renewed'))
      .finally(() => {
        asking = null;
      });
    return asking;
  };

  return {
    start(): void {
      if (timer !== null || closed) return;
      timer = clock.every(leaseDurationMs / renewalsPerLease, ask);
      void ask();
    },
    async release(): Promise<void> {
      if (closed) return;
      closed = true;
      timer?.stop();
      await stop();
      await asking;
      if (heldUntil === 0) return;
      await store
        .release(name, owner)
        // It lapses by itself.
        .catch((error: unknown) => log.error({ service: name, error }, 'A lease could not be released'));
    },
  };
};

const always = (): boolean => true;
const unheld = (): null => null;

/**
 * Background services that one of several processes does at a time, each behind a lease of its own.
 * Design: docs/design/clocks-and-leases.md.
 */
export const createServiceLeases = (ports: LeasePorts, options: ServiceLeaseOptions) => {
  const leases: ReturnType<typeof createLease>[] = [];
  return {
    /** From its start on the service works while this process holds its lease. */
    guarded(name: ServiceName, service: BackgroundService): { started(): void; close(): Promise<void> } {
      if (!options.enabled) return { started: () => service.start(always, unheld), close: () => service.stop() };
      const lease = createLease(name, service, ports, options);
      leases.push(lease);
      return { started: lease.start, close: lease.release };
    },
    /** Stops the services of this process for good and lets others have them. Nothing happens where leases are off. */
    async release(): Promise<void> {
      await Promise.all(leases.map((lease) => lease.release()));
    },
  };
};

export type ServiceLeases = ReturnType<typeof createServiceLeases>;
