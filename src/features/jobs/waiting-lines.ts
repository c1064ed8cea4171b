/** A place in the order in which jobs become due. */
export interface Position {
  readonly scheduledFor: number;
  readonly id: string;
}

/** Jobs of a tenant that wait for each other: within a line, the order is that of time. */
export interface Line {
  readonly tenantId: string;
  /** Lower ones go first. */
  readonly rank: number;
  readonly lane: string;
  /** The key within the lane; empty: none. */
  readonly line: string;
}

/** A line and where its first job stands, or a place before it. */
export interface WaitingLine extends Line {
  readonly from: Position;
}

interface Tenant {
  /** By name; null: which lines there are has not been looked up. */
  lines: Map<string, WaitingLine> | null;
  /** There are more than were looked up. */
  isPartial: boolean;
  /** Name of the line that was served last. */
  last: string;
  /** The same, when its lines were looked up. */
  lookedUpAt: string;
}

/** The tenant whose turn it is, and the line that it was served from last: its lines are to be looked up. */
interface TenantTurn {
  readonly kind: 'tenant';
  readonly tenantId: string;
  readonly last: Pick<Line, 'lane' | 'line'>;
}

type Turn = { readonly kind: 'line'; readonly line: WaitingLine } | TenantTurn;

const separator = '\n';
// In the order of lane and key, as the store has them: a lane has no character below the separator.
const nameIn = ({ lane, line }: Pick<Line, 'lane' | 'line'>): string => `${lane}${separator}${line}`;
const keyOf = (line: Line): string => `${line.rank}${separator}${nameIn(line)}`;
const isBefore = (a: Position, b: Position): boolean =>
  a.scheduledFor < b.scheduledFor || (a.scheduledFor === b.scheduledFor && a.id < b.id);

const lineOf = (name: string): Pick<Line, 'lane' | 'line'> => {
  const [lane = '', ...rest] = name.split(separator);
  return { lane, line: rest.join(separator) };
};

/** Of the names that count, the first one after `last`, or else the first of all. */
const nextOf = <T>(
  all: Iterable<T>,
  nameOf: (item: T) => string,
  last: string,
  counts: (item: T) => boolean = () => true,
) => {
  let first: T | undefined;
  let next: T | undefined;
  for (const item of all) {
    const name = nameOf(item);
    const isFirst = first === undefined || name < nameOf(first);
    const isNext = name > last && (next === undefined || name < nameOf(next));
    if (!(isFirst || isNext) || !counts(item)) continue;
    if (isFirst) first = item;
    if (isNext) next = item;
  }
  return { item: next ?? first, isFromStart: next === undefined };
};

/**
 * What one worker knows of the jobs that wait, and whose turn it is: tenants one after another, in each the lowest rank,
 * in that its lines one after another. It may name lines that others have emptied since.
 */
export const createWaitingLines = () => {
  const tenants = new Map<string, Tenant>();
  let lastTenant = '';
  const tenantOf = (tenantId: string, lines: Tenant['lines']): Tenant => {
    const known = tenants.get(tenantId);
    if (known !== undefined) return known;
    const tenant: Tenant = { lines, isPartial: false, last: '', lookedUpAt: '' };
    tenants.set(tenantId, tenant);
    return tenant;
  };
  const allowed = (tenant: Tenant, mayServe: (lane: string) => boolean): WaitingLine[] => {
    let lines: WaitingLine[] = [];
    for (const line of tenant.lines?.values() ?? [])
      if (mayServe(line.lane)) {
        const rank = lines[0]?.rank ?? line.rank;
        if (line.rank < rank) lines = [line];
        else if (line.rank === rank) lines.push(line);
      }
    return lines;
  };

  return {
    get isEmpty(): boolean {
      return tenants.size === 0;
    },
    get lastTenant(): string {
      return lastTenant;
    },
    /** How many lines there are at least. */
    get size(): number {
      let size = 0;
      for (const { lines } of tenants.values()) size += lines?.size ?? 1;
      return size;
    },
    clear(): void {
      tenants.clear();
    },
    /** The only tenants with waiting jobs, whose lines are to be looked up. */
    setTenants(ids: readonly string[]): void {
      const before = new Map(tenants);
      tenants.clear();
      for (const id of ids) {
        const last = before.get(id)?.last ?? '';
        tenants.set(id, { lines: null, isPartial: false, last, lookedUpAt: '' });
      }
    },
    setLines(tenantId: string, lines: readonly WaitingLine[], isPartial: boolean): void {
      if (lines.length === 0) {
        tenants.delete(tenantId);
        return;
      }
      const tenant = tenantOf(tenantId, null);
      tenant.lines = new Map(lines.map((line) => [keyOf(line), line]));
      tenant.isPartial = isPartial;
      tenant.lookedUpAt = tenant.last;
    },
    /** A job that waits. */
    add(line: WaitingLine): void {
      const { lines } = tenantOf(line.tenantId, new Map());
      const known = lines?.get(keyOf(line));
      if (known === undefined || isBefore(line.from, known.from)) lines?.set(keyOf(line), line);
    },
    next(mayServe: (lane: string) => boolean): Turn | null {
      const tenantId = nextOf(
        tenants.keys(),
        (id) => id,
        lastTenant,
        (id) => {
          const lines = tenants.get(id)?.lines;
          return lines === null || lines?.values().some(({ lane }) => mayServe(lane)) === true;
        },
      ).item;
      const tenant = tenantId === undefined ? undefined : tenants.get(tenantId);
      if (tenantId === undefined || tenant === undefined) return null;
      const { item: line, isFromStart } = nextOf(allowed(tenant, mayServe), nameIn, tenant.last);
      const isUnknown = tenant.isPartial && isFromStart && tenant.last !== tenant.lookedUpAt;
      if (line !== undefined && !isUnknown) return { kind: 'line', line };
      return { kind: 'tenant', tenantId, last: lineOf(tenant.last) };
    },
    /** Tenants whose lines are not known, the next ones after this one in their order: their turns come soon. */
    unknownAfter(tenantId: string, most: number): readonly Pick<TenantTurn, 'tenantId' | 'last'>[] {
      const unknown = [...tenants.keys()].filter((id) => id !== tenantId && tenants.get(id)?.lines === null).sort();
      const start = unknown.findIndex((id) => id > tenantId);
      const inTurn = start < 0 ? unknown : [...unknown.slice(start), ...unknown.slice(0, start)];
      return inTurn.slice(0, most).map((id) => ({ tenantId: id, last: lineOf(tenants.get(id)?.last ?? '') }));
    },
    /** The last job that was taken from a line; null: others were faster. `isOver`: there are no more in it. */
    served(line: WaitingLine, last: Position | null, isOver: boolean): void {
      const tenant = tenants.get(line.tenantId);
      if (tenant === undefined) return;
      if (last !== null) {
        lastTenant = line.tenantId;
        tenant.last = nameIn(line);
        tenant.lines?.set(keyOf(line), { ...line, from: last });
      }
      if (isOver) tenant.lines?.delete(keyOf(line));
      if (tenant.lines?.size !== 0) return;
      if (tenant.isPartial) tenant.lines = null;
      else tenants.delete(line.tenantId);
    },
  };
};

export type WaitingLines = ReturnType<typeof createWaitingLines>;
