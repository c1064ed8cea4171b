import type { Clock, Timer } from '../core/clock.ts';
import type { BackgroundService, ServiceName } from './background-service.ts';

/** What leases need of the store. Times are epoch milliseconds by the clock of the process. */
export interface LeaseStore {
  /** Takes or renews the lease, atomically; false while it is another owner's that has not lapsed. */
  take(name: ServiceName, owner: string, now: number, until: number): Promise<boolean>;
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
class Lease {
  readonly name: ServiceName;
  readonly #service: BackgroundService;
  readonly #ports: LeasePorts;
  readonly #options: ServiceLeaseOptions;
  /** Until when no other process can have it; 0 without the lease. */
  #until = 0;
  #works = false;
  #closed = false;
  #timer: Timer | null = null;
  #deadline: Timer | null = null;
  #asking: Promise<void> | null = null;
  #stopping: Promise<void> = Promise.resolve();

  constructor(name: ServiceName, service: BackgroundService, ports: LeasePorts, options: ServiceLeaseOptions) {
    this.name = name;
    this.#service = service;
    this.#ports = ports;
    this.#options = options;
  }

  start(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = this.#ports.clock.every(this.#options.leaseDurationMs / renewalsPerLease, () => this.#ask());
    void this.#ask();
  }

  async release(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#timer?.stop();
    await this.#stop();
    await this.#asking;
    if (this.#until === 0) return;
    await this.#ports.store
      .release(this.name, this.#options.owner)
      // It lapses by itself.
      .catch((error: unknown) => this.#ports.log.error({ service: this.name, error }, 'A lease could not be released'));
  }

  /** Asks the store at most once at a time: an answer that takes long must not be overtaken by the next one. */
  #ask(): Promise<void> {
    this.#asking ??= this.#take()
      .catch((error: unknown) => {
        this.#ports.log.error({ service: this.name, error }, 'The lease of a service could not be renewed');
      })
      .finally(() => {
        this.#asking = null;
      });
    return this.#asking;
  }

  async #take(): Promise<void> {
    // Counted from before the question: the lease can only end later than is believed here.
    const until = this.#ports.clock.now() + this.#options.leaseDurationMs;
    const taken = await this.#ports.store.take(this.name, this.#options.owner, this.#ports.clock.now(), until);
    if (!taken) return this.#stop();
    this.#until = until;
    if (this.#closed) return;
    this.#watchEnd();
    // A start in the middle of a stop would be undone by it.
    await this.#stopping;
    if (this.#works || this.#closed || !this.#mayAct()) return;
    this.#works = true;
    this.#ports.log.info({ service: this.name, owner: this.#options.owner }, 'This process does the work of a service');
    this.#service.start(() => this.#mayAct());
  }

  #mayAct(): boolean {
    return this.#ports.clock.now() < this.#until;
  }

  #watchEnd(): void {
    const { leaseDurationMs } = this.#options;
    this.#deadline?.stop();
    const untilStop = this.#until - this.#ports.clock.now() - leaseDurationMs * marginShare;
    this.#deadline = this.#ports.clock.after(Math.max(untilStop, 0), () => this.#stop()).unref();
  }

  #stop(): Promise<void> {
    this.#deadline?.stop();
    this.#deadline = null;
    if (this.#works) {
      this.#works = false;
      this.#ports.log.info(
        { service: this.name, owner: this.#options.owner },
        'This process leaves a service to others',
      );
      this.#stopping = this.#service.stop();
    }
    return this.#stopping;
  }
}

const always = (): boolean => true;

/** Background services that one of several processes does at a time, each behind a lease of its own. */
export const createServiceLeases = (ports: LeasePorts, options: ServiceLeaseOptions) => {
  const leases: Lease[] = [];
  return {
    /** From its start on the service works while this process holds its lease. */
    guarded(name: ServiceName, service: BackgroundService): { started(): void; close(): Promise<void> } {
      if (!options.enabled) return { started: () => service.start(always), close: () => service.stop() };
      const lease = new Lease(name, service, ports, options);
      leases.push(lease);
      return { started: () => lease.start(), close: () => lease.release() };
    },
    /** Stops the services of this process for good and lets others have them. Nothing happens where leases are off. */
    async release(): Promise<void> {
      await Promise.all(leases.map((lease) => lease.release()));
    },
  };
};

export type ServiceLeases = ReturnType<typeof createServiceLeases>;
