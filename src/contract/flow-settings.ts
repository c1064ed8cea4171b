import Type, { type Static, type TProperties } from 'typebox';
import { nullable } from './schema.ts';

export const singletonModes = ['Skip', 'Replace'] as const;
/** And -100 is the lowest. */
export const highestPriority = 100;
/** Of every flow, whoever states it. */
export const flowLimits = {
  mostStarts: 10_000,
  shortestMs: 1000,
  longestMs: 30 * 86_400_000,
  longestKey: 256,
  mostValues: 100,
} as const;
type SingletonMode = (typeof singletonModes)[number];

/** How queued runs are let in. `keyed`: what the keys lead into, with an example. */
export const flowSettings = (keyed: string, options: { readonly additionalProperties?: false } = {}) => {
  const key = Type.Optional(
    nullable(
      Type.String({
        description: `JSON Pointer (RFC 6901) into ${keyed}; at most 256 characters. Runs are counted for each value found; without a key, together`,
      }),
    ),
  );
  const gate = <T extends TProperties>(members: T, description: string) =>
    Type.Optional(nullable(Type.Object({ ...members, key }, options), { description }));
  const windowLimit = {
    limit: Type.Integer({ description: '1..10000' }),
    window: Type.String({ description: 'Duration, 1s to 30d' }),
  };
  const debounce = {
    window: Type.String({
      description: 'Duration, 1s to 30d, that a queued run waits for another one to replace it',
    }),
    maxWait: Type.Optional(
      nullable(
        Type.String({
          description: 'Duration, from window to 30d: maximum time from the first of these runs to the start of one',
        }),
      ),
    ),
  };
  const mode = Type.Optional(
    Type.Unsafe<SingletonMode>({
      type: 'string',
      description: `One of ${singletonModes.join(', ')}`,
      examples: singletonModes,
      default: 'Skip',
    }),
  );
  const placeLimit = {
    limit: Type.Integer({ description: '1..10000: maximum number of runs at work at once, over all processes' }),
  };
  const priority = {
    key: Type.Optional(
      nullable(
        Type.String({
          description: `JSON Pointer (RFC 6901) into ${keyed}; at most 256 characters. Without values, the integer found is the priority`,
        }),
      ),
    ),
    values: Type.Optional(
      nullable(
        Type.Record(Type.String(), Type.Integer(), {
          maxProperties: 1000,
          description: 'Priorities by the value found at key, each -100..100',
        }),
      ),
    ),
    default: Type.Optional(
      Type.Integer({ default: 0, description: '-100..100: priority if key finds none. Default 0' }),
    ),
  };
  return Type.Object(
    {
      rateLimit: gate(windowLimit, 'A queued run over the limit is recorded as Canceled and does not start'),
      throttle: gate(windowLimit, 'A queued run over the limit starts in the next window with headroom'),
      debounce: gate(debounce, 'A queued run replaces the one that waits. Not with throttle or singleton'),
      singleton: gate(
        { mode },
        'While a queued run waits or executes, others are recorded as Canceled (Skip) or replace it (Replace)',
      ),
      concurrency: gate(placeLimit, 'A queued run over the limit waits until another one is no longer at work'),
      priority: Type.Optional(
        nullable(Type.Object(priority, options), {
          description: 'Of the waiting runs of a tenant, those with a higher priority start first',
        }),
      ),
    },
    options,
  );
};
export type FlowSettings = Static<ReturnType<typeof flowSettings>>;
