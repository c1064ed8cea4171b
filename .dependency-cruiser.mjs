/**
 * The dependency rule of docs/architecture.md. `test/architecture` proves that every rule sees the code: it counts the
 * cruised modules and cruises a fixture that breaks each rule once.
 */
const packages = (...names) => names.map((name) => `node_modules/${name}/`);
const layer = (...names) => names.map((name) => `^src/${name}(/|\\.ts$)`);

const transports = ['http', 'client', 'cli', 'tui', 'module'];
const feature = '^src/features/';
const featureRoom = '^src/features/[^/]+/[^/]+/';
const room = '^src/engine/[^/]+/';
const roomFace = '^src/engine/[^/]+/index\\.ts$';
/** Who writes the hot log, with what goes in its commits; see docs/architecture.md. */
const batched = [
  '^src/engine/record/run-log(-ports)?\\.ts$',
  '^src/engine/lifecycle/engine-ports\\.ts$',
  '^src/features/jobs/grouped-queue\\.ts$',
  '^src/features/quotas/(index|quota-keeping|(quota-(holds|counters)|shared-holds)\\.store)\\.ts$',
  '^src/features/runs/(index|response-cache\\.store|launch/queued-runs)\\.ts$',
  '^src/features/webhooks/(index|webhook-delivery\\.job)\\.ts$',
  '^src/features/sessions/(index|turns/session-(locks|places))\\.ts$',
];
const declarations = '\\.(schema|operations)\\.ts$';
const typeOnly = ['type-only', 'type-import'];

/** Each layer, and what lies above it. */
const layers = [
  {
    name: 'core',
    above: ['db', 'providers', 'scheduler', 'engine', 'features', 'operations', 'app', ...transports, 'main'],
  },
  { name: 'db', above: ['providers', 'scheduler', 'engine', 'features', 'operations', 'app', ...transports, 'main'] },
  { name: 'providers', above: ['db', 'scheduler', 'engine', 'features', 'operations', 'app', ...transports, 'main'] },
  { name: 'scheduler', above: ['db', 'providers', 'engine', 'features', 'operations', 'app', ...transports, 'main'] },
  { name: 'engine', above: ['features', 'operations', 'app', ...transports, 'main'] },
  { name: 'features', above: ['operations', 'app', ...transports, 'main'] },
  { name: 'app', above: [...transports, 'main'] },
  { name: 'http', above: ['client', 'cli', 'tui', 'module', 'main'] },
  { name: 'module', above: ['client', 'cli', 'tui', 'main'] },
  {
    name: 'text',
    above: ['core', 'db', 'providers', 'scheduler', 'engine', 'operations', 'app', ...transports, 'main'],
  },
  { name: 'client', above: ['cli', 'tui', 'main'] },
  { name: 'cli', above: ['main', 'module'] },
  { name: 'tui', above: ['cli', 'main', 'module'] },
];

const layerRules = layers.map(({ name, above }) => ({
  name: `layer-${name}`,
  comment: `${name} is below ${above.join(', ')}.`,
  severity: 'error',
  from: { path: layer(name) },
  to: { path: layer(...above) },
}));

/** The rooms of the engine, from the lowest up: each knows those before it, and none of those after it. */
const rooms = [
  ['tools', '^src/engine/tools/'],
  ['nouns', '^src/engine/(?!active-run)[^/]+\\.ts$'],
  ['context', '^src/engine/context/'],
  ['record', '^src/engine/record/'],
  ['control', '^src/engine/control/'],
  ['run', '^src/engine/active-run\\.ts$'],
  ['turn', '^src/engine/turn/'],
  ['lifecycle', '^src/engine/lifecycle/'],
];

/** What lies in a room of several, from the lowest up: folders, and the files beside them. */
const floors = {
  context: [
    ['words', '(?!index\\.ts)[^/]+\\.ts$'],
    ['compaction', 'compaction/'],
    ['face', 'index\\.ts$'],
  ],
  control: [
    ['guards', 'guards/'],
    ['beside', '[^/]+\\.ts$'],
  ],
  turn: [
    ['ports', '(turn-ports|answer-checks)\\.ts$'],
    ['model', 'model/'],
    ['calls', 'calls/'],
    ['loop', 'loop/'],
    ['beside', '(?!turn-ports|answer-checks)[^/]+\\.ts$'],
  ],
};

/** Each knows those before it, and none of those after it. */
const upward = (place, order) =>
  order.slice(0, -1).map(([name, path], index) => {
    const above = order.slice(index + 1);
    return {
      name: `${place}-${name}`,
      comment: `${name} is below ${above.map(([other]) => other).join(', ')}.`,
      severity: 'error',
      from: { path },
      to: { path: above.map(([, other]) => other) },
    };
  });

const roomRules = [
  ...upward('room', rooms),
  ...Object.entries(floors).flatMap(([name, order]) =>
    upward(
      name,
      order.map(([floor, path]) => [floor, `^src/engine/${name}/${path}`]),
    ),
  ),
];

