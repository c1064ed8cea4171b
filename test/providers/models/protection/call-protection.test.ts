import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ModelCallError, type ModelErrorType } from '../../../../src/providers/models/model-error.ts';
import { createCallProtection } from '../../../../src/providers/models/protection/call-protection.ts';
import type { CircuitState } from '../../../../src/providers/models/protection/circuit-breaker.ts';

const error = (type: ModelErrorType, httpStatus?: number): ModelCallError =>
  new ModelCallError(type, 'It failed.', { provider: 'p', httpStatus });

interface Setup {
  readonly enabled?: boolean;
  readonly maxConcurrentCalls?: number;
}

/** Three failures open the circuit, for 10 seconds of a clock that only the test moves. */
const world = ({ enabled = true, maxConcurrentCalls }: Setup = {}) => {
  let time = 0;
  const changes: CircuitState[] = [];
  const waits: number[] = [];
  const protection = createCallProtection(
    {
      circuit: { enabled, failureThreshold: 3, breakDurationMs: 10_000 },
      maxConcurrentCalls: maxConcurrentCalls ?? null,
    },
    () => time,
    { circuitChanged: (_provider, state) => changes.push(state), waited: (_provider, s) => waits.push(s) },
  );
  const { signal } = new AbortController();
  const admit = (provider = 'p', owner: string | null = null) => protection.admit(provider, owner, signal);
  const now = (provider = 'p', owner: string | null = null) => {
    const permit = admit(provider, owner);
    assert.ok(!(permit instanceof Promise), 'nobody waits');
    return permit;
  };
  return {
    protection,
    admit,
    now,
    changes,
    waits,
    fail: (
      times: number,
      type: ModelErrorType = 'provider_unavailable',
      status?: number,
      owner: string | null = null,
    ) => {
      for (let at = 0; at < times; at += 1) now('p', owner).failed(error(type, status));
    },
    pass: (ms: number) => {
      time += ms;
    },
  };
};

const isOpen = (pattern: RegExp, retryAfterMs: number) => (thrown: unknown) => {
  assert.ok(thrown instanceof ModelCallError);
  assert.equal(thrown.type, 'circuit_open');
  assert.equal(thrown.retryAfterMs, retryAfterMs);
  assert.match(thrown.message, pattern);
  return true;
};

test('MODEL-17, RUN-65 failures in a row open the circuit; a success in between starts the count anew', () => {
  const { fail, now, pass, changes, protection } = world();
  fail(2);
  now().succeeded();
  fail(2);
  assert.equal(protection.circuit('p'), 'closed');
  fail(1);
  assert.equal(protection.circuit('p'), 'open');
  pass(2500);
  assert.throws(() => now(), isOpen(/"p" is not called after 3 failures in a row; it is tried again in 8 s/, 7500));
  assert.deepEqual(changes, ['open']);
  assert.deepEqual([...protection.open()], [['p', 1]]);
});

test('MODEL-17 connection errors, timeouts, 429 and 5xx count; other refusals, filters and cancels do not', () => {
  for (const [type, status] of [
    ['provider_unavailable', undefined],
    ['provider_timeout', undefined],
    ['provider_rate_limited', 429],
    ['provider_error', 503],
  ] as const) {
    const { fail, protection } = world();
    fail(3, type, status);
    assert.equal(protection.circuit('p'), 'open', `${type} ${status}`);
  }
  const { fail, protection } = world();
  fail(2);
  for (const [type, status] of [
    ['provider_error', 401],
    ['provider_error', 400],
    ['context_overflow', 400],
    ['content_filtered', undefined],
    ['provider_credential_unresolved', undefined],
    ['canceled', undefined],
  ] as const)
    fail(3, type, status);
  assert.equal(protection.circuit('p'), 'closed');
  // They did not reset the count either.
  fail(1);
  assert.equal(protection.circuit('p'), 'open');
});

