import { pieces, type SimulatedToolCall } from './scenario.ts';

/** The `tool_calls` of one chunk each. */
type Chunks = object[][];

const call = (members: object, name: string | null, args: unknown): object => ({
  ...members,
  type: 'function',
  function: { ...(name !== null && { name }), ...(args !== null && { arguments: args }) },
});

/** One call after the other, each in pieces. */
const inPieces = (
  calls: readonly SimulatedToolCall[],
  first: (call: SimulatedToolCall, index: number, args: string) => object,
  rest: (call: SimulatedToolCall, index: number, args: string, nth: number) => object,
): Chunks =>
  calls.flatMap((made, index) =>
    pieces(made.arguments, 3).map((args, nth) => [nth === 0 ? first(made, index, args) : rest(made, index, args, nth)]),
  );

const whole = (members: (call: SimulatedToolCall, index: number) => object) => (calls: readonly SimulatedToolCall[]) =>
  calls.map((made, index) => [call(members(made, index), made.name, made.arguments)]);

const standard = (calls: readonly SimulatedToolCall[]): Chunks =>
  inPieces(
    calls,
    ({ id, name }, index, args) => call({ index, id }, name, args),
    (_, index, args) => call({ index }, null, args),
  );

/** How servers stream calls, by what is particular about index, id and name. */
export const toolCallForms: Readonly<Record<string, (calls: readonly SimulatedToolCall[]) => Chunks>> = {
  'pieces by index': standard,
  'an announcement without arguments first': (calls) => [
    ...calls.map(({ id, name }, index) => [call({ index, id }, name, '')]),
    ...calls.flatMap((made, index) => pieces(made.arguments, 3).map((args) => [call({ index }, null, args)])),
  ],
  'pieces of all calls mixed': (calls) => {
    const all = calls.map((made) => pieces(made.arguments, 3));
    return [0, 1, 2].map((nth) =>
      calls.map(({ id, name }, index) =>
        nth === 0 ? call({ index, id }, name, all[index]?.[0] ?? '') : call({ index }, null, all[index]?.[nth] ?? ''),
      ),
    );
  },
  'whole calls by index': whole(({ id }, index) => ({ index, id })),
  'whole calls in one chunk': (calls) => [whole(({ id }, index) => ({ index, id }))(calls).flat()],
  'an index and no id': whole((_, index) => ({ index })),
  'an id and no index': whole(({ id }) => ({ id })),
  'pieces by id and no index': (calls) =>
    inPieces(
      calls,
      ({ id, name }, _, args) => call({ id }, name, args),
      ({ id }, _, args) => call({ id }, null, args),
    ),
  'neither index nor id': whole(() => ({})),
  'pieces with neither index nor id': (calls) =>
    inPieces(
      calls,
      ({ name }, _, args) => call({}, name, args),
      (_made, _index, args) => call({}, null, args),
    ),
  'id and name again in every piece': (calls) =>
    inPieces(
      calls,
      ({ id, name }, index, args) => call({ index, id }, name, args),
      ({ id, name }, index, args) => call({ index, id }, name, args),
    ),
  'empty id and name in every later piece': (calls) =>
    inPieces(
      calls,
      ({ id, name }, index, args) => call({ index, id }, name, args),
      (_, index, args) => call({ index, id: '' }, '', args),
    ),
  'one index and an id for each call': whole(({ id }) => ({ index: 0, id })),
  'one index and no ids': whole(() => ({ index: 0 })),
  'one index and one id': whole(() => ({ index: 0, id: 'call_0' })),
  'pieces under one index with no ids': (calls) =>
    inPieces(
      calls,
      ({ name }, _, args) => call({ index: 0 }, name, args),
      ({ name }, _, args) => call({ index: 0 }, name, args),
    ),
  'the whole call repeated at the end': (calls) => [
    ...standard(calls),
    whole(({ id }, index) => ({ index, id }))(calls).flat(),
  ],
  'the whole call repeated without ids, under one index': (calls) => [
    ...whole(() => ({ index: 0 }))(calls),
    whole(() => ({ index: 0 }))(calls).flat(),
  ],
  'the whole call repeated in other words': (calls) => [
    ...standard(calls),
    calls.map(({ id, name, arguments: args }, index) =>
      call({ index, id }, name, JSON.stringify(JSON.parse(args), null, 1)),
    ),
  ],
  'a new id and the name again in every piece': (calls) =>
    inPieces(
      calls,
      ({ name }, index, args) => call({ index, id: `call_${index}_0` }, name, args),
      ({ name }, index, args, nth) => call({ index, id: `call_${index}_${nth}` }, name, args),
    ),
  'a new id and the name again in every piece, and an empty one at the end': (calls) =>
    calls.flatMap((made, index) =>
      [...pieces(made.arguments, 3), ''].map((args, nth) => [
        call({ index, id: `call_${index}_${nth}` }, made.name, args),
      ]),
    ),
  'a new id and the name again in every piece, and the whole call at the end': (calls) =>
    calls.flatMap((made, index) =>
      [...pieces(made.arguments, 3), made.arguments].map((args, nth) => [
        call({ index, id: `call_${index}_${nth}` }, made.name, args),
      ]),
    ),
  'arguments as an object': (calls) =>
    calls.map(({ id, name, arguments: args }, index) => [call({ index, id }, name, JSON.parse(args))]),
  'the name after the first arguments': (calls) =>
    inPieces(
      calls,
      ({ id }, index, args) => call({ index, id }, null, args),
      ({ name }, index, args, nth) => call({ index }, nth === 1 ? name : null, args),
    ),
};