export default {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Values and types alike: a cycle means that two files are one.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-feature-folder-cycles',
      comment: 'Two features that need each other want a third, or a port.',
      severity: 'error',
      scope: 'folder',
      from: { path: feature },
      to: { circular: true, path: feature },
    },
    {
      name: 'no-feature-internals',
      comment: 'A feature is used through its index.ts.',
      severity: 'error',
      from: { path: '^src/features/([^/]+)/', pathNot: declarations },
      to: { path: feature, pathNot: ['^src/features/$1/', '^src/features/[^/]+/index\\.ts$'] },
    },
    {
      name: 'no-feature-internals-from-outside',
      comment: 'What composes or transports features takes their index.ts or their declarations.',
      severity: 'error',
      from: { path: '^src/', pathNot: feature },
      to: { path: feature, pathNot: ['^src/features/[^/]+/index\\.ts$', declarations] },
    },
    {
      name: 'no-room-internals',
      comment: 'A room of the engine is used through its index.ts.',
      severity: 'error',
      from: { path: '^src/engine/([^/]+)/' },
      to: { path: room, pathNot: ['^src/engine/$1/', roomFace] },
    },
    {
      name: 'no-room-internals-from-outside',
      comment: 'Features and what lies beside the rooms take their index.ts.',
      severity: 'error',
      from: { path: '^src/', pathNot: room },
      to: { path: room, pathNot: roomFace },
    },
    {
      name: 'no-feature-room-internals',
      comment: 'A room of a feature (how runs are launched, how turns come to sessions) is used through its index.ts.',
      severity: 'error',
      from: { path: feature, pathNot: featureRoom },
      to: { path: featureRoom, pathNot: '/index\\.ts$' },
    },
    {
      name: 'contract-is-a-leaf',
      comment: 'What a caller may see is made of typebox alone.',
      severity: 'error',
      from: { path: ['^src/contract/', declarations], pathNot: '^(test|bench)/' },
      to: { path: '.', pathNot: ['^src/contract/', '\\.schema\\.ts$', ...packages('typebox')] },
    },
    {
      name: 'operations-table-is-data',
      comment: 'The table of tables holds operations and nothing that runs.',
      severity: 'error',
      from: { path: '^src/operations\\.ts$' },
      to: { path: '.', pathNot: ['^src/contract/', '\\.operations\\.ts$'] },
    },
    {
      name: 'features-know-no-transport',
      comment: 'Rules and agents run the same behind every transport.',
      severity: 'error',
      from: { path: layer('features', 'engine') },
      to: { path: [...layer(...transports), ...packages('fastify', 'commander', 'ink')] },
    },
    {
      name: 'sql-only-in-stores',
      comment: 'Queries live in *.store.ts; types of the builder may be named anywhere.',
      severity: 'error',
      from: { path: '^(src|migrations)/', pathNot: ['^src/db/', '\\.store\\.ts$', '^migrations/'] },
      to: { path: packages('kysely'), dependencyTypesNot: typeOnly },
    },
    {
      name: 'handles-only-in-stores',
      comment: 'A handle of the store is given to what is declared as a store, and to nothing else.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/db/', '\\.store\\.ts$'] },
      to: { path: '^src/db/define-store\\.ts$' },
    },
    {
      name: 'batched-path',
      comment:
        'Only what runs write as they start, go on and end shares commits; whatever else changes is a unit of work.',
      severity: 'error',
      from: { path: '^src/', pathNot: ['^src/db/', ...batched] },
      to: { path: '^src/db/batched-writes\\.ts$' },
    },
    {
      name: 'drivers-only-in-open',
      comment: 'What opens a store knows its driver; its types may be named beside it.',
      severity: 'error',
      from: { path: '^(src|migrations)/', pathNot: '^src/db/(sqlite/open\\.ts$|postgres/)' },
      to: { path: packages('better-sqlite3', 'pg', 'sqlite-vec'), dependencyTypesNot: typeOnly },
    },
    {
      name: 'client-is-light',
      comment: 'The client is carried by programs that have no server in them.',
      severity: 'error',
      from: { path: layer('client', 'operations') },
      to: {
        path: [
          ...layer('core', 'db', 'providers', 'scheduler', 'engine', 'http', 'app'),
          ...packages('fastify', 'kysely'),
        ],
        reachable: true,
      },
    },
    {
      name: 'screens-know-the-client',
      comment: 'Screens show what the client reads, over every transport alike.',
      severity: 'error',
      from: { path: layer('tui') },
      to: {
        path: ['^(src|migrations)/', ...packages('fastify', 'kysely', 'better-sqlite3', '@ai-sdk/[^/]+')],
        pathNot: ['^src/(tui|client|contract|text)/', '\\.schema\\.ts$'],
      },
    },
    {
      name: 'server-by-dynamic-import',
      comment:
        '`acp --help` loads no server and no screen: serve, migrate, local mode and tui import them when they run.',
      severity: 'error',
      from: { path: layer('main', 'cli') },
      to: {
        path: [
          ...layer('app', 'db', 'providers', 'scheduler', 'engine', 'http', 'module', 'tui'),
          '^src/features/[^/]+/(?![^/]*\\.(schema|operations)\\.ts$)',
          ...packages('fastify', 'kysely', 'better-sqlite3', '@ai-sdk/[^/]+', 'ink', 'react'),
        ],
        dynamic: false,
        dependencyTypesNot: typeOnly,
      },
    },
    {
      name: 'product-imports-no-tests',
      comment: 'What is shipped does not depend on what proves it.',
      severity: 'error',
      from: { path: '^(src|migrations)/' },
      to: { path: '^(test|bench)/' },
    },
    {
      name: 'only-declared-packages',
      comment: 'The product imports what package.json lists as a dependency, and only files that exist.',
      severity: 'error',
      from: { path: '^(src|migrations)/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'unknown', 'undetermined'] },
    },
    ...layerRules,
    ...roomRules,
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    // JSON modules count as modules of their own; only code is held to the rules.
    exclude: { path: '\\.json$' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
};