test('MODEL-18 after the break one call probes and the rest fail; success closes, a fault opens again', () => {
  const { fail, now, pass, changes, protection } = world();
  fail(3);
  pass(10_000);
  const probe = now();
  assert.equal(protection.circuit('p'), 'half_open');
  assert.throws(() => now(), isOpen(/"p"/, 1000));
  probe.failed(error('provider_error', 500));
  assert.equal(protection.circuit('p'), 'open');
  assert.throws(() => now(), isOpen(/after 4 failures/, 10_000));
  pass(10_000);
  now().succeeded();
  assert.equal(protection.circuit('p'), 'closed');
  fail(2);
  assert.equal(protection.circuit('p'), 'closed', 'the count began anew');
  assert.deepEqual(changes, ['open', 'half_open', 'open', 'half_open', 'closed']);
});

test('MODEL-18 OBS-31 a circuit is half open once its time has passed, though nobody has called', () => {
  const { fail, pass, changes, now, protection } = world();
  fail(3);
  pass(9_999);
  assert.equal(protection.circuit('p'), 'open');
  assert.equal(protection.open().size, 1);
  pass(1);
  assert.equal(protection.circuit('p'), 'half_open');
  assert.equal(protection.open().size, 0);
  assert.deepEqual(changes, ['open', 'half_open']);
  now().succeeded();
  assert.equal(protection.circuit('p'), 'closed');
});

test('MODEL-18 a probe that says nothing about the provider leaves the probe to the next call', () => {
  const { fail, now, pass, protection } = world();
  fail(3);
  pass(10_000);
  now().failed(error('canceled'));
  assert.equal(protection.circuit('p'), 'half_open');
  now().succeeded();
  assert.equal(protection.circuit('p'), 'closed');
});

test('MODEL-18 a call that began before the circuit opened does not decide about it', () => {
  const { fail, now, protection } = world();
  const early = now();
  fail(3);
  early.succeeded();
  assert.equal(protection.circuit('p'), 'open');
});

test("MODEL-16 a tenant's own credential has a circuit of its own", () => {
  const { fail, now, protection } = world();
  fail(3, 'provider_unavailable', undefined, 'acme');
  assert.throws(() => now('p', 'acme'), isOpen(/"p"/, 10_000));
  now('p', 'globex').succeeded();
  now('p').succeeded();
  now('q').succeeded();
  assert.equal(protection.circuit('p'), 'closed');
  assert.deepEqual([...protection.open()], [['p', 1]]);
});

test('MODEL-20 switched off, no call is refused', () => {
  const { fail, now, protection } = world({ enabled: false });
  fail(20);
  now().succeeded();
  assert.equal(protection.circuit('p'), 'closed');
});

test('MODEL-21, RUN-66 calls beyond the limit wait in order, apart for each provider; a canceled one leaves the line', async () => {
  const { protection, admit, now, waits } = world({ maxConcurrentCalls: 2 });
  const first = now();
  const second = now();
  now('other').succeeded();
  const order: string[] = [];
  const wait = async (name: string) => {
    const permit = await admit();
    order.push(name);
    return permit;
  };
  const third = wait('third');
  const gone = new AbortController();
  const left = Promise.resolve(protection.admit('p', null, gone.signal));
  const fourth = wait('fourth');
  gone.abort();
  await assert.rejects(left, (thrown) => thrown instanceof ModelCallError && thrown.type === 'canceled');
  first.succeeded();
  const thirdPermit = await third;
  assert.deepEqual(order, ['third']);
  second.failed(error('provider_error', 400));
  const fourthPermit = await fourth;
  assert.deepEqual(order, ['third', 'fourth']);
  assert.equal(waits.length, 2);
  thirdPermit.succeeded();
  fourthPermit.succeeded();
  now().succeeded();
});

test('MODEL-21 a call that waited is refused when the circuit opened meanwhile, and gives its place to the next', async () => {
  const { fail, admit, now } = world({ maxConcurrentCalls: 4 });
  const held = [now(), now(), now(), now()];
  const waiting = Promise.resolve(admit());
  for (const permit of held) permit.failed(error('provider_unavailable'));
  await assert.rejects(waiting, (thrown) => thrown instanceof ModelCallError && thrown.type === 'circuit_open');
  assert.throws(
    () => fail(1),
    (thrown) => thrown instanceof ModelCallError && thrown.type === 'circuit_open',
  );
});
