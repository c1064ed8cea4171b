import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { closed, nullable } from '../../src/contract/schema.ts';
import { operationEntries } from '../../src/core/dispatch.ts';
import { compileChecker } from '../../src/core/validate.ts';
import { operations } from '../../src/operations.ts';

interface Shape {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly patternProperties?: Readonly<Record<string, Shape>>;
  readonly anyOf?: readonly Shape[];
}

interface Found {
  readonly path: string;
  readonly shape: Shape;
  /** The least value that has `inner` at the path. */
  around(inner: unknown): unknown;
}

/** All parts of a schema, each with the way to it. */
const partsOf = (shape: Shape, path = '', around: Found['around'] = (inner) => inner): Found[] => [
  { path, shape, around },
  ...Object.entries(shape.properties ?? {}).flatMap(([name, member]) =>
    partsOf(member, path === '' ? name : `${path}.${name}`, (inner) => around({ [name]: inner })),
  ),
  ...(shape.items === undefined ? [] : partsOf(shape.items, `${path}[0]`, (inner) => around([inner]))),
  ...(shape.anyOf ?? []).flatMap((branch) => partsOf(branch, path, around)),
];

/** A list that nobody may look into. */
const unseen = (length: number): unknown =>
  new Proxy([], {
    get(_list, name) {
      if (name === 'length') return length;
      throw new Error(`${String(name)} was looked at`);
    },
  });

const bodies = operationEntries(operations).flatMap(({ id, operation }) =>
  operation.body === undefined ? [] : [{ id, schema: operation.body }],
);

test('JOB-12 a list with a maximum is refused by its length, whatever is in it, in each body', () => {
  let seen = 0;
  for (const { id, schema } of bodies) {
    const checker = compileChecker(schema);
    for (const { path, shape, around } of partsOf(schema as Shape)) {
      const { maxItems } = shape;
      if (maxItems === undefined) continue;
      seen += 1;
      const body = checker.normalize(around(unseen(maxItems + 1)));
      assert.equal(checker.check(body), false, `${id} ${path}`);
      assert.deepEqual(checker.errors(body), [{ path, message: `must not have more than ${maxItems} items` }], id);
    }
  }
  assert.ok(seen >= 20, String(seen));
});

test('JOB-12 each body bounds how many members it may have where their names are free, and where they are not', () => {
  const unbounded = bodies.flatMap(({ id, schema }) =>
    partsOf(schema as Shape)
      .filter(({ shape }) => shape.patternProperties !== undefined && shape.maxProperties === undefined)
      .map(({ path }) => `${id} ${path}`),
  );
  assert.deepEqual(unbounded, []);
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`k${n}`, 1]));
  const checker = compileChecker(
    closed({ free: Type.Optional(Type.Record(Type.String(), Type.String(), { maxProperties: 20 })) }),
  );
  assert.deepEqual(checker.errors(many), [{ path: '', message: 'has more than 1000 members' }]);
  assert.deepEqual(checker.errors({ free: many }), [
    { path: 'free', message: 'must not have more than 20 properties' },
  ]);
});

test('errors in a list that may be long name the elements as they stand in it, eight at most', () => {
  const part = closed({ text: Type.String() });
  const checker = compileChecker(
    closed({
      items: nullable(
        Type.Array(
          closed({ parts: Type.Union([Type.String(), Type.Array(part)]), 'a/b': Type.Optional(Type.Array(part)) }),
        ),
      ),
    }),
  );
  const fitting = { parts: 'a' };
  const parts = Array.from({ length: 300 }, (_, at) => ({ text: at === 250 ? 1 : 'a' }));
  const paths = (items: unknown): string[] => checker.errors({ items }).map(({ path }) => path);
  const items = [...Array(100).fill(fitting), { parts }, ...Array(100).fill(fitting), 7, { ...fitting, 'a/b': parts }];
  assert.deepEqual(paths(items).sort(), ['items[100].parts[250].text', 'items[201]', 'items[202].a/b[250].text']);
  assert.deepEqual(paths(items.slice(190)), ['items[11]', 'items[12].a/b[250].text'], 'a short one, too');
  assert.equal(checker.check({ items: Array(100).fill(fitting) }), true);
  assert.deepEqual(
    paths(Array(100_000).fill(7)),
    Array.from({ length: 8 }, (_, at) => `items[${at}]`),
  );
  const names = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, 1]));
  assert.equal(checker.errors({ items: null, ...names }).length, 8);
  const pairs = compileChecker(closed({ items: Type.Array(closed({ a: Type.String(), b: Type.String() })) }));
  assert.equal(pairs.errors({ items: Array(20).fill({}) }).length, 8);
});

test('errors of one element cost no second look at the thousands beside it', () => {
  const checker = compileChecker(closed({ items: Type.Array(closed({ text: Type.String() })) }));
  let looks = 0;
  const element = (text: unknown): object =>
    Object.defineProperty({}, 'text', {
      enumerable: true,
      get() {
        looks += 1;
        return text;
      },
    });
  const items = [...Array.from({ length: 5000 }, () => element('a')), element(7)];
  assert.equal(checker.check({ items }), false);
  const once = looks;
  looks = 0;
  assert.deepEqual(checker.errors({ items }), [{ path: 'items[5000].text', message: 'must be string' }]);
  assert.ok(looks <= once + 100, `${looks} after ${once}`);
});
