import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load, problemAt, refuse } from './config-folder.ts';

const key = 'Service:Scheduling:LaneFlows';
const yaml = (flows: string, lanes = '{ acp.webhook-delivery: own, acp.retention: own }'): string =>
  `Service: { Scheduling: { LaneByHandlerKey: ${lanes}, LaneFlows: ${flows} } }`;

test('CONF-14 FLOW a lane has the gates of a flow, from the file and from variables', () => {
  const { LaneFlows } = load({
    yaml: yaml(
      '{ default: { RateLimit: { Limit: 2, Window: 1h } }, mails: { Singleton: {}, Throttle: { Limit: 1, Window: 30d, Key: /to } } }',
    ),
    env: {
      Service__Scheduling__LaneFlows__mails__Priority__Values__gold: '7',
      Service__Scheduling__LaneFlows__mails__Priority__Key: '/plan',
    },
  }).values.Service.Scheduling;
  const none = { RateLimit: null, Throttle: null, Debounce: null, Singleton: null, Concurrency: null, Priority: null };
  assert.deepEqual(LaneFlows, {
    default: { ...none, RateLimit: { Limit: 2, Window: 3_600_000, Key: null } },
    mails: {
      ...none,
      Singleton: { Mode: 'Skip', Key: null },
      Throttle: { Limit: 1, Window: 30 * 86_400_000, Key: '/to' },
      Priority: { Key: '/plan', Values: { gold: 7 }, Default: 0 },
    },
  });
});

test('CONF-14 FLOW what a flow cannot have is refused with its member', () => {
  for (const [flow, member, expected] of [
    ['RateLimit: { Window: 1h }', 'RateLimit:Limit', /required|expected/],
    ['RateLimit: { Limit: 0, Window: 1h }', 'RateLimit:Limit', /1/],
    ['Throttle: { Limit: 10001, Window: 1h }', 'Throttle:Limit', /10000/],
    ['Throttle: { Limit: 1, Window: 31d }', 'Throttle:Window', /at most 30 days/],
    ['Throttle: { Limit: 1, Window: 999ms }', 'Throttle:Window', /at least 1s/],
    ['Concurrency: { Limit: 1, Key: customer }', 'Concurrency:Key', /JSON Pointer/],
    [`Concurrency: { Limit: 1, Key: /${'a'.repeat(256)} }`, 'Concurrency:Key', /256/],
    ['Singleton: { Mode: Queue }', 'Singleton:Mode', /Skip.*Replace/],
    ['Priority: { Key: /a, Values: { low: -101 } }', 'Priority:Values:low', /-100/],
    ['Priority: { Values: { low: 1 } }', 'Priority:Values', /expected a Key/],
    [
      `Priority: { Key: /a, Values: { ${Array.from({ length: 101 }, (_, n) => `v${n}: 1`).join()} } }`,
      'Priority:Values',
      /at most 100/,
    ],
    ['Debounce: { Window: 1m, MaxWait: 59s }', 'Debounce:MaxWait', /at least Window/],
    ['Debounce: { Window: 1m }, Singleton: {}', 'Debounce', /no Singleton/],
    ['Debounce: { Window: 1m }, Throttle: { Limit: 1, Window: 1m }', 'Debounce', /no Throttle/],
  ] as const)
    assert.match(
      problemAt(refuse({ yaml: yaml(`{ mails: { ${flow} } }`) }), `${key}:mails:${member}`).message,
      expected,
    );
  problemAt(refuse({ yaml: yaml(`{ ${'a'.repeat(65)}: {} }`) }), `${key}:${'a'.repeat(65)}`);
});

test('CONF-14 FLOW the lanes of deliveries and of sweeps have none', () => {
  const flow = '{ Concurrency: { Limit: 1 } }';
  for (const [lanes, lane, own] of [
    ['{}', 'default', 'acp.webhook-delivery'],
    ['{ acp.webhook-delivery: mails }', 'mails', 'acp.webhook-delivery'],
    ['{ acp.webhook-delivery: own }', 'default', 'acp.retention'],
    ['{ acp.retention: mails }', 'mails', 'acp.retention'],
  ] as const) {
    const { message } = problemAt(refuse({ yaml: yaml(`{ ${lane}: ${flow} }`, lanes) }), `${key}:${lane}`);
    assert.match(message, new RegExp(`give ${own.replace('.', '\\.')} another lane`));
  }
  load({ yaml: yaml(`{ mails: ${flow} }`, '{}') });
  load({ yaml: yaml(`{ default: ${flow} }`) });
});
