import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verifyWebhook } from '../../src/core/received-webhook.ts';
import { signWebhook } from '../../src/core/standard-webhooks.ts';
import {
  type SignedHeaders,
  signatureHeaders,
  type WebhookSchemeName,
  webhookScheme,
  webhookSchemes,
} from '../../src/core/webhook-schemes.ts';

/** What the documentation of each sender shows, or was recorded of it. */
const recorded: Readonly<
  Record<WebhookSchemeName, { secret: string; at: number; body: string; headers: Readonly<Record<string, string>> }>
> = {
  standard: {
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    at: 1_614_265_330,
    body: '{"test": 2432232314}',
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
  },
  github: {
    secret: "It's a Secret to Everybody",
    at: 1_700_000_000,
    body: 'Hello, World!',
    headers: {
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    },
  },
  stripe: {
    secret: 'whsec_wRNftLajMZNeslQOP6vEPm4iVx5NlZ6z',
    at: 1_680_064_028,
    body: '{\n  "id": "evt_1MqqbKLt4dXK03v5qaIbiNCC",\n  "object": "event",\n  "type": "customer.subscription.updated"\n}',
    headers: {
      'stripe-signature':
        't=1680064028,v1=13e72d283d2f2f2a360876be349fbf44513c186d54e422d2814f82b1fa4798ec,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39',
    },
  },
  slack: {
    secret: '8f742231b10e8888abcd99yyyzzz85a5',
    at: 1_531_420_618,
    body: 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
    headers: {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
  },
};

const fault = (
  scheme: WebhookSchemeName,
  { headers, body, secrets, at }: { headers?: SignedHeaders; body?: string; secrets?: readonly string[]; at?: number },
) => {
  const example = recorded[scheme];
  return webhookScheme[scheme].fault(
    secrets ?? [example.secret],
    headers ?? example.headers,
    Buffer.from(body ?? example.body),
    { now: (at ?? example.at) * 1000, toleranceMs: 300_000 },
  );
};

for (const scheme of webhookSchemes) {
  const { headers, body, secret, at } = recorded[scheme];

  test(`TRIGGER-14 ${scheme}: the recorded example is authentic, with the right secret alone`, () => {
    assert.equal(fault(scheme, {}), null);
    assert.equal(fault(scheme, { secrets: ['next', 'another', secret] }), null, 'while it rotates');
    assert.equal(fault(scheme, { secrets: ['a', 'b', 'c', secret] }), 'wrong-signature', 'a fourth is none');
    assert.equal(fault(scheme, { secrets: ['another'] }), 'wrong-signature');
    assert.equal(fault(scheme, { secrets: [] }), 'no-secret');
    assert.equal(fault(scheme, { secrets: [''] }), 'no-secret');
  });

  test(`TRIGGER-14 ${scheme}: a changed body, and a header that is missing, empty or changed, is refused`, () => {
    assert.equal(fault(scheme, { body: `${body} ` }), 'wrong-signature');
    assert.equal(fault(scheme, { body: '' }), 'wrong-signature');
    assert.notEqual(fault(scheme, { headers: {} }), null);
    for (const [name, value] of Object.entries(headers))
      for (const wrong of [undefined, '', ' ', 'x', value.slice(0, -1), value.toUpperCase(), `${value}0`]) {
        if (wrong === value) continue;
        // An id of GitHub is signed by nobody.
        if (name === 'x-github-delivery' && wrong !== undefined && wrong !== '') continue;
        const headersThen = { ...headers, [name]: wrong };
        // Of several signatures in one header the last one does not count here.
        if (name === 'stripe-signature' && wrong !== undefined && wrong.startsWith('t=1680064028,v1=')) continue;
        assert.notEqual(fault(scheme, { headers: headersThen }), null, `${name}: ${wrong}`);
      }
  });

  test(`TRIGGER-15 ${scheme}: ${scheme === 'github' ? 'no time is signed' : 'the time may be off by the tolerance'}`, () => {
    const late = scheme === 'github' ? null : 'late';
    for (const offset of [300, -300]) assert.equal(fault(scheme, { at: at + offset }), null);
    for (const offset of [301, -301, 1e8]) assert.equal(fault(scheme, { at: at + offset }), late, `${offset}`);
  });

  test(`TRIGGER-14 ${scheme}: what is signed here is authentic, and in its headers alone`, () => {
    const signed = webhookScheme[scheme].sign(secret, { id: 'evt-1', timestamp: at, body });
    assert.ok(signed !== null);
    assert.equal(fault(scheme, { headers: signed }), null);
    for (const name of Object.keys(signed)) assert.ok((signatureHeaders as readonly string[]).includes(name), name);
    for (const other of webhookSchemes)
      if (other !== scheme)
        assert.notEqual(fault(other, { headers: signed, body, secrets: [secret], at }), null, other);
    assert.equal(webhookScheme[scheme].sign('', { id: 'evt-1', timestamp: at, body }), null);
  });
}

test('TRIGGER-14 stripe: several signatures while a secret rotates, one time, and nothing of another version', () => {
  const header = recorded.stripe.headers['stripe-signature'] ?? '';
  const [time = '', right = ''] = header.split(',');
  const check = (list: string) => fault('stripe', { headers: { 'stripe-signature': list } });
  assert.equal(check(`${time},v1=${'0'.repeat(64)},${right}`), null);
  assert.equal(check(`${time}, ${right}`), null);
  assert.equal(check(`${time},${right.replace('v1=', 'v0=')}`), 'wrong-signature');
  assert.equal(check(`${right}`), 'malformed-timestamp');
  assert.equal(check(`${time},t=1680064029,${right}`), 'malformed-timestamp', 'two times are none');
});

test('TRIGGER-14 github: a signature by SHA-1 is none', () => {
  const { headers } = recorded.github;
  const sha1 = { 'x-github-delivery': headers['x-github-delivery'], 'x-hub-signature': 'sha1=0123' };
  assert.equal(fault('github', { headers: sha1 }), 'wrong-signature');
  const hex = headers['x-hub-signature-256']?.replace('sha256=', 'sha1=');
  assert.equal(fault('github', { headers: { ...headers, 'x-hub-signature-256': hex } }), 'wrong-signature');
});

test('WEBHOOK-36 the helper for receivers takes headers of every kind, and says what it has verified', () => {
  const { secret, at, body, headers } = recorded.standard;
  const now = at * 1000;
  const shouted = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]));
  for (const shape of [headers, shouted, new Headers(headers)])
    assert.deepEqual(verifyWebhook({ secret, headers: shape, body, now }), {
      ok: true,
      id: headers['webhook-id'],
      sentAt: new Date(now),
    });
  assert.equal(verifyWebhook({ secret: ['newer', secret], headers, body: Buffer.from(body), now }).ok, true);

  const twice = { ...headers, 'webhook-signature': [headers['webhook-signature'] ?? '', 'v1,AAAA'] };
  for (const [wrong, reason] of [
    [{ body: `${body} ` }, 'wrong-signature'],
    [{ secret: 'another' }, 'wrong-signature'],
    [{ secret: [] }, 'no-secret'],
    [{ headers: {} }, 'malformed-id'],
    [{ headers: twice }, 'wrong-signature'],
    [{ now: now + 301_000 }, 'late'],
    [{ now: now + 61_000, toleranceMs: 60_000 }, 'late'],
  ] as const)
    assert.deepEqual(verifyWebhook({ secret, headers, body, now, ...wrong }), { ok: false, reason }, reason);
});

test('WEBHOOK-36 without a time of its own the helper goes by the clock of the machine', () => {
  const timestamp = Math.floor(Date.now() / 1000);
  const message = { id: 'evt-1', timestamp, body: '{}' };
  const headers = {
    'webhook-id': 'evt-1',
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signWebhook(['s'], message) ?? '',
  };
  assert.equal(verifyWebhook({ secret: 's', headers, body: '{}' }).ok, true);
});
