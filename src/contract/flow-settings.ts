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
        description: `JSON Pointer (RFC 6901) into ${keyed}; at most 256 characters. Runs count for each value that it finds; without it together`,
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
      description: 'Duration, 1s to 30d: how long a queued run waits for another to take its place',
    }),
    maxWait: Type.Optional(
      nullable(
        Type.String({
          description: 'Duration, from window to 30d: how long after the first of them one starts at the latest',
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
    limit: Type.Integer({ description: '1..10000: so many are at work at once, over all processes' }),
  };
  const priority = {
    key: Type.Optional(
      nullable(
        Type.String({
          description: `JSON Pointer (RFC 6901) into ${keyed}; at most 256 characters. Without values, the integer that it finds is the priority`,
        }),
      ),
    ),
    values: Type.Optional(
      nullable(
        Type.Record(Type.String(), Type.Integer(), {
          maxProperties: 1000,
          description: 'Priorities by what is found at key, each -100..100',
        }),
      ),
    ),
    default: Type.Optional(Type.Integer({ default: 0, description: '-100..100, where key finds none. Default 0' })),
  };
  return Type.Object(
    {
      rateLimit: gate(windowLimit, 'A queued run over it is recorded as Canceled and does not start'),
      throttle: gate(windowLimit, 'A queued run over it starts in the next window that has room'),
      debounce: gate(debounce, 'A queued run takes the place of the one that waits. Not with throttle or singleton'),
      singleton: gate(
        { mode },
        'While a queued run waits or executes, others are recorded as Canceled (Skip), or take its place (Replace)',
      ),
      concurrency: gate(placeLimit, 'A queued run over it waits until another one is no longer at work'),
      priority: Type.Optional(
        nullable(Type.Object(priority, options), {
          description: 'Of the waiting runs of a tenant those with a higher one start first',
        }),
      ),
    },
    options,
  );
};
export type FlowSettings = Static<ReturnType<typeof flowSettings>>;
