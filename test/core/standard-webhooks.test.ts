import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { isWebhookId, signWebhook, webhookFault, webhookKey } from '../../src/core/standard-webhooks.ts';

const encoded = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const plain = 'a secret of ümlauts';
const id = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const body = '{"test": 2432232314, "text": "Grüße \u{1F600}"}';
const at = 1_614_265_330;
const message = { id, timestamp: at, body };
const headersOf = (signature: string | null, timestamp = String(at)) => ({ id, timestamp, signature: signature ?? '' });
const faultOf = (secrets: readonly string[], signature: string | null, now = at * 1000) =>
  webhookFault(secrets, headersOf(signature), body, { now, toleranceMs: 300_000 });

test('WEBHOOK-23 the published example of Standard Webhooks has the published signature', () => {
  const example = { id, timestamp: at, body: '{"test": 2432232314}' };
  assert.equal(signWebhook([encoded], example), 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('WEBHOOK-23 the public library verifies what is signed here, and what it signs is verified here', () => {
  const now = Math.floor(Date.now() / 1000);
  const signature = signWebhook([plain, encoded], { id, timestamp: now, body });
  const headers = { 'webhook-id': id, 'webhook-timestamp': String(now), 'webhook-signature': signature ?? '' };
  for (const webhook of [new Webhook(encoded), new Webhook(Buffer.from(plain), { format: 'raw' })])
    assert.deepEqual(webhook.verify(body, headers), JSON.parse(body));
  assert.throws(() => new Webhook('whsec_b3RoZXI=').verify(body, headers), /No matching signature/);

  const theirs = new Webhook(encoded).sign(id, new Date(at * 1000), body);
  assert.equal(faultOf([encoded], theirs), null);
  assert.equal(faultOf([plain], theirs), 'wrong-signature');
});

test('WEBHOOK-23 a list of secrets gives a signature each, and any match is enough', () => {
  const both = signWebhook([plain, encoded], message) ?? '';
  assert.equal(both.split(' ').length, 2);
  for (const secret of [plain, encoded]) assert.equal(faultOf([secret], both), null);
  assert.equal(faultOf(['newer', 'other', encoded], both), null);
  assert.equal(faultOf(['one', 'two', 'three', encoded], both), 'wrong-signature', 'a fourth secret is none');
  assert.equal(signWebhook(['1', '2', '3', '4'], message)?.split(' ').length, 3);
});

test('TRIGGER-14 bytes are signed as they are, text as UTF-8', () => {
  const bytes = Buffer.from([0xff, 0x00, 0x0a]);
  const expected = createHmac('sha256', plain)
    .update(Buffer.from(`${id}.${at}.`))
    .update(bytes)
    .digest('base64');
  assert.equal(signWebhook([plain], { ...message, body: bytes }), `v1,${expected}`);
  assert.equal(signWebhook([plain], message), signWebhook([plain], { ...message, body: Buffer.from(body) }));
});

test('TRIGGER-14 parts of another version, another encoding or without a form are ignored, and never count', () => {
  const right = signWebhook([encoded], message) ?? '';
  const value = right.slice('v1,'.length);
  for (const noise of ['v1a,AAAA', 'v2,BBBB', 'v1', 'v1,', ',', '', ' ', 'v1,ümlaut', value])
    assert.equal(faultOf([encoded], `${noise} ${right} ${noise}`), null, noise);
  const digest = Buffer.from(value, 'base64');
  for (const wrong of [
    '',
    value,
    `v1a,${value}`,
    `v2,${value}`,
    `V1,${value}`,
    `v1=${value}`,
    `v1,${value.slice(0, -1)}`,
    `v1,${value}=`,
    `v1,${digest.toString('hex')}`,
    `v1,${digest.toString('base64url')}`,
    right.replace(' ', ''),
    right.split('').reverse().join(''),
  ])
    if (wrong !== right) assert.equal(faultOf([encoded], wrong), 'wrong-signature', wrong);
});

test('TRIGGER-14 every part of a message is signed: id, time and body', () => {
  const headers = headersOf(signWebhook([encoded], message));
  const check = (changed: Partial<typeof headers>, text = body) =>
    webhookFault([encoded], { ...headers, ...changed }, text, { now: at * 1000 });
  assert.equal(check({}), null);
  assert.equal(check({ id: 'msg_other' }), 'wrong-signature');
  assert.equal(check({ timestamp: String(at + 1) }), 'wrong-signature');
  assert.equal(check({ timestamp: `0${at}` }), 'wrong-signature');
  assert.equal(check({}, `${body} `), 'wrong-signature');
  assert.equal(check({}, ''), 'wrong-signature');
});

test('TRIGGER-15 the clocks may differ by the tolerance either way, and no second more', () => {
  const signature = signWebhook([encoded], message);
  for (const [offset, fault] of [
    [0, null],
    [300, null],
    [-300, null],
    [301, 'late'],
    [-301, 'late'],
    [1e9, 'late'],
  ] as const)
    assert.equal(faultOf([encoded], signature, (at + offset) * 1000), fault, String(offset));
});

test('TRIGGER-15 an id is 1 to 256 printable characters without a dot, a time is digits', () => {
  for (const good of ['a', 'evt 20~41!', 'x'.repeat(256)]) assert.ok(isWebhookId(good), good);
  for (const bad of ['', 'a.b', 'x'.repeat(257), 'ü', 'a\n', '\u007f']) assert.ok(!isWebhookId(bad), bad);
  const signed = (badId: string, timestamp: string) => {
    const signature = `v1,${createHmac('sha256', plain).update(`${badId}.${timestamp}.${body}`).digest('base64')}`;
    return webhookFault([plain], { id: badId, timestamp, signature }, body, { now: at * 1000 });
  };
  assert.equal(signed(id, String(at)), null);
  assert.equal(signed('a.b', String(at)), 'malformed-id');
  for (const time of ['', '-1', '1e9', `${at}.0`, ` ${at}`, '0x60', 'NaN', '9'.repeat(40)])
    assert.equal(signed(id, time), 'malformed-timestamp', time);
});

test('WEBHOOK-24 a secret that makes no key signs nothing and verifies nothing', () => {
  for (const secret of ['', 'whsec_', 'whsec_%%%%', 'whsec_QQ=', 'whsec_a b=']) {
    assert.equal(webhookKey(secret), null, secret);
    assert.equal(signWebhook([secret], message), null);
    const empty = `v1,${createHmac('sha256', '').update(`${id}.${at}.${body}`).digest('base64')}`;
    assert.equal(faultOf([secret], empty), 'no-secret');
  }
  assert.equal(faultOf([], signWebhook([encoded], message)), 'no-secret');
  assert.equal(webhookKey('whsec_QQ')?.toString(), 'A', 'padding may be left out');
});
